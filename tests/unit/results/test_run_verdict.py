"""The verdict of a run: the whole table, and how tests and shards come into it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gpuci.model import Plan, Shard, ShardRun, TestResult
from gpuci.results.verdict import (
    NOTHING_MATCHED,
    NOTHING_RAN,
    SELECTION,
    TABLE,
    Tests,
    decide,
    judge_tests,
    placeless,
    run_verdict,
    shard_names,
    shard_verdicts,
)
from gpuci_node.contract import OUTCOMES, RAN_OUTCOMES, RED_OUTCOMES, VERDICTS

PLAN = Plan(
    config={},
    sha=None,
    event="manual",
    roots=(),
    targets=(),
    units=(),
    shards=(Shard(1, "default", (), 1.0), Shard(2, "default", (), 1.0)),
    cpu_units=(),
    skipped=(),
    makespan_seconds=1.0,
    lower_bound_seconds=1.0,
    unknown_durations=0,
)


def shard(verdict: Any, index: int = 1, *, attempt: int = 1, problem: str = "", reason: str = "") -> ShardRun:
    document = None if verdict is None else {"verdict": verdict, "reason": reason}
    return ShardRun(index, (), document, attempt=attempt, problem=problem)


def results_of(*outcomes: str, index: int = 1) -> list[TestResult]:
    return [TestResult(f"a.py::t{n}", outcome, shard=index) for n, outcome in enumerate(outcomes)]


@pytest.mark.parametrize("tests", list(Tests))
@pytest.mark.parametrize("shard_says", VERDICTS)
def test_the_full_cross_product(shard_says: str, tests: Tests) -> None:
    """The rule in words: a red test makes `failed`, whatever else happened; else the shard decides; and a run
    in which nothing ran is never a pass."""
    verdict = decide(shard_says, tests)
    if tests is Tests.RED or shard_says == "failed":
        assert verdict == "failed"
    elif shard_says == "passed":
        assert verdict == {Tests.GREEN: "passed", Tests.NONE: "failed"}[tests]
    else:
        assert verdict == shard_says


def test_the_table_has_the_contract_s_verdicts_in_its_order() -> None:
    assert tuple(TABLE) == VERDICTS


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_alone(outcome: str) -> None:
    verdict = run_verdict(PLAN, results_of(outcome), [shard("passed"), shard("passed", 2)])
    expected = "passed" if outcome in RAN_OUTCOMES - RED_OUTCOMES else "failed"
    assert verdict.verdict == expected
    nothing = NOTHING_MATCHED if outcome == "deselected" else NOTHING_RAN
    assert (verdict.reason == nothing) == (outcome not in RAN_OUTCOMES | RED_OUTCOMES)


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [
        (["deselected", "deselected"], NOTHING_MATCHED),
        (["deselected", "skipped", "deselected"], f"{NOTHING_RAN}; {SELECTION} left out 2"),
        (["skipped"], NOTHING_RAN),
        ([], NOTHING_RAN),
    ],
)
def test_a_selection_that_matches_nothing_is_told_apart(outcomes: list[str], reason: str) -> None:
    runs = [shard("passed"), shard("passed", 2)]
    assert run_verdict(PLAN, results_of(*outcomes), runs) == ("failed", reason)


@pytest.mark.parametrize("outcomes", [[], ["skipped"], ["deselected"], ["deselected", "skipped"]])
def test_one_shard_of_several_may_have_no_test_that_ran(outcomes: list[str]) -> None:
    runs = [shard("passed"), shard("passed", 2)]
    whole = run_verdict(PLAN, results_of(*outcomes), runs)
    assert run_verdict(PLAN, results_of(*outcomes), runs, part=True) == ("passed", whole.reason)


@pytest.mark.parametrize("says", VERDICTS)
@pytest.mark.parametrize("outcome", ["passed", "failed", "skipped"])
def test_a_part_of_a_run_is_else_judged_like_all_of_it(says: str, outcome: str) -> None:
    runs = [shard("passed"), shard(says, 2)]
    whole, part = (run_verdict(PLAN, results_of(outcome), runs, part=part) for part in (False, True))
    assert part == (("passed", whole.reason) if (outcome, says) == ("skipped", "passed") else whole)


def test_where_a_shard_says_why_no_test_ran_that_is_the_reason() -> None:
    runs = [shard("config_error", reason="no key"), shard("config_error", 2, reason="no key")]
    said = run_verdict(PLAN, results_of("not_finished"), runs)
    assert said == ("config_error", "shards 1-2: config error (no key)")


@pytest.mark.parametrize("outcome", sorted(RED_OUTCOMES))
def test_one_red_among_many(outcome: str) -> None:
    results = results_of("passed", outcome, "skipped")
    assert run_verdict(PLAN, results, [shard("passed"), shard("passed", 2)]).verdict == "failed"


@pytest.mark.parametrize(
    ("runs", "verdict", "reason"),
    [
        pytest.param([shard("passed"), shard("passed", 2)], "passed", "all shards passed", id="passed"),
        pytest.param([shard("passed")], "infra", "shard 2: infra (it never ran)", id="one never ran"),
        pytest.param([], "infra", "shards 1-2: infra (it never ran)", id="none ran"),
        pytest.param([shard("passed"), shard(None, 2)], "infra", "left no verdict", id="no verdict"),
        pytest.param(
            [shard("passed"), shard("great", 2)], "infra", "left no verdict", id="a word of its own"
        ),
        pytest.param(
            [shard("passed"), shard(["passed"], 2)], "infra", "left no verdict", id="not even a word"
        ),
        pytest.param(
            [shard("passed"), shard("passed", 2, problem="hash differs")],
            "infra",
            "hash differs",
            id="problem",
        ),
        pytest.param([shard("passed"), shard("failed", 2, reason="exit")], "failed", "(exit)", id="failed"),
        pytest.param([shard("timeout"), shard("infra", 2)], "timeout", "shard 2: infra", id="the worst"),
        pytest.param(
            [shard("infra"), shard("failed", 2)], "failed", "shard 1: infra", id="failed over infra"
        ),
        pytest.param(
            [shard("passed"), shard("cancelled", 2, problem="torn")],
            "cancelled",
            "torn",
            id="cancelled, torn",
        ),
        pytest.param(
            [shard("passed"), shard("infra", 2, reason="disk full", problem="torn")],
            "infra",
            "shard 2: infra (disk full; torn)",
            id="the node's reason and ours",
        ),
        pytest.param(
            [shard("passed"), shard("preempted", 2, problem="torn")], "infra", "torn", id="preempted, torn"
        ),
        pytest.param(
            [shard("passed"), shard("passed", 2, attempt=2), shard("infra", 2)],
            "passed",
            "all",
            id="next try",
        ),
        pytest.param(
            [shard("passed"), shard("passed", 2), shard("infra", 2, attempt=2)],
            "infra",
            "2: infra",
            id="last",
        ),
        pytest.param(
            [shard("passed"), shard("passed", 2), shard("timeout", 0)], "timeout", "cpu pool", id="cpu pool"
        ),
    ],
)
def test_what_shards_say_when_tests_passed(runs: list[ShardRun], verdict: str, reason: str) -> None:
    said = run_verdict(PLAN, results_of("passed"), runs)
    assert said.verdict == verdict
    assert reason in said.reason


@pytest.mark.parametrize("said", [verdict for verdict in VERDICTS if verdict not in {"passed", "failed"}])
def test_a_test_lost_with_its_shard_is_not_a_test_failure(said: str) -> None:
    results = [*results_of("passed"), *results_of("not_finished", index=2)]
    assert run_verdict(PLAN, results, [shard("passed"), shard(said, 2)]).verdict == said


@pytest.mark.parametrize("said", ["passed", "failed"])
def test_a_test_lost_in_a_healthy_shard_is_red(said: str) -> None:
    results = [*results_of("passed"), *results_of("not_finished", index=2)]
    assert run_verdict(PLAN, results, [shard("passed"), shard(said, 2)]).verdict == "failed"


@pytest.mark.parametrize(
    ("run", "verdict", "reason"),
    [
        pytest.param(
            ShardRun(2, (), None, fate="preempted", reason="for job 7"), "preempted", "for job 7", id="known"
        ),
        pytest.param(
            ShardRun(2, (), {"verdict": "passed"}, fate="infra", reason="NODE_FAIL"),
            "infra",
            "NODE_FAIL",
            id="over the node's",
        ),
        pytest.param(
            ShardRun(2, (), None, fate="queue_timeout", reason="Resources", problem="torn"),
            "queue_timeout",
            "Resources; torn",
            id="and a problem",
        ),
        pytest.param(ShardRun(2, (), {"verdict": "passed"}, reason="x"), "passed", "", id="no fate"),
    ],
)
def test_what_the_backend_knows_counts(run: ShardRun, verdict: str, reason: str) -> None:
    last = shard_verdicts(PLAN, results_of("passed"), [shard("passed"), run])[-1]
    assert (last.verdict, last.reason) == (verdict, reason)


@pytest.mark.parametrize("said", [verdict for verdict in VERDICTS if verdict not in {"passed", "failed"}])
def test_a_failure_beside_a_shard_that_broke_is_the_verdict_and_both_are_named(said: str) -> None:
    results = [*results_of("passed", "failed"), *results_of("not_finished", index=2)]
    verdict = run_verdict(PLAN, results, [shard("failed"), shard(said, 2, reason="why")])
    assert verdict == ("failed", f"1 failed, 1 not finished; shard 2: {said.replace('_', ' ')} (why)")


@pytest.mark.parametrize(("better", "worse"), list(itertools.combinations(reversed(VERDICTS), 2)), ids=str)
def test_of_two_shards_the_worse_one_counts_whatever_their_order(better: str, worse: str) -> None:
    for says in ((better, worse), (worse, better)):
        runs = [shard(says[0]), shard(says[1], 2)]
        assert run_verdict(PLAN, results_of("passed"), runs).verdict == worse


def test_what_a_person_can_put_right_comes_before_what_a_cluster_did() -> None:
    assert VERDICTS[0] == "failed"
    people = {"failed", "config_error", "unauthorized", "cancelled"}
    assert set(VERDICTS[:4]) == people


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (["collection_error"], "1 collection error"),
        (["error", "collection_error", "error"], "1 collection error, 2 errors"),
        (["failed", "passed", "failed", "error"], "2 failed, 1 error"),
    ],
)
def test_outcomes_are_named_in_words(outcomes: list[str], words: str) -> None:
    said = run_verdict(PLAN, results_of(*outcomes), [shard("failed"), shard("passed", 2)])
    assert said == ("failed", words)


def test_a_cpu_pool_that_never_ran_is_infra() -> None:
    results = [*results_of("passed"), *results_of("not_finished", index=0)]
    said = run_verdict(PLAN, results, [shard("passed"), shard("passed", 2)])
    assert said == ("infra", "cpu pool: infra (it never ran)")


def test_a_cpu_pool_elsewhere_is_not_missed() -> None:
    results = [*results_of("passed"), *results_of("elsewhere", index=0)]
    assert [one.index for one in shard_verdicts(PLAN, results, [])] == [1, 2]


@pytest.mark.parametrize(
    ("outcomes", "tests"),
    [
        ([], Tests.NONE),
        (["skipped", "deselected", "elsewhere", "not_collected"], Tests.NONE),
        (["skipped", "xfailed"], Tests.GREEN),
        (["passed", "collection_error"], Tests.RED),
    ],
)
def test_judge_tests(outcomes: list[str], tests: Tests) -> None:
    assert judge_tests(results_of(*outcomes), []) is tests


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        ([3], "shard 3"),
        ([1, 2, 3, 7], "shards 1-3, 7"),
        ([1, 3], "shards 1, 3"),
        ([0], "cpu pool"),
        ([2, 3, 0], "shards 2-3, cpu pool"),
    ],
)
def test_shards_are_named_in_spans(indexes: list[int], text: str) -> None:
    assert shard_names(indexes) == text


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (("n1: no such image", "n1"), ("n2: no such image", "n2"), True),
        (("can't open '/tmp/1/x' on n1", "n1"), ("can't open '/tmp/2/y' on n2", "n2"), True),
        (("n1: no such image", "n1"), ("n2: disk full", "n2"), False),
        (("n10 is down", "n1"), ("n20 is down", "n2"), False),
        (("no node", ""), ("no node", ""), True),
    ],
    ids=["node", "path", "another reason", "part of a name", "no node"],
)
def test_reasons_that_differ_in_their_place_are_one(
    first: tuple[str, str], second: tuple[str, str], same: bool
) -> None:
    assert (placeless(*first) == placeless(*second)) == same
