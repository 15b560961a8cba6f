"""Merging coverage data: when it starts, how many at once, and what is said of each end."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci_node.supervisor.effects import Exit, Start, Write
from gpuci_node.supervisor.merges import MERGE_SECONDS, Merges
from gpuci_node.supervisor.spec import NO_DATA

JOB: dict[str, Any] = {
    "run": "r",
    "paths": {"root": "/tree", "out": "/out"},
    "node": {"name": "n", "gpus": ["0"]},
    "settings": {"env": {"A": "1"}, "pythonpath": ["/tree/lib"]},
}
KILLED = Exit(None, "SIGKILL", "")


def notes(effects: Any) -> list[tuple[str, str, str]]:
    assert all(isinstance(effect, Write) for effect in effects)
    return [(effect.record["level"], effect.record["root"], effect.record["text"]) for effect in effects]


def test_each_root_is_merged_once_and_as_many_at_once_as_there_are_slots() -> None:
    merges = Merges(JOB, 2)
    assert merges.finished
    for root in (".", "pkg/a", ".", "pkg-a", "pkg/a"):
        merges.measured(root)
    assert not merges.finished
    first = merges.start(0.0)
    assert [type(effect) for effect in first] == [Start, Start]
    specs = [effect.spec for effect in first if isinstance(effect, Start)]
    assert [(spec["role"], spec["root"], spec["data"], spec["coverage"]) for spec in specs] == [
        ("coverage", ".", "/out/coverage/coverage.data", "/out/coverage/coverage.parts"),
        ("coverage", "pkg/a", "/out/coverage/pkg/a/coverage.data", "/out/coverage/pkg/a/coverage.parts"),
    ]
    assert merges.start(0.0) == []
    merges.on_exit(next(iter(merges.living)), Exit(0, None, ""))
    assert len(merges.start(1.0)) == 1
    for name in list(merges.living):
        merges.on_exit(name, Exit(0, None, ""))
    assert merges.finished


@pytest.mark.parametrize(
    ("end", "level", "said"),
    [
        (Exit(0, None, "noise"), "info", ["coverage/pkg/coverage.data"]),
        (Exit(NO_DATA, None, ""), "warning", ["no process left coverage data"]),
        (
            Exit(1, None, "Traceback\nDataError: full"),
            "warning",
            ["DataError: full", "coverage/pkg/coverage.parts"],
        ),
        (KILLED, "warning", ["SIGKILL", "coverage/pkg/coverage.parts"]),
    ],
    ids=["merged", "nothing", "failed", "killed"],
)
def test_what_is_said_of_its_end(end: Exit, level: str, said: list[str]) -> None:
    merges = Merges(JOB, 1)
    merges.measured("pkg")
    merges.start(0.0)
    ((found, root, text),) = notes(merges.on_exit("coverage.1", end))
    assert (found, root) == (level, "pkg")
    assert all(part in text for part in said)


def test_one_that_does_not_end_has_a_limit_and_that_is_said() -> None:
    merges = Merges(JOB, 1)
    merges.measured("pkg")
    merges.start(5.0)
    merge = merges.living["coverage.1"]
    assert merge.deadline == 5.0 + MERGE_SECONDS
    merge.timed_out = merge.over_limit
    assert "not done within 600 s" in notes(merges.on_exit("coverage.1", KILLED))[0][2]


def test_a_run_that_is_ended_merges_nothing_more() -> None:
    merges = Merges(JOB, 1)
    merges.measured("a")
    merges.measured("b")
    merges.start(0.0)
    merges.stop()
    merges.on_exit("coverage.1", KILLED)
    assert merges.finished
    assert merges.start(1.0) == []


def test_its_warnings_are_passed_on_and_nothing_else() -> None:
    merges = Merges(JOB, 1)
    merges.measured("pkg")
    merges.start(0.0)
    said = {"kind": "note", "level": "info", "topic": "x", "text": "part gw0.1 can't be read"}
    assert notes(merges.on_record("coverage.1", said)) == [("warning", "pkg", "part gw0.1 can't be read")]
    assert merges.on_record("coverage.1", {"kind": "end"}) == []
