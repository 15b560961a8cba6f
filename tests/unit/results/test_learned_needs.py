"""What the notes of a node teach, what is kept of what the plan knew, and whose word counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuci.model import LearnedNeed, Plan, Report, Shard, ShardRun, Unit
from gpuci.results.build import build_report

F, SMALL, BIG, OTHER = "a.py::f", "a.py::f[small]", "a.py::f[big]", "b.py::g"
AGAIN = "skipped on 1 of 8 GPUs (needs 2 devices): runs again with all"
SKIP = "skipped on 1 of 8 GPUs (needs 2 devices)"
SEEN = "mark wide seen on the node"
WIDE = LearnedNeed(8, False, SEEN, "wide", 1)
ALL = LearnedNeed(8, False, SKIP, "", 1)
KNOWN = replace(WIDE, planned=None)
KNOWN_SKIP = replace(ALL, planned=None)
EIGHT = [str(n) for n in range(8)]
Record = dict[str, Any]


def unit(name: str, file: str, gpus: int = 1) -> Unit:
    return Unit(name, ".", file, "all", "normal", gpus, "default", 1.0, 900.0)


PLAN = Plan(
    config={},
    sha=None,
    event="manual",
    roots=(),
    targets=(F, OTHER),
    units=(unit("u", "a.py"), unit("v", "b.py")),
    shards=(Shard(1, "default", ("u",), 1.0), Shard(2, "default", ("v",), 1.0)),
    cpu_units=(),
    skipped=(),
    makespan_seconds=1.0,
    lower_bound_seconds=1.0,
    unknown_durations=0,
)


def differs(nodeid: str = BIG, gpus: object = 8, text: str = "mark wide needs 8 GPUs", **more: Any) -> Record:
    note = {"kind": "note", "level": "info", "topic": "need_differs", "unit": "u", "nodeid": nodeid}
    return {**note, "text": text, "planned": 1, "gpus": gpus, **more}


def skips(nodeid: str = BIG) -> Record:
    return {
        "kind": "note",
        "level": "info",
        "topic": "gpu_skip",
        "unit": "u",
        "nodeid": nodeid,
        "text": AGAIN,
    }


def end(nodeid: str = BIG, outcome: str = "passed", gpus: object = EIGHT) -> Record:
    return {"kind": "end", "unit": "u", "nodeid": nodeid, "outcome": outcome, "seconds": {}, "gpus": gpus}


def collected(
    *ids: str, deselected: tuple[str, ...] = (), marks: dict[str, list[str]] | None = None
) -> Record:
    record = {"kind": "collected", "unit": "u", "file": "a.py", "ids": list(ids)}
    return {**record, "deselected": list(deselected), "marks": marks or {}}


def report(*records: Record, known: dict[str, LearnedNeed] | None = None, shard: int = 1) -> Report:
    runs = [ShardRun(shard, records, {"verdict": "passed"})]
    return build_report(replace(PLAN, needs=known or {}), runs, seconds=1.0, setup_seconds=0.0)


BOTH = collected(SMALL, BIG)


@pytest.mark.parametrize(
    ("records", "needs"),
    [
        pytest.param([BOTH, differs(), end()], {BIG: WIDE}, id="a mark on one parameter"),
        pytest.param([BOTH, differs(), differs(SMALL)], {F: WIDE}, id="a mark on all parameters"),
        pytest.param(
            [BOTH, differs(), differs(SMALL, 4)], {BIG: WIDE, SMALL: replace(WIDE, gpus=4)}, id="two numbers"
        ),
        pytest.param(
            [collected(BIG, deselected=(SMALL,)), differs()], {BIG: WIDE}, id="the other parameter by -k"
        ),
        pytest.param([collected(F), differs(F)], {F: WIDE}, id="a test without parameters"),
        pytest.param([BOTH, differs(), end(outcome="skipped")], {BIG: WIDE}, id="marked, skips"),
        pytest.param(
            [collected(F), differs(F, None, "mark wide needs the node alone")],
            {F: replace(WIDE, gpus=1, alone=True)},
            id="alone",
        ),
        pytest.param(
            [collected(F), differs(F, 8, "mark x needs y needs 8 GPUs")],
            {F: LearnedNeed(8, False, "mark x needs y seen on the node", "x needs y", 1)},
            id="a mark of many words",
        ),
        pytest.param(
            [collected(F), differs(F, 8, "something else")],
            {F: LearnedNeed(8, because="a mark seen on the node", planned=1)},
            id="a text of another version",
        ),
        pytest.param([collected(F), differs(F, "8")], {F: replace(WIDE, gpus=1)}, id="no number of GPUs"),
        pytest.param([BOTH, skips(), end()], {BIG: ALL}, id="skipped, then ran"),
        pytest.param([BOTH, skips(), end(outcome="failed")], {BIG: ALL}, id="skipped, then failed"),
        pytest.param([BOTH, skips(), end(gpus=["0", "1"])], {BIG: replace(ALL, gpus=2)}, id="a node of two"),
        pytest.param([BOTH, skips(), end(outcome="skipped")], {}, id="skipped twice"),
        pytest.param([BOTH, skips()], {}, id="skipped, then nothing"),
        pytest.param([BOTH, skips(), end(gpus=["0"])], {}, id="skipped, then ran no wider"),
        pytest.param([BOTH, skips(), differs(), end()], {BIG: WIDE}, id="a mark outweighs a skip"),
        pytest.param([BOTH, end()], {}, id="nothing to learn"),
        pytest.param([BOTH, differs(OTHER)], {}, id="another shard's test"),
        pytest.param([BOTH, differs(unit="v")], {}, id="another shard's unit"),
        pytest.param([BOTH, differs("a.py")], {}, id="a file"),
    ],
)
def test_notes_teach(records: list[Record], needs: dict[str, LearnedNeed]) -> None:
    assert report(*records).needs == needs


def marked(nodeid: str, *marks: str) -> Record:
    return collected(nodeid, marks={nodeid: list(marks)})


@pytest.mark.parametrize(
    ("known", "records", "needs"),
    [
        pytest.param({F: KNOWN}, [marked(F, "wide"), end(F)], {F: KNOWN}, id="still marked"),
        pytest.param({F: KNOWN}, [marked(F, "wide"), end(F, "skipped")], {F: KNOWN}, id="marked and skipped"),
        pytest.param({F: KNOWN}, [marked(F, "gpu"), end(F)], {}, id="the mark is gone"),
        pytest.param({F: KNOWN}, [collected("a.py::h")], {}, id="the test is gone"),
        pytest.param({F: KNOWN}, [], {F: KNOWN}, id="the file was not collected"),
        pytest.param({F: KNOWN}, [collected(deselected=(F,))], {F: KNOWN}, id="left out by -k"),
        pytest.param({BIG: KNOWN}, [collected(SMALL, deselected=(BIG,))], {BIG: KNOWN}, id="-k, a parameter"),
        pytest.param({F: KNOWN_SKIP}, [collected(F), end(F)], {F: KNOWN_SKIP}, id="ran with what it got"),
        pytest.param({F: KNOWN_SKIP}, [collected(F)], {F: KNOWN_SKIP}, id="never ran"),
        pytest.param({F: KNOWN_SKIP}, [collected(F), end(F, "skipped")], {}, id="skips with all"),
        pytest.param({F: KNOWN_SKIP}, [BOTH, end(BIG), end(SMALL)], {F: KNOWN_SKIP}, id="new parameters"),
        pytest.param(
            {F: KNOWN_SKIP},
            [BOTH, end(BIG), end(SMALL, "skipped")],
            {BIG: KNOWN_SKIP},
            id="one left",
        ),
        pytest.param({BIG: KNOWN_SKIP}, [BOTH, differs(SMALL)], {F: WIDE}, id="the other parameter learned"),
        pytest.param(
            {BIG: replace(WIDE, gpus=2)}, [BOTH, differs(), end()], {BIG: WIDE}, id="this run knows better"
        ),
        pytest.param(
            {F: KNOWN_SKIP, BIG: replace(KNOWN_SKIP, gpus=2)},
            [BOTH],
            {SMALL: KNOWN_SKIP, BIG: replace(KNOWN_SKIP, gpus=2)},
            id="an item says it better than its function",
        ),
        pytest.param({F: WIDE}, [], {F: KNOWN}, id="what the plan knew does not differ from it"),
    ],
)
def test_what_the_plan_knew(
    known: dict[str, LearnedNeed], records: list[Record], needs: dict[str, LearnedNeed]
) -> None:
    assert report(*records, known=known).needs == needs


def test_a_long_reason_is_cut() -> None:
    long = {**skips(), "text": "skipped on 1 of 8 GPUs (" + "x" * 9999}
    (need,) = report(BOTH, long, end()).needs.values()
    assert len(need.because) == 300


def test_a_skip_with_all_gpus_is_a_warning() -> None:
    warnings = report(BOTH, skips(), skips(SMALL), end(outcome="skipped"), end(SMALL)).warnings
    assert f"skipped for lack of GPUs, even with all of the node's (1 test): {BIG}" in warnings


def test_the_last_try_counts() -> None:
    first = ShardRun(1, (BOTH, skips()), None)
    second = ShardRun(1, (BOTH, skips(), end()), {"verdict": "passed"}, attempt=2)
    assert build_report(PLAN, [second, first], seconds=1.0, setup_seconds=0.0).needs == {BIG: ALL}
