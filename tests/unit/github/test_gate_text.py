"""The gate's words: the verdict of the run stands first, also where results say something better."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest

from gpuci.github import gate_text
from gpuci.github.gate import BY_RESULTS, JOBS, ROWS, Decision, Problem, decide
from gpuci.model import Report, ShardReport
from gpuci.reporting.links import Links
from gpuci.reporting.markdown import LEAST_BYTES

LINKS = Links("https://github.com", "org/repo", "a" * 40, "77")
SHARD = ShardReport(1, "passed", 1.0, 2.0)
GREEN = Report("passed", "all shards passed", {"passed": 3}, (), (SHARD,))
RED = Report("failed", "2 failed", {"failed": 2}, (), (replace(SHARD, verdict="failed"),))
LOST = Report("infra", "shard 1: infra (no answer)", {"passed": 1}, (), (replace(SHARD, verdict="infra"),))


FACTS = {
    **dict.fromkeys(JOBS, "success"),
    **{"affected": "true", "approved": "true", "push": "false"},
    **{"environment": "good", "plan": "shards", "results": "passed"},
}


def decided(results: str = "passed", policies: dict[str, bool] | None = None, **jobs: str) -> Decision:
    facts = FACTS | {"results": results}
    facts |= {name.replace("_", "-"): result for name, result in jobs.items()}
    return decide(facts, policies or {})


CASES = {
    "passed": (decided(), GREEN, "3 passed"),
    "failed": (decided("failed"), RED, "2 failed"),
    "failed, by errors": (
        decided("failed"),
        replace(RED, counts={"collection_error": 3, "passed": 1}),
        "failed: 3 collection errors, 1 passed",
    ),
    "infra": (decided("infra"), LOST, "infra: shard 1: infra (no answer)"),
    "accepted": (
        decided("infra", {"infra": True}),
        LOST,
        "infra accepted by policy-infra: shard 1: infra (no answer)",
    ),
    "accepted, two words": (
        decided("queue_timeout", {"queue_timeout": True}),
        replace(LOST, reason="full"),
        "queue timeout accepted by policy-queue-timeout: full",
    ),
    "not only results": (
        decided(gpu_tests="failure"),
        GREEN,
        "infra: all results are good, and yet a job of gpu-tests failed",
    ),
    "no results": (
        decided(build_image="failure"),
        None,
        "config error: build-image failed, so no test ran",
    ),
}


@pytest.mark.parametrize(("decision", "report", "text"), CASES.values(), ids=CASES)
def test_the_status(decision: Decision, report: Report | None, text: str) -> None:
    assert gate_text.status_text(decision, report) == text


def test_a_page_starts_with_the_verdict_of_the_run() -> None:
    page = gate_text.page(decided(gpu_tests="failure"), GREEN, ["**What now:** x."], LINKS)
    assert page.startswith("## ❌ GPU tests not finished: the infrastructure failed\n\n**3 passed** in")
    assert "all results are good, and yet a job of gpu-tests failed" in html.unescape(page)
    assert "\n\n**What now:** x.\n\n" in page


@pytest.mark.parametrize("row", [row for row in ROWS if row.verdict != BY_RESULTS], ids=lambda row: row.name)
def test_a_page_without_results(row: object) -> None:
    decision = Decision(row, row.verdict, row.verdict == "passed", accepted=False)  # type: ignore[arg-type, attr-defined]
    page = gate_text.page(decision, None, gate_text.remarks(decision), LINKS)
    head, text, *notes = page.rstrip("\n").split("\n\n")
    sign = {"passed": "✅", "unauthorized": "⏸️"}.get(decision.verdict, "❌")
    assert head.startswith(f"## {sign} GPU tests ")
    assert text.lower() == f"{decision.row.text}.".lower()
    assert notes == ([f"**What now:** {decision.then}."] if decision.then else [])


def test_an_approval_that_was_taken_back_is_waited_for() -> None:
    decision = decided("unauthorized")
    page = gate_text.page(decision, replace(LOST, verdict="unauthorized"), [], LINKS)
    assert page.startswith("## ⏸️ GPU tests wait for approval\n\n")


def test_a_page_keeps_its_limit() -> None:
    many = tuple(replace(SHARD, index=n, reason="x" * 400, verdict="infra") for n in range(500))
    page = gate_text.page(
        decided("infra"), replace(LOST, shards=many), ["note"], LINKS, limit_bytes=LEAST_BYTES
    )
    assert len(page.encode()) <= LEAST_BYTES


@pytest.mark.parametrize(
    ("decision", "partial", "kept", "notes"),
    [
        pytest.param(decided(), False, False, [], id="nothing to say"),
        pytest.param(decided("failed"), False, False, [], id="the tests say it"),
        pytest.param(
            decided("failed", gpu_tests="cancelled"),
            False,
            False,
            ["gpu-tests was cancelled, and tests had failed before."],
            id="failed, then cancelled",
        ),
        pytest.param(decided(), True, True, [gate_text.PARTIAL], id="a part"),
        pytest.param(decided(affected="false"), False, True, [gate_text.KEPT], id="an earlier result stays"),
        pytest.param(
            decided("preempted", {"preempted": True}),
            False,
            False,
            [
                "**What now:** other jobs took the nodes twice: run the failed jobs again, or use a partition"
                " that does not preempt.",
                "`policy-preempted` lets this pass.",
            ],
            id="accepted",
        ),
    ],
)
def test_remarks(decision: Decision, partial: bool, kept: bool, notes: list[str]) -> None:
    assert gate_text.remarks(decision, partial=partial, kept=kept) == notes


def test_why_there_is_no_approval() -> None:
    refused = decided(approved="false")
    first, _ = gate_text.remarks(refused, problem=Problem(what="@mallory has no write access <b>"))
    assert first == "wait-for-label: <code>&#64;mallory has no write access &#60;b&#62;</code>"
    assert gate_text.remarks(decided(), problem=Problem(what="the label was set")) == []


@pytest.mark.parametrize("job", ["find-changed", "build-image", "push-image", "calculate-shards"])
def test_a_job_that_failed_is_told_by_its_own_words(job: str) -> None:
    failed = decided(policies=None, **{job.replace("-", "_"): "failure"})
    problem = Problem("config_error", "no key reaches this job <b>", "give it one")
    told = gate_text.status_text(failed, None, problem)
    assert told == f"{failed.verdict.replace('_', ' ')}: {problem.what} ({job} failed)"
    first, then = gate_text.remarks(failed, problem=problem)
    assert first == f"{job}: <code>no key reaches this job &#60;b&#62;</code>"
    assert then.startswith("**What now:** <code>give it one")
    assert gate_text.reason(failed, None) == failed.row.text


LOG = "the log of that job says why"
AGAIN = "run the failed jobs again"


@pytest.mark.parametrize(
    ("problem", "then"),
    [
        (Problem(), LOG),
        (Problem("config_error", "it is red"), ""),
        (Problem("config_error", "it is red", "paint it"), "paint it"),
        (Problem("infra", "no answer"), AGAIN),
        (Problem("infra", "no answer", "ask its owner"), f"ask its owner; {AGAIN}"),
        (Problem("infra", "no answer", f"{AGAIN} later"), f"{AGAIN} later"),
    ],
    ids=["nobody knows", "no advice", "the error's own", "infra", "infra with advice", "not twice"],
)
def test_what_to_do_is_what_the_error_says(problem: Problem, then: str) -> None:
    facts = FACTS | {"build-image": "failure"}
    assert gate_text.advice(decide(facts, {}, {"build-image": problem}), problem) == then


def test_which_environment_is_refused_and_why() -> None:
    refused = decided(approved="false", wait_for_label="failure", environment="unprotected")
    problem = Problem(what="the environment gpu is missing")
    why = problem.what
    assert gate_text.status_text(refused, None, problem) == f"config error: {why}"
    assert gate_text.reason(refused, None) == refused.row.text
    first, then = gate_text.remarks(refused, problem=problem)
    assert first == f"wait-for-label: <code>{why}</code>"
    assert "Settings > Environments" in then
    assert gate_text.status_text(decided(approved="false"), None, problem) != f"config error: {why}"


@pytest.mark.parametrize(
    ("attempts", "told"),
    [
        ({}, []),
        ({1: 3, 2: 3}, []),
        ({2: 1, 1: 1, 3: 3}, ["Results of earlier attempts: shards 1-2 (attempt 1)."]),
        ({1: 2, 2: 3, 5: 1}, ["Results of earlier attempts: shard 5 (attempt 1); shard 1 (attempt 2)."]),
    ],
    ids=["unknown", "all of this one", "a shard ran again", "three attempts"],
)
def test_results_of_earlier_attempts_are_told(attempts: dict[int, int], told: list[str]) -> None:
    assert gate_text.earlier(attempts, 3) == told
