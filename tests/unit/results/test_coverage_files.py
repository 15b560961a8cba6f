"""Coverage data files of a run, out of the notes of its shards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuci.model import Plan, Root, ShardRun
from gpuci.results.coverage import coverage_files

PLAN = Plan({}, None, "manual", (Root("."), Root("pkg/a")), (), (), (), (), (), 0.0, 0.0, 0)


def note(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "note", "level": "info", "topic": "coverage", "text": text, **more}


TABLE: dict[str, tuple[list[tuple[int, dict[str, Any]]], tuple[str, ...]]] = {
    "none": ([], ()),
    "one root": ([(1, note("coverage/coverage.data"))], ("shard-1/coverage/coverage.data",)),
    "several shards, the cpu pool first": (
        [(2, note("coverage/pkg/a/coverage.data")), (0, note("coverage/pkg/a/coverage.data"))],
        ("cpu/coverage/pkg/a/coverage.data", "shard-2/coverage/pkg/a/coverage.data"),
    ),
    "two tries of one shard": (
        [(1, note("coverage/coverage.data"))] * 2,
        ("shard-1/coverage/coverage.data",),
    ),
    "a warning": ([(1, note("no process left coverage data", level="warning"))], ()),
    "a path that no node gives": ([(1, note("../../etc/passwd")), (1, note("coverage/b/coverage.data"))], ()),
    "a note of another topic": ([(1, note("coverage/coverage.data", topic="x"))], ()),
    "another record": ([(1, {**note("coverage/coverage.data"), "kind": "later"})], ()),
}


@pytest.mark.parametrize(("records", "files"), TABLE.values(), ids=TABLE)
def test_files(records: list[tuple[int, dict[str, Any]]], files: tuple[str, ...]) -> None:
    runs = [ShardRun(index, (record,), None) for index, record in records]
    assert coverage_files(PLAN, runs) == files
    assert coverage_files(replace(PLAN, roots=()), runs) == ()
