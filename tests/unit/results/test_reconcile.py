"""Reconciliation as a table: what the nodes said -> what became of each test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gpuci.model import Plan, Shard, ShardRun, SkippedTest, TestResult, Unit
from gpuci.results import reconcile as module
from gpuci.results.reconcile import reconcile


def unit(name: str, file: str = "a.py", select: Any = "all") -> Unit:
    return Unit(name, ".", file, select, "normal", 1, "default", 1.0, 900.0)


def make_plan(
    units: Sequence[Unit],
    targets: Sequence[str],
    *,
    shards: Sequence[Sequence[str]] | None = None,
    cpu: Sequence[str] = (),
    skipped: Sequence[SkippedTest] = (),
) -> Plan:
    of_shards = shards if shards is not None else [[one.id for one in units if one.id not in cpu]]
    return Plan(
        config={},
        sha=None,
        event="manual",
        roots=(),
        targets=tuple(targets),
        units=tuple(units),
        shards=tuple(Shard(n, "default", tuple(ids), 1.0) for n, ids in enumerate(of_shards, 1)),
        cpu_units=tuple(cpu),
        skipped=tuple(skipped),
        makespan_seconds=1.0,
        lower_bound_seconds=1.0,
        unknown_durations=0,
    )


def runs(text: str) -> list[ShardRun]:
    """Journals in short: `SHARD.TRY UNIT RECORDS / SHARD.TRY UNIT RECORDS ...`, all in the file a.py.

    RECORDS are `{one -two}` (collected one, deselected two), `>one` (started) and `one=passed` (ended);
    `.` is the file itself.
    """
    return [_run(part.split()) for part in text.split(" / ") if part]


def _run(words: list[str]) -> ShardRun:
    (job, unit_id), told = words[:2], " ".join(words[2:])
    index, attempt = map(int, job.split("."))
    records = [record(unit_id, word) for word in re.findall(r"\{[^}]*\}|[^ ]+", told)]
    return ShardRun(index, tuple(records), None, attempt=attempt)


def record(unit_id: str, word: str) -> dict[str, Any]:
    if word.startswith("{"):
        names = word[1:-1].split()
        ids = [nodeid(name) for name in names if not name.startswith("-")]
        left = [nodeid(name[1:]) for name in names if name.startswith("-")]
        return {"kind": "collected", "unit": unit_id, "file": "a.py", "ids": ids, "deselected": left}
    if word.startswith(">"):
        return {"kind": "start", "unit": unit_id, "nodeid": nodeid(word[1:])}
    name, _, outcome = word.partition("=")
    return {"kind": "end", "unit": unit_id, "nodeid": nodeid(name), "outcome": outcome}


def nodeid(name: str) -> str:
    return "a.py" if name == "." else f"a.py::{name}"


def outcomes(text: str) -> list[tuple[str, str]]:
    return sorted((nodeid(word.partition("=")[0]), word.partition("=")[2]) for word in text.split())


def found(results: Sequence[TestResult]) -> list[tuple[str, str]]:
    return sorted((result.nodeid, result.outcome) for result in results)


ONE, TWO, THREE = "a.py::one", "a.py::two", "a.py::three"
WHOLE = make_plan([unit("u")], [ONE, TWO])
NO_TARGETS = make_plan([unit("u")], [])
CLASSES = make_plan([unit("u")], ["a.py::A::x", "a.py::A::y", "a.py::B::x"])
DOCTESTS = make_plan([unit("u")], [ONE, "a.py"])
NIGHTLY = [SkippedTest(TWO, "nightly: not today")]
SKIPS = make_plan([unit("u", select={"except": [TWO]})], [ONE, TWO], skipped=NIGHTLY)
SPLIT = make_plan(
    [unit("u", select={"except": [TWO]}), unit("v", select=[TWO])], [ONE, TWO], shards=[["u"], ["v"]]
)
SOME = make_plan([unit("u", select=[ONE])], [ONE])
CPU = make_plan([unit("u", select={"except": [TWO]}), unit("c", select=[TWO])], [ONE, TWO], cpu=["c"])

# name, plan, journals, outcomes
CASES = [
    ("all passed", WHOLE, "1.1 u {one two} one=passed two=passed", "one=passed two=passed"),
    ("never started", WHOLE, "1.1 u {one two} one=passed", "one=passed two=not_finished"),
    ("in flight", WHOLE, "1.1 u {one two} one=passed >two", "one=passed two=not_finished"),
    ("no record at all", WHOLE, "", "one=not_finished two=not_finished"),
    ("no record, no known target", NO_TARGETS, "", ".=not_finished"),
    ("no known target, nothing collected", NO_TARGETS, "1.1 u {}", ""),
    (
        "what was collected is lost",
        WHOLE,
        "1.1 u one=passed two=passed",
        "one=passed two=passed .=not_finished",
    ),
    ("it is lost, and a test is red anyway", WHOLE, "1.1 u one=passed two=failed", "one=passed two=failed"),
    ("no such test in pytest", WHOLE, "1.1 u {one} one=passed", "one=passed two=not_collected"),
    (
        "parameters count for their function",
        WHOLE,
        "1.1 u {one[a] one[b::c] two} one[a]=passed one[b::c]=failed two=passed",
        "one[a]=passed one[b::c]=failed two=passed",
    ),
    ("doctests", DOCTESTS, "1.1 u {one a.f} one=passed a.f=passed", "one=passed a.f=passed"),
    ("no doctest in pytest", DOCTESTS, "1.1 u {}", "one=not_collected .=not_collected"),
    ("not importable", WHOLE, "1.1 u .=collection_error", ".=collection_error"),
    ("not importable, said to be empty", WHOLE, "1.1 u {} .=collection_error", ".=collection_error"),
    ("module skipped as a whole", WHOLE, "1.1 u .=skipped", ".=skipped"),
    (
        "class not collectable",
        CLASSES,
        "1.1 u {B::x} A=collection_error B::x=passed",
        "A=collection_error B::x=passed",
    ),
    ("two ends", WHOLE, "1.1 u {one two} one=passed one=error two=passed", "one=error two=passed"),
    ("ran again wider", WHOLE, "1.1 u {one two} one=skipped one=passed two=passed", "one=passed two=passed"),
    ("deselected", WHOLE, "1.1 u {one -two[a]} one=passed", "one=passed two[a]=deselected"),
    ("deselected, then run", WHOLE, "1.1 u {one -two} {two} one=passed two=passed", "one=passed two=passed"),
    ("deselected, then lost", WHOLE, "1.1 u {one -two} {two} one=passed", "one=passed two=not_finished"),
    ("skipped by the plan", SKIPS, "1.1 u {one two} one=passed", "one=passed two=skipped"),
    ("skipped, with parameters", SKIPS, "1.1 u {one two[1] two[2]} one=passed", "one=passed two=skipped"),
    ("skipped and deselected", SKIPS, "1.1 u {one -two} one=passed", "one=passed two=skipped"),
    ("skipped, but it ran", SKIPS, "1.1 u {one two} one=passed two=failed", "one=passed two=failed"),
    ("a test that no unit runs", SOME, "1.1 u {one two} one=passed", "one=passed"),
    ("cpu pool: nothing came", CPU, "1.1 u {one two} one=passed", "one=passed two=not_finished"),
    (
        "two shards: each its own",
        SPLIT,
        "1.1 u {one two} one=passed / 2.1 v {one two} two=passed",
        "one=passed two=passed",
    ),
    ("a dead shard, its test seen", SPLIT, "1.1 u {one two} one=passed", "one=passed two=not_finished"),
    ("a dead shard, its test unseen", SPLIT, "1.1 u {one} one=passed", "one=passed two=not_finished"),
    ("a dead shard's test deselected", SPLIT, "1.1 u {one -two} one=passed", "one=passed two=not_finished"),
    ("another's test", SPLIT, "1.1 u {one two} one=passed two=passed", "one=passed two=not_finished"),
    (
        "in another's name",
        SPLIT,
        "1.1 u {one two} one=passed / 1.1 v {one two} two=passed",
        "one=passed two=not_finished",
    ),
    (
        "pieces collect differently",
        SPLIT,
        "1.1 u {one two} one=passed / 2.1 v {one}",
        "one=passed two=not_finished",
    ),
    (
        "a new test is the owner's",
        SPLIT,
        "1.1 u {one two three} one=passed three=passed / 2.1 v {one two} two=passed",
        "one=passed two=passed three=passed",
    ),
    (
        "the second try runs the rest",
        SPLIT,
        "1.1 u {one two} one=passed / 2.1 v {one two} >two / 2.2 v {one two} two=passed",
        "one=passed two=passed",
    ),
    (
        "a result replaces not_finished",
        SPLIT,
        "1.1 u {one two} one=passed / 2.1 v {one two} two=not_finished / 2.2 v two=failed",
        "one=passed two=failed",
    ),
    (
        "a pass replaces it too",
        SPLIT,
        "1.1 u {one two} one=passed / 2.1 v {one two} two=not_finished / 2.2 v two=passed",
        "one=passed two=passed",
    ),
    (
        "a failure stays",
        SPLIT,
        "1.1 u {one two} one=failed / 1.2 u one=passed / 2.1 v {one two} two=passed",
        "one=failed two=passed",
    ),
]


@pytest.mark.parametrize(
    ("plan", "told", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_outcomes(plan: Plan, told: str, expected: str) -> None:
    assert found(reconcile(plan, runs(told))) == outcomes(expected)
    assert found(reconcile(plan, runs(told)[::-1])) == outcomes(expected)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param("1.1 u {one two} one=passed", id="a GPU node saw it"),
        pytest.param("1.1 u {one} one=passed", id="nobody saw it"),
        pytest.param("1.1 u {one two[1] two[2]} one=passed", id="once for all its parameters"),
    ],
)
def test_the_cpu_pool_elsewhere(told: str) -> None:
    assert found(reconcile(CPU, runs(told), elsewhere=True)) == outcomes("one=passed two=elsewhere")


def test_a_test_of_the_cpu_pool_that_only_the_node_knew() -> None:
    plan = make_plan([unit("u", select=[ONE]), unit("c", select={"except": [ONE]})], [ONE, TWO], cpu=["c"])
    results = reconcile(plan, runs("1.1 u {one two three[1] three[2]} one=passed"), elsewhere=True)
    assert found(results) == outcomes("one=passed two=elsewhere three=elsewhere")
    assert [result.nodeid for result in results if result.unplanned] == [THREE]


def test_the_cpu_pool_is_shard_0() -> None:
    results = reconcile(CPU, runs("1.1 u {one two} one=passed / 0.1 c {one two} two=passed"))
    assert {result.nodeid: result.shard for result in results} == {ONE: 1, TWO: 0}


@pytest.mark.parametrize(
    ("told", "unplanned"),
    [
        ("one=passed", False),
        ("one[x]=passed", False),
        ("three=passed", True),
        (".=collection_error", False),
        ("Generated=collection_error", False),
    ],
)
def test_unplanned(told: str, unplanned: bool) -> None:
    results = {result.nodeid: result for result in reconcile(WHOLE, runs("1.1 u {one two} " + told))}
    assert results[outcomes(told)[0][0]].unplanned is unplanned


def test_a_file_that_is_a_target_plans_what_is_in_it() -> None:
    assert not any(result.unplanned for result in reconcile(DOCTESTS, runs("1.1 u {one a.f} a.f=failed")))


def test_everything_of_a_record_is_kept() -> None:
    told = {
        "kind": "end",
        "unit": "u",
        "nodeid": ONE,
        "outcome": "failed",
        "seconds": {"setup": 0.5, "call": 1.0, "teardown": 0.25},
        "slot": "gw3",
        "gpus": ["3"],
        "file": "lib/base.py",
        "line": 12,
        "message": "assert 1 == 2",
        "output": "E  assert",
        "peak_memory_bytes": 3 * 2**30,
        "cuda_used": True,
    }
    result = reconcile(WHOLE, [ShardRun(1, (told,), None, attempt=2)])[0]
    kept = {name: told[name] for name in told.keys() - {"kind", "unit", "seconds", "gpus"}}
    new = {"seconds": 1.75, "shard": 1, "attempt": 2, "gpus": ("3",), "unplanned": False}
    assert vars(result) == kept | new


@pytest.mark.parametrize(
    ("plan", "told", "message"),
    [
        pytest.param(WHOLE, "1.1 u {two}", module.NEVER_STARTED, id="never started"),
        pytest.param(WHOLE, "1.1 u {two} >two", module.NO_RESULT, id="in flight"),
        pytest.param(WHOLE, "", module.NO_RECORD, id="no record"),
        pytest.param(WHOLE, "1.1 u {one}", module.NO_SUCH_TEST, id="no such test"),
        pytest.param(SPLIT, "1.1 u {one two} / 2.1 v {one}", module.ONLY_A_SIBLING, id="differing pieces"),
        pytest.param(SKIPS, "1.1 u {one}", NIGHTLY[0].because, id="skipped by the plan"),
    ],
)
def test_what_is_missing_says_why(plan: Plan, told: str, message: str) -> None:
    results = {result.nodeid: result for result in reconcile(plan, runs(told))}
    assert results[TWO].message == message


ENDED = "was running when the job was ended (%s)"


@pytest.mark.parametrize(
    ("told", "fate", "node", "message"),
    [
        pytest.param("1.1 u", "config_error", "", module.NEVER_BEGAN, id="refused"),
        pytest.param("1.1 u", "cancelled", "", module.NEVER_BEGAN, id="cancelled in the queue"),
        pytest.param("1.1 u", "queue_timeout", "", module.NEVER_BEGAN, id="never had a node"),
        pytest.param("1.1 u", "timeout", "gpu001", module.NO_RECORD, id="a node had it and told nothing"),
        pytest.param("1.1 u", "passed", "", module.NO_RECORD, id="passed, they say"),
        pytest.param("1.1 u {one} / 1.2 u", "cancelled", "", module.NO_SUCH_TEST, id="an earlier try told"),
        pytest.param("1.1 v {one} / 1.2 u", "cancelled", "", module.NO_RECORD, id="an earlier try began"),
        pytest.param("1.1 u {two} >two", "cancelled", "n", ENDED % "cancelled", id="cancelled"),
        pytest.param("1.1 u {two} >two", "timeout", "n", ENDED % "timeout", id="timeout"),
        pytest.param("1.1 u {two} >two", "preempted", "n", module.NO_RESULT, id="preempted"),
        pytest.param("1.1 u {two} >two / 1.2 u", "cancelled", "", module.NO_RESULT, id="another try"),
    ],
)  # fmt: skip
def test_what_is_missing_says_whether_its_job_began(told: str, fate: str, node: str, message: str) -> None:
    *before, last = runs(told)
    results = reconcile(WHOLE, [*before, replace(last, fate=fate, node=node)])
    assert {result.nodeid: result for result in results}[TWO].message == message


@pytest.mark.parametrize(
    ("told", "fates", "outcome", "message"),
    [
        pytest.param("1.1 u {one two} >two", [""], "not_finished", module.NO_RESULT, id="one death"),
        pytest.param(
            "1.1 u {one two} >two / 1.2 u {one two} >two",
            ["", "infra"],
            "failed",
            "in flight at the death of 2 nodes (n1, n2)",
            id="two deaths",
        ),
        pytest.param(
            "1.1 u {one two} >two / 1.2 u {one two} >two / 1.3 u {one two} >two",
            ["", "", ""],
            "failed",
            "in flight at the death of 3 nodes (n1, n2, n3)",
            id="three",
        ),
        pytest.param(
            "1.1 u {one two} >two / 1.2 u {one two} >two",
            ["preempted", ""],
            "not_finished",
            module.NO_RESULT,
            id="one was taken away",
        ),
        pytest.param(
            "1.1 u {one two} >two / 1.2 u {one two} two=passed",
            ["", ""],
            "passed",
            "",
            id="it ended in the second try",
        ),
        pytest.param(
            "1.1 u {one two} >two two=passed / 1.2 u {one two} >two / 1.3 u {one two} >two",
            ["", "", ""],
            "passed",
            "",
            id="it had ended before",
        ),
        pytest.param(
            "1.1 u {one two} >two / 1.2 u {one two}",
            ["", ""],
            "not_finished",
            module.NO_RESULT,
            id="once only",
        ),
    ],
)
def test_what_two_nodes_die_of_has_failed(told: str, fates: list[str], outcome: str, message: str) -> None:
    tries = [
        replace(run, fate=fate, node=f"n{run.attempt}") for run, fate in zip(runs(told), fates, strict=True)
    ]
    result = next(result for result in reconcile(WHOLE, tries) if result.nodeid == TWO)
    assert (result.outcome, result.message) == (outcome, message)


def test_another_shard_s_death_is_not_this_test_s() -> None:
    told = [*runs("1.1 u {one two} >two"), *runs("2.1 v {one two} >two / 2.1 u {one two} >two")]
    found = {result.nodeid: result.outcome for result in reconcile(SPLIT, told)}
    assert found[TWO] == "not_finished"


def test_order_is_by_file_of_the_plan_then_by_collection() -> None:
    plan = make_plan([unit("z", "z.py"), unit("u")], ["z.py::t", ONE, TWO])
    last = {"kind": "end", "unit": "z", "nodeid": "z.py::t", "outcome": "passed"}
    told = [*runs("1.1 u {two one} one=passed two=passed"), ShardRun(1, (last,), None)]
    assert [result.nodeid for result in reconcile(plan, told)] == ["z.py::t", "z.py", TWO, ONE]
