"""What a try came to: the table by cases, and its rules over the full cross product."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gpuci.execution.slurm.fate import ENDED, NO_IMAGE, OF_STATE, Fate, ending_of, judge
from gpuci.execution.slurm.states import TERMINAL, JobFacts
from gpuci_node.contract import EXIT_CODES, VERDICTS

NODE = "gpu003"


def facts(
    state: str, code: int | None = 0, signal: int | None = 0, reason: str = "None", **more: Any
) -> JobFacts:
    return JobFacts("17", "job", state, reason, code, signal, **{"node": NODE, **more})


def wrote(verdict: str | None, **more: Any) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"verdict": verdict, "exit_code": EXIT_CODES[verdict], "reason": f"node: {verdict}", **more}


FAULT = {"fault": {"node": "gpu009", "reason": "7 of 8 GPUs"}}
OVER_MEMORY = (
    "slurmstepd-gpu001: error: StepId=691.batch exceeded memory limit (429309952 > 52428800), being killed"
)
OOM_KILL = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.batch."
Case = tuple[JobFacts | None, dict[str, Any] | None, str, str, tuple[str, bool, str | None, str]]
# (facts, verdict of the node, problem, log) -> (verdict, retry, node left out, part of the reason)
CASES: dict[str, Case] = {
    "passed": (facts("COMPLETED"), wrote("passed"), "", "", ("passed", False, None, "")),
    "red tests": (
        facts("FAILED", 1, reason="NonZeroExitCode"), wrote("failed"), "", "",
        ("failed", False, None, "node: failed"),
    ),
    "completed and no verdict": (
        facts("COMPLETED"), None, "", "", ("infra", False, None, "exit code 0; it left no verdict"),
    ),
    "passed, journal torn": (
        facts("COMPLETED"), wrote("passed"), "journal cut", "",
        ("infra", False, None, "its tests passed, but journal cut"),
    ),
    "red, journal torn": (
        facts("FAILED", 1), wrote("failed"), "journal cut", "",
        ("infra", False, None, "node: failed; journal cut"),
    ),
    "passed, then exit 1": (
        facts("FAILED", 1), wrote("passed"), "", "",
        ("infra", False, None, "its tests passed, but the job ended with exit code 1"),
    ),
    "passed, by accounting": (
        JobFacts("1", "j", "COMPLETED", exit_code=0), wrote("passed"), "", "", ("passed", False, None, ""),
    ),
    "passed, exit code not known": (
        JobFacts("1", "j", "COMPLETED"), wrote("passed"), "", "",
        ("infra", False, None, "its tests passed, but the job ended with exit code unknown"),
    ),
    "passed, another exit code in the verdict": (
        facts("COMPLETED"), wrote("passed", exit_code=1), "", "", ("infra", False, None, "left no verdict"),
    ),
    "passed, Slurm forgot": (
        None, wrote("passed"), "", "",
        ("infra", False, None, "its tests passed, but Slurm no longer knows how the job ended"),
    ),
    "red, Slurm forgot": (None, wrote("failed"), "", "", ("failed", False, None, "node: failed")),
    "nothing at all": (None, None, "", "", ("infra", False, None, "no longer knows")),
    "scancel, node ended in order": (
        facts("CANCELLED", 7), wrote("cancelled"), "", "",
        ("cancelled", False, None, "somebody (Slurm does not say who); the node said: node: cancelled"),
    ),
    "scancel, who by accounting": (
        facts("CANCELLED", None, None, cancelled_by="1001"), None, "", "",
        ("cancelled", False, None, "cancelled by user 1001"),
    ),
    "scancel after the tests failed": (
        facts("CANCELLED", 0, 15), wrote("failed"), "", "", ("failed", False, None, "node: failed"),
    ),
    "scancel after the tests passed": (
        facts("CANCELLED", 0, 15), wrote("passed"), "", "",
        ("cancelled", False, None, "its tests passed, but the job was cancelled"),
    ),
    "time limit": (
        facts("TIMEOUT", 0, 15, "TimeLimit"), wrote("timeout"), "", "",
        ("timeout", False, None, "reached its time limit; the node said: node: timeout"),
    ),
    "time limit, TERM was first": (
        facts("TIMEOUT", 0, 15), wrote("cancelled"), "", "", ("timeout", False, None, "time limit"),
    ),
    "nearly over, in order": (
        facts("FAILED", 3), wrote("timeout"), "", "", ("timeout", False, None, "node: timeout"),
    ),
    "deadline": (facts("DEADLINE"), None, "", "", ("timeout", False, None, "--deadline")),
    "deadline before the start": (
        facts("DEADLINE", node=""), None, "", "", ("queue_timeout", False, None, "could not start"),
    ),
    "memory, by Slurm": (
        facts("OUT_OF_MEMORY", 0, 125), None, "", "", ("failed", False, None, "memory ran out"),
    ),
    "memory, a test was killed and told": (
        facts("OUT_OF_MEMORY", 0, 125), wrote("failed"), "", "", ("failed", False, None, "node: failed"),
    ),
    "memory, all passed": (
        facts("OUT_OF_MEMORY", 0, 125), wrote("passed"), "", "",
        ("failed", False, None, "its tests passed, but memory ran out"),
    ),
    "memory, by its limit": (
        facts("FAILED", 0, 9, "JobLaunchFailure"), None, "", OVER_MEMORY,
        ("failed", False, None, "memory ran out"),
    ),
    "memory, by the kernel": (
        facts("FAILED", 137), None, "", OOM_KILL, ("failed", False, None, "memory ran out"),
    ),
    "memory in the log of a job that failed": (
        facts("FAILED", 1), None, "", OOM_KILL, ("infra", False, None, "exit code 1"),
    ),
    "killed on its node": (
        facts("FAILED", 0, 9, "JobLaunchFailure"), None, "", "", ("infra", True, NODE, "killed on its node"),
    ),
    "log can't be opened": (
        facts("FAILED", 0, 53, "JobLaunchFailure"), None, "", "", ("infra", True, NODE, "shared folder"),
    ),
    "keeper killed": (facts("FAILED", 137), None, "", "", ("infra", False, None, "exit code 137")),
    "no engine": (
        facts("FAILED", 127), None, "", "", ("infra", True, NODE, "could not begin (exit code 127)"),
    ),
    "engine failed": (facts("FAILED", 125), None, "", "", ("infra", True, NODE, "could not begin")),
    "script gave up": (facts("FAILED", 4), None, "", "", ("infra", True, NODE, "could not begin")),
    "script left": (facts("FAILED", 7), None, "", "", ("cancelled", False, None, "left at once")),
    "script refused": (facts("FAILED", 2), None, "", "", ("config_error", False, None, "before any test")),
    "crash of the keeper": (facts("FAILED", 1), None, "", "", ("infra", False, None, "left no verdict")),
    "unhealthy node": (
        facts("FAILED", 4), wrote("infra", **FAULT), "", "", ("infra", True, "gpu009", "7 of 8 GPUs"),
    ),
    "unhealthy node without a name": (
        facts("FAILED", 4), wrote("infra", fault={"reason": "x"}), "", "", ("infra", True, NODE, "x"),
    ),
    "infra without a fault": (
        facts("FAILED", 4), wrote("infra", fault=None), "", "", ("infra", False, None, "node: infra"),
    ),
    "a fault of a run that failed": (
        facts("FAILED", 1), wrote("failed", **FAULT), "", "", ("failed", False, None, "node: failed"),
    ),
    "node failed": (
        facts("NODE_FAIL", reason="NodeDown"), None, "", "", ("infra", True, NODE, "the node failed"),
    ),
    "node failed, TERM was first": (
        facts("NODE_FAIL"), wrote("cancelled"), "", "",
        ("infra", True, NODE, "the node said: node: cancelled"),
    ),
    "node failed after red tests": (facts("NODE_FAIL"), wrote("failed"), "", "", ("failed", False, None, "")),
    "no boot": (facts("BOOT_FAIL"), None, "", "", ("infra", True, NODE, "failed")),
    "preempted": (
        facts("PREEMPTED", 0, 9), wrote("cancelled"), "", "", ("preempted", True, None, "higher priority"),
    ),
    "preempted, USR1 was first": (
        facts("PREEMPTED", 0, 15), wrote("timeout"), "", "", ("preempted", True, None, "higher priority"),
    ),
    "preempted after red tests": (facts("PREEMPTED"), wrote("failed"), "", "", ("failed", False, None, "")),
    "requeued by somebody": (
        facts("FAILED", 7, restarts=1), wrote("cancelled"), "", "",
        ("infra", True, NODE, "start the job again"),
    ),
    "requeued before its verdict": (
        facts("COMPLETED", restarts=1), None, "", "", ("infra", True, NODE, "again"),
    ),
    "requeued when it had failed": (
        facts("FAILED", 7, restarts=1), wrote("failed"), "", "", ("failed", False, None, "node: failed"),
    ),
    "another cluster": (facts("REVOKED"), None, "", "", ("infra", False, None, "federation")),
    "not over": (
        facts("RUNNING", None, None), None, "", "", ("infra", False, None, "is RUNNING, which is no end"),
    ),
    "configuration": (facts("FAILED", 2), wrote("config_error"), "", "", ("config_error", False, None, "")),
    "not approved": (facts("FAILED", 8), wrote("unauthorized"), "", "", ("unauthorized", False, None, "")),
    "rubbish for a verdict": (
        facts("COMPLETED"), {"verdict": ["passed"]}, "", "", ("infra", False, None, ""),
    ),
    "unknown verdict": (facts("COMPLETED"), {"verdict": "great"}, "", "", ("infra", False, None, "")),
    "hostile reason": (
        facts("FAILED", 1), wrote("failed", reason="a\x1b[2J\n::error::b"), "", "",
        ("failed", False, None, "a [2J ::error::b"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str) -> None:
    job, verdict, problem, log, (expected, retry, exclude, reason) = CASES[case]
    fate = judge(job, verdict, problem, [log])
    assert (fate.verdict, fate.retry, fate.exclude) == (expected, retry, exclude), fate
    assert reason in fate.reason


IN_REGISTRY = (
    "initializing source docker://reg.example/a/b@sha256:00: reading manifest sha256:00 in reg.example/a/b: "
)
PINGING = 'pinging container registry reg.example: Get "https://reg.example/v2/": '


@pytest.mark.parametrize(
    ("said", "part"),
    [
        (IN_REGISTRY + "unauthorized: authentication required", "the registry refused the credential"),
        (IN_REGISTRY * 5 + "unauthorized: authentication required", "the registry refused the credential"),
        (IN_REGISTRY + "manifest unknown", "the registry has no such image"),
        (IN_REGISTRY + "name unknown", "the registry has no such image"),
        (IN_REGISTRY + "toomanyrequests: unauthenticated", ""),
        (PINGING + "dial tcp 10.0.0.1:443: connect: connection refused", ""),
        (PINGING + "net/http: TLS handshake timeout", ""),
        (PINGING + "dial tcp 10.0.0.1:443: i/o timeout", ""),
        (IN_REGISTRY + "received unexpected HTTP status: 503 Service Unavailable", ""),
        ("words of no known kind", ""),
        ("", ""),
    ],
)
def test_an_image_that_a_registry_refuses_is_refused_to_each_node(said: str, part: str) -> None:
    reason = f"{NO_IMAGE}{said}"
    told = wrote("infra", reason=reason, fault={"node": "gpu009", "reason": reason})
    fate = judge(facts("FAILED", 4), told, "")
    if part:
        assert (fate.verdict, fate.retry, fate.exclude) == ("config_error", False, None)
        assert fate.reason.startswith(f"{part}; ")
        assert "container.image" in fate.reason
        assert "docs/configuration.md" in fate.reason
    else:
        assert (fate.verdict, fate.retry, fate.exclude) == ("infra", True, "gpu009")
        assert said in fate.reason


def test_what_another_fault_says_of_a_registry_is_no_matter() -> None:
    told = wrote("infra", fault={"node": "gpu009", "reason": "no scratch: unauthorized"})
    assert judge(facts("FAILED", 4), told, "").verdict == "infra"


def test_shards_whose_nodes_failed_say_the_same() -> None:
    reasons = {judge(facts("NODE_FAIL", node=node), None, "").reason for node in ("gpu001", "gpu002")}
    assert reasons == {"the node failed; it left no verdict"}


STATES = [*sorted(TERMINAL), "RUNNING", "COMPLETING", "?"]
EXITS = [(0, 0), (None, None), (1, 0), (2, 0), (3, 0), (4, 0), (7, 0), (127, 0), (137, 0), (0, 9), (0, 53)]
REASONS = ["None", "JobLaunchFailure", "NonZeroExitCode"]
DOCUMENTS = [None, *map(wrote, VERDICTS), wrote("infra", **FAULT), wrote("passed", exit_code=1), {}]
JOBS: list[JobFacts | None] = [
    None,
    *(
        facts(state, *ended, reason=reason, restarts=restarts, node=node)
        for state, ended, reason, restarts, node in itertools.product(
            STATES, EXITS, REASONS, (0, 1), ("", NODE)
        )
    ),
]
PRODUCT = list(itertools.product(JOBS, DOCUMENTS, ("", "journal cut"), ("", OVER_MEMORY)))


def has_all_evidence(job: JobFacts | None, document: dict[str, Any] | None, problem: str) -> bool:
    """The rule in words: state COMPLETED, exit code 0, the node's verdict, a channel without a problem."""
    return (
        job is not None
        and job.state == "COMPLETED"
        and (job.exit_code, job.signal) == (0, 0)
        and document == wrote("passed")
        and problem == ""
    )


@pytest.fixture(scope="module")
def fates() -> list[Fate]:
    return [judge(job, document, problem, [log]) for job, document, problem, log in PRODUCT]


def test_every_combination_has_a_verdict(fates: list[Fate]) -> None:
    assert len(fates) > 40000
    assert {fate.verdict for fate in fates} == set(VERDICTS)
    assert all(fate.reason or fate.verdict == "passed" for fate in fates)
    assert all(fate.reason.isprintable() for fate in fates)


def test_nothing_passes_without_all_evidence_and_nothing_else_is_needed(fates: list[Fate]) -> None:
    for (job, document, problem, _), fate in zip(PRODUCT, fates, strict=True):
        assert (fate.verdict == "passed") == has_all_evidence(job, document, problem), (job, document, fate)


def test_what_the_code_did_is_not_tried_again(fates: list[Fate]) -> None:
    assert {fate.verdict for fate in fates if fate.retry} == {"infra", "preempted"}


def test_a_node_is_left_out_only_of_another_try_and_not_after_preemption(fates: list[Fate]) -> None:
    assert all(fate.retry and fate.verdict == "infra" for fate in fates if fate.exclude is not None)
    assert {fate.exclude for fate in fates} == {None, NODE, "gpu009"}


def test_a_fault_that_the_node_told_is_tried_elsewhere_but_not_after_a_cancel(fates: list[Fate]) -> None:
    for (job, document, _, _), fate in zip(PRODUCT, fates, strict=True):
        if document == wrote("infra", **FAULT) and job is not None and job.state in ("TIMEOUT", "CANCELLED"):
            elsewhere = job.state == "TIMEOUT"
            assert (fate.retry, fate.exclude) == (elsewhere, "gpu009" if elsewhere else None)


def test_red_tests_stay_red_however_the_job_ended(fates: list[Fate]) -> None:
    for (job, document, problem, _), fate in zip(PRODUCT, fates, strict=True):
        never_ran = job is not None and job.state == "DEADLINE" and not job.node
        no_log = job is not None and job.state == "FAILED" and job.signal == 53
        if document == wrote("failed") and not problem and not never_ran and not no_log:
            assert fate.verdict == "failed", (job, fate)


def test_each_state_of_slurm_that_is_an_end_is_in_the_table() -> None:
    assert set(OF_STATE) | {"COMPLETED", "FAILED"} == TERMINAL


def test_an_end_like_any_other_is_told_by_its_code() -> None:
    assert ending_of(facts("FAILED", 1), "failed", ()) is ENDED


def test_a_node_that_began_and_could_not_write_its_verdict_is_not_one_that_could_not_begin() -> None:
    silent = judge(facts("FAILED", 4), None, "", began=True)
    assert (silent.verdict, silent.retry) == ("infra", False)
    assert "shared folder" in silent.reason
    assert judge(facts("FAILED", 4), None, "").retry
