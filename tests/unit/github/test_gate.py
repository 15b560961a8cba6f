"""The gate over the full product of what can happen, against rules that are stated here a second time."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuci.github.gate import BY_RESULTS, COLUMNS, JOBS, POLICIES, ROWS, THEN, Decision, Problem, decide
from gpuci_node.contract import EXIT_CODES, VERDICTS

README = Path(__file__).parents[3] / "actions" / "gpu-tests-passed" / "README.md"
# What ran nothing changes no result of a commit (`keep-final`); without approval a run says nothing of it.
KEEP_FINAL = {
    *(f"{job}-cancelled" for job in JOBS),
    "find-changed-failed",
    "find-changed-skipped",
    "unaffected",
    "environment-unprotected",
    "wait-for-label-failed",
    "wait-for-label-skipped",
    "nothing-due",
}
GOOD = dict.fromkeys(JOBS, "success") | {
    "affected": "true",
    "approved": "true",
    "environment": "good",
    "push": "true",
    "plan": "shards",
    "results": "passed",
}


def product() -> Iterator[dict[str, str]]:
    """All that can happen; what shards said counts only if the plan has some."""
    for values in itertools.product(*COLUMNS.values()):
        facts = dict(zip(COLUMNS, values, strict=True))
        if facts["plan"] == "shards" or facts["results"] == "passed":
            yield facts


def expected(f: dict[str, str]) -> str:
    """The verdict by the rules, as a person would say them."""
    others = [f[job] for job in JOBS if job != "find-changed"]
    if f["find-changed"] != "success":
        return "cancelled" if f["find-changed"] == "cancelled" else "config_error"
    if f["affected"] == "false" and not {"failure", "cancelled"} & set(others):
        return "passed"
    if f["wait-for-label"] != "success":
        return "cancelled" if f["wait-for-label"] == "cancelled" else "config_error"
    if f["approved"] == "false":
        return "unauthorized"
    if f["build-image"] not in ("success", "absent"):
        return {"cancelled": "cancelled", "failure": "config_error", "skipped": "infra"}[f["build-image"]]
    if f["push-image"] in ("cancelled", "failure"):
        return "cancelled" if f["push-image"] == "cancelled" else "infra"
    if f["push-image"] != "success" and f["push"] == "true":
        return "infra"
    if f["calculate-shards"] != "success":
        return {"cancelled": "cancelled", "failure": "config_error"}.get(f["calculate-shards"], "infra")
    if f["plan"] == "lost":
        return "infra"
    if f["gpu-tests"] == "cancelled":
        return "failed" if f["results"] == "failed" else "cancelled"
    if f["plan"] == "nothing-found":
        return "failed"
    if f["plan"] == "nothing-due":
        return "passed" if f["gpu-tests"] == "skipped" else "infra"
    if f["gpu-tests"] == "skipped":
        return "infra"
    disagrees = f["gpu-tests"] == "failure" and f["results"] == "passed"
    return "infra" if disagrees else f["results"]


def test_the_full_product() -> None:
    met: Counter[str] = Counter()
    for facts in product():
        decision = decide(facts, {})
        met[decision.row.name] += 1
        assert decision.verdict == expected(facts), facts
        assert decision.passed == (decision.verdict == "passed")
        if decision.status == "result":  # only a commit that was approved, in a run that was not stopped
            assert facts["approved"] == "true", facts
            assert decision.verdict != "cancelled", facts
    assert met.keys() == {row.name for row in ROWS}, "a row that nothing reaches"
    assert sum(met.values()) > 500_000


def test_an_environment_that_was_refused_is_told_as_that() -> None:
    """And not as an approval that could not be found out; in no other state does it change anything."""
    for result in JOBS["wait-for-label"]:
        found, plain = (
            decide({**GOOD, "approved": "false", "wait-for-label": result, "environment": value}, {})
            for value in ("unprotected", "good")
        )
        assert found.verdict == plain.verdict
        assert (found.row.name == "environment-unprotected") == (result == "failure")
        assert found == plain or result == "failure"


@pytest.mark.parametrize("job", JOBS)
def test_a_pass_needs_that_each_job_did_its_part(job: str) -> None:
    """What is not success passes only where the table says so in as many words."""
    for value in JOBS[job]:
        decision = decide({**GOOD, job: value}, {})
        assert decision.passed == (value == "success" or (job, value) == ("build-image", "absent"))
        quiet = decide({**GOOD, job: value, "push": "false"}, {})
        assert quiet.passed == (decision.passed or (job == "push-image" and value in ("skipped", "absent")))


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("job", ["success", "failure"])
def test_the_verdict_of_the_results(verdict: str, job: str) -> None:
    decision = decide({**GOOD, "results": verdict, "gpu-tests": job}, {})
    assert decision.verdict == ("infra" if (verdict, job) == ("passed", "failure") else verdict)
    assert decision.exit_code == EXIT_CODES[decision.verdict]
    assert bool(decision.then) == (decision.verdict not in ("passed", "failed"))


@pytest.mark.parametrize("verdict", VERDICTS)
def test_what_a_policy_may_accept(verdict: str) -> None:
    everything = dict.fromkeys(VERDICTS, True)
    decision = decide({**GOOD, "results": verdict}, everything)
    accepted = verdict in POLICIES and verdict != "unauthorized"  # a shard can forge that
    assert decision.accepted == accepted
    assert decision.passed == (verdict == "passed" or accepted)
    assert decision.exit_code == (0 if decision.passed else EXIT_CODES[verdict])
    assert not {"failed", "config_error", "timeout", "cancelled"} & set(POLICIES)
    for other in set(POLICIES) - {verdict}:
        assert decide({**GOOD, "results": verdict}, {other: True}) == decide({**GOOD, "results": verdict}, {})


def test_a_policy_may_accept_that_nobody_approved() -> None:
    decision = decide({**GOOD, "approved": "false"}, {"unauthorized": True})
    assert (decision.verdict, decision.accepted, decision.exit_code) == ("unauthorized", True, 0)


@pytest.mark.parametrize("job", [row.job for row in ROWS if row.job])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_verdict_of_a_job_that_failed_is_that_of_its_error(job: str, verdict: str) -> None:
    """What it can't know, such as `passed`, is not taken from it."""
    facts = {**GOOD, job: "failure"}
    plain, told = decide(facts, {}), decide(facts, {}, {job: Problem(verdict, "why")})
    assert told.row == plain.row
    assert told.verdict == (verdict if verdict in ("config_error", "infra") else plain.verdict)
    others = {name: Problem("infra", "why") for name in JOBS if name != job}
    assert decide(facts, {}, others) == plain


@pytest.mark.parametrize("approved", ["true", "false"])
def test_no_policy_accepts_what_failed_before_the_approval(approved: str) -> None:
    facts = {**GOOD, "find-changed": "failure", "approved": approved}
    decision = decide(facts, dict.fromkeys(POLICIES, True), {"find-changed": Problem("infra", "why")})
    assert (decision.verdict, decision.passed) == ("infra", approved == "true")


STATES = {
    "passed": "success",
    "failed": "failure",
    "timeout": "failure",
    "config_error": "failure",
    "infra": "error",
    "preempted": "error",
    "queue_timeout": "error",
    "cancelled": "error",
    "unauthorized": "error",
}


def result_of(verdict: str, **changed: str) -> Decision:
    return decide({**GOOD, "results": verdict, **changed}, {})


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_state_of_the_commit(verdict: str) -> None:
    assert result_of(verdict).state == STATES[verdict]
    assert decide({**GOOD, "results": verdict}, {verdict: True}).state == (
        "success" if verdict in POLICIES and verdict != "unauthorized" else STATES[verdict]
    )


def test_what_a_row_does_to_the_commit_status() -> None:
    rules = {row.name: row.status for row in ROWS}
    assert {name for name, rule in rules.items() if rule == "keep-final"} == KEEP_FINAL
    assert {name for name, rule in rules.items() if rule == "keep"} == {"unauthorized"}
    assert set(rules.values()) == {"keep", "keep-final", "result"}
    assert result_of("unauthorized").status == "keep"
    assert result_of("cancelled").status == "keep-final"


def test_every_result_has_its_own_text() -> None:
    texts = [row.text for row in ROWS] + [text for text in THEN.values() if text]
    assert len(set(texts)) == len(texts)
    assert THEN.keys() == set(VERDICTS)
    assert all(row.text for row in ROWS[:-1])
    assert all(len(row.text) < 120 for row in ROWS), "with `infra: ` before it a commit status has to hold it"


def table() -> str:
    """The table as the README has it."""
    lines = ["| row | if | verdict | commit status | what people read |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        same: dict[str, list[str]] = {}
        for name, values in row.when.items():
            same.setdefault(" or ".join(values), []).append(f"`{name}`")
        conditions = "; ".join(f"{', '.join(names)} {values}" for values, names in same.items())
        verdict = "that of the results" if row.verdict == BY_RESULTS else f"`{row.verdict}`"
        text = row.text or "what failed, or which shard has no result, and why"
        lines.append(f"| {row.name} | {conditions or 'none of these'} | {verdict} | {row.status} | {text} |")
    return "\n".join(lines)


def test_the_readme_has_the_table() -> None:
    found = re.search(r"<!-- table -->\n(.*?)\n<!-- /table -->", README.read_text("utf-8"), re.DOTALL)
    assert found
    assert found[1] == table()
