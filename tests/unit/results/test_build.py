"""The report of a run: rows, sums and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci.model import Plan, Shard, ShardRun, Unit
from gpuci.results.build import build_report
from gpuci.results.warnings import EXAMPLES

ONE, TWO, CPU = "a.py::one", "b.py::two", "c.py::three"


def unit(name: str, file: str, seconds: float) -> Unit:
    return Unit(name, ".", file, "all", "normal", 1, "default", seconds, 900.0)


PLAN = Plan(
    config={},
    sha="abc",
    event="manual",
    roots=(),
    targets=(ONE, TWO, CPU),
    units=(unit("u", "a.py", 10.0), unit("v", "b.py", 20.0), unit("c", "c.py", 4.0)),
    shards=(Shard(1, "default", ("u",), 10.0), Shard(2, "default", ("v",), 20.0)),
    cpu_units=("c",),
    skipped=(),
    makespan_seconds=20.0,
    lower_bound_seconds=15.0,
    unknown_durations=0,
)


def records(unit_id: str, nodeid: str, *more: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    file = nodeid.partition("::")[0]
    return (
        {"kind": "job", "node": "n1", "gpus": ["0", "1"], "slots": 2},
        {"kind": "collected", "unit": unit_id, "file": file, "ids": [nodeid]},
        {
            "kind": "end",
            "unit": unit_id,
            "nodeid": nodeid,
            "outcome": "passed",
            "seconds": {"call": 3.0},
            "gpus": ["0"],
        },
        *more,
    )


def verdict(**more: Any) -> dict[str, Any]:
    return {"verdict": "passed", **more}


FIRST = ShardRun(1, records("u", ONE), verdict(node="n7", gpu_seconds={"used": 5.0, "total": 8.0}), 4.0, 1.0)
SECOND = ShardRun(2, records("v", TWO), verdict(), 6.0)
POOL = ShardRun(0, records("c", CPU)[1:], verdict(), 1.0)


def test_rows_counts_and_times() -> None:
    report = build_report(PLAN, [SECOND, FIRST, POOL], seconds=7.0, setup_seconds=2.0)
    assert (report.verdict, report.counts, report.sha) == ("passed", {"passed": 3}, "abc")
    assert (report.seconds, report.setup_seconds, report.warnings) == (7.0, 2.0, ())
    rows = [
        (row.index, row.verdict, row.tests, row.planned_seconds, row.wall_seconds) for row in report.shards
    ]
    assert rows == [(0, "passed", 1, 4.0, 1.0), (1, "passed", 1, 10.0, 4.0), (2, "passed", 1, 20.0, 6.0)]
    assert [row.node for row in report.shards] == ["", "n7", "n1"]


@pytest.mark.parametrize(
    ("run", "used", "idle"),
    [
        pytest.param(FIRST, 5.0, 3.0, id="as the verdict says"),
        pytest.param(ShardRun(1, records("u", ONE), verdict(), 4.0), 3.0, 5.0, id="from the journal"),
        pytest.param(
            ShardRun(1, records("u", ONE), verdict(gpu_seconds={"used": -1, "total": "x"}), 4.0),
            3.0,
            5.0,
            id="a verdict with nonsense",
        ),
        pytest.param(ShardRun(1, (), None, 4.0), 0.0, 0.0, id="nothing known"),
        pytest.param(
            ShardRun(1, (), verdict(gpu_seconds={"used": 5.0, "total": 4.0})), 5.0, 0.0, id="more than all"
        ),
    ],
)
def test_gpu_seconds(run: ShardRun, used: float, idle: float) -> None:
    row = build_report(PLAN, [run], seconds=1.0, setup_seconds=0.0, elsewhere=True).shards[0]
    assert (row.gpu_seconds_used, row.gpu_seconds_idle) == (used, idle)


def test_tries_add_up() -> None:
    lost = ShardRun(2, records("v", TWO)[:2], None, 10.0, 3.0)
    again = ShardRun(2, records("v", TWO), verdict(node="n2"), 6.0, 2.0, attempt=2)
    report = build_report(PLAN, [FIRST, again, lost], seconds=1.0, setup_seconds=0.0, elsewhere=True)
    row = report.shards[1]
    assert (row.verdict, row.tries, row.wall_seconds, row.queue_seconds) == ("passed", 2, 16.0, 5.0)
    assert row.node == "n1, n2"
    assert report.verdict == "passed"


def test_a_shard_that_never_ran_has_a_row() -> None:
    report = build_report(PLAN, [FIRST], seconds=1.0, setup_seconds=0.0, elsewhere=True)
    assert report.verdict == "infra"
    assert [(row.index, row.verdict, row.tries) for row in report.shards] == [
        (1, "passed", 1),
        (2, "infra", 0),
    ]


def note(**fields: Any) -> dict[str, Any]:
    return {"kind": "note", "level": "warning", "text": "the text", **fields}


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        pytest.param([note()], "the text: shard 1, shard 2", id="equal notes once, with their shards"),
        pytest.param([note(unit="u"), note(unit="u")], "the text: a.py", id="a note on a unit"),
        pytest.param([note(unit="u", nodeid=ONE)], f"the text: {ONE}", id="a note on a test"),
        pytest.param([note(level="info")], None, id="information is no warning"),
        pytest.param(
            [note(topic="need_differs", unit="u", nodeid=ONE, planned=1, gpus=8, level="info")],
            None,
            id="a need has a section of its own",
        ),
        pytest.param(
            [{"kind": "collected", "unit": "x", "file": "a.py", "ids": []}],
            "shard 1 reported tests that are not its own; 1 records ignored",
            id="foreign records",
        ),
    ],
)
def test_warnings_from_records(more: list[dict[str, Any]], warning: str | None) -> None:
    runs = [
        ShardRun(1, records("u", ONE, *more), verdict()),
        ShardRun(2, records("v", TWO, *more), verdict()),
    ]
    found = build_report(PLAN, runs, seconds=1.0, setup_seconds=0.0, elsewhere=True).warnings
    assert warning is None or warning in found
    assert warning is not None or found == ()


def test_warnings_from_results_are_grouped_and_counted() -> None:
    news = [f"a.py::new{n}" for n in range(EXAMPLES + 2)]
    ends = [{"kind": "end", "unit": "u", "nodeid": name, "outcome": "passed"} for name in news]
    collected = {"kind": "collected", "unit": "u", "file": "a.py", "ids": news}
    runs = [ShardRun(1, (collected, *ends), verdict()), SECOND]
    report = build_report(PLAN, runs, seconds=1.0, setup_seconds=0.0, elsewhere=True, warnings=["mine"])
    assert report.warnings[0] == "mine"
    assert report.warnings[1] == f"planned from source, but not collected by pytest (1 test): {ONE}"
    assert report.warnings[2].startswith("not known at planning time, seen on the node only (7 tests): ")
    assert report.warnings[2].endswith(", a.py::new4 and 2 more")
