"""The report of a run: rows, sums and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci.model import Plan, Shard, ShardRun, TryReport, Unit
from gpuci.results.build import build_report
from gpuci.results.journal import REPLACED
from gpuci.results.notes import find_notes
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


MANY = [f"a.py::t{n}" for n in range(5)]


def told(*words: str) -> tuple[dict[str, Any], ...]:
    """A journal of unit u: `>t1` began, `t1` ended."""
    head = {"kind": "collected", "unit": "u", "file": "a.py", "ids": MANY}
    test = [{"unit": "u", "nodeid": f"a.py::{word.lstrip('>')}"} for word in words]
    return (
        head,
        *(
            {"kind": "start", **one} if word[0] == ">" else {"kind": "end", "outcome": "passed", **one}
            for word, one in zip(words, test, strict=True)
        ),
    )


def test_tries_are_told_one_by_one() -> None:
    lost = ShardRun(1, told("t0", ">t1"), None, 10.0, 3.0, fate="infra", reason="NODE_FAIL", node="gpu003")
    again = ShardRun(1, told("t1", "t2", "t3", "t4"), verdict(node="gpu007"), 6.0, 2.0, attempt=2)
    report = build_report(PLAN, [again, lost, SECOND], seconds=1.0, setup_seconds=0.0, elsewhere=True)
    row = report.shards[0]
    assert row.history == (
        TryReport(1, "infra", "NODE_FAIL", "gpu003", 10.0, 3.0, 1),
        TryReport(2, "passed", "", "gpu007", 6.0, 2.0, 4),
    )
    assert (row.verdict, row.tries, row.node, row.rescued) == ("passed", 2, "gpu003, gpu007", 4)
    assert [one.rescued for one in report.shards[1:]] == [0]


@pytest.mark.parametrize(
    ("second", "rescued"),
    [
        pytest.param(told("t0"), 0, id="it had its result before"),
        pytest.param(told(">t1"), 0, id="it died again"),
        pytest.param(told(), 0, id="nothing ran"),
        pytest.param(told("t1", "t1"), 1, id="counted once"),
    ],
)
def test_what_counts_as_rescued(second: tuple[dict[str, Any], ...], rescued: int) -> None:
    tries = [ShardRun(1, told("t0", ">t1"), None), ShardRun(1, second, None, attempt=2)]
    report = build_report(PLAN, tries, seconds=1.0, setup_seconds=0.0, elsewhere=True)
    assert report.shards[0].rescued == rescued


@pytest.mark.parametrize(
    ("run", "node"),
    [
        pytest.param(ShardRun(1, (), None), "", id="nobody knows"),
        pytest.param(ShardRun(1, records("u", ONE), None), "n1", id="the journal"),
        pytest.param(ShardRun(1, records("u", ONE), verdict(node="n2")), "n2", id="the verdict"),
        pytest.param(ShardRun(1, records("u", ONE), verdict(node="n2"), node="n3"), "n3", id="the backend"),
        pytest.param(ShardRun(1, (), verdict(node=7)), "", id="nonsense"),
    ],
)
def test_the_node_is_whoever_knows_it(run: ShardRun, node: str) -> None:
    report = build_report(PLAN, [run], seconds=1.0, setup_seconds=0.0, elsewhere=True)
    assert report.shards[0].node == node


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        pytest.param({"topic": "not_forked", "text": "a/conftest.py: a thread", "root": "a"}, 1, id="a file"),
        pytest.param({"topic": "own_process", "text": "a/t.py runs alone"}, 1, id="a test file"),
        pytest.param({"topic": "seed", "text": "1"}, 0, id="another topic"),
        pytest.param({"topic": "not_forked", "text": "gone", "level": "warning"}, 0, id="it is a warning"),
        pytest.param({"text": "x"}, 0, id="no topic"),
    ],
)
def test_what_was_not_forked_is_noted_once(fields: dict[str, Any], lines: int) -> None:
    record = {"kind": "note", "level": "info", **fields}
    runs = [
        ShardRun(1, records("u", ONE, record, record), verdict()),
        ShardRun(2, records("v", TWO, record), verdict()),
    ]
    found = build_report(PLAN, runs, seconds=1.0, setup_seconds=0.0, elsewhere=True).notes
    assert found == (fields["text"],) * lines


@pytest.mark.parametrize(
    ("root", "text", "line"),
    [
        (".", "conftest.py: a thread", "conftest.py: a thread"),
        ("a", "a/conftest.py: a thread", "a/conftest.py: a thread"),
        ("a", "pytest-cov measures", "a: pytest-cov measures"),
        ("a", "ab/x.py: a thread", "a: ab/x.py: a thread"),
    ],
)
def test_a_note_says_which_root_it_is_about(root: str, text: str, line: str) -> None:
    record = {"kind": "note", "level": "info", "topic": "not_forked", "root": root, "text": text}
    assert find_notes([ShardRun(1, (record,), None)]) == (line,)


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
        pytest.param(
            [REPLACED], f"{REPLACED['text']}: shard 1, shard 2", id="journals that logs stand in for"
        ),
        pytest.param([note(level="info")], None, id="information is no warning"),
        pytest.param(
            [note(topic="need_differs", unit="u", nodeid=ONE, planned=1, gpus=8, level="info")],
            None,
            id="a need has a section of its own",
        ),
        pytest.param(
            [{"kind": "collected", "unit": "x", "file": "a.py", "ids": []}],
            "shard 1 reported tests that are not its own; 1 record ignored",
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
