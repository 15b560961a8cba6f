"""The gate as a job runs it: what jobs left in, status, comment, annotations, files and exit code out."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Pull, Repository, State, Token

from gpuci.config import document as config_document
from gpuci.config.model import Config, Profile
from gpuci.errors import ConfigError
from gpuci.github.approval_table import UNPROTECTED
from gpuci.github.gate import JOBS
from gpuci.github.step import ANNOTATIONS, Step
from gpuci.model import Plan, Shard, ShardRun, Unit
from gpuci.planning import document as plan_document
from gpuci.reporting import document as report_document
from gpuci.results.runs_document import to_document
from gpuci.steps import gpu_tests_passed

SHA, OTHER = "a" * 40, "b" * 40
BOT = "github-actions[bot]"
PERMISSIONS = {"actions": "read", "pull-requests": "write", "statuses": "write"}  # of the job in gpu.yml
TESTS = {1: "a.py::test_a", 2: "b.py::test_b"}
CPU = "c.py::test_c"


def unit(name: str, file: str, mode: str = "normal") -> Unit:
    return Unit(name, ".", file, "all", mode, 1, "h100", 10.0, 900.0)


PLAN = Plan(
    config=config_document.to_document(
        Config(profiles=(Profile("h100", gpus=8),), cost={"usd-per-gpu-hour": 2.0})
    ),
    sha=SHA,
    event="pull_request_target",
    roots=(),
    targets=(*TESTS.values(), CPU),
    units=(unit("u1", "a.py"), unit("u2", "b.py"), unit("c", "c.py", "cpu")),
    shards=(Shard(1, "h100", ("u1",), 10.0), Shard(2, "h100", ("u2",), 10.0)),
    cpu_units=("c",),
    skipped=(),
    makespan_seconds=10.0,
    lower_bound_seconds=10.0,
    unknown_durations=0,
)


def ran(shard: int, outcome: str = "passed", **end: Any) -> ShardRun:
    """A shard whose one test had this outcome; it took an hour, and waited a minute."""
    unit_id, nodeid = f"u{shard}", TESTS[shard]
    file = nodeid.partition("::")[0]
    about = {"unit": unit_id, "nodeid": nodeid, "file": file, "seconds": {"call": 1.0}}
    records = (
        {"kind": "collected", "unit": unit_id, "file": file, "ids": [nodeid]},
        {"kind": "end", **about, "outcome": outcome, **end},
    )
    verdict = {"verdict": "passed" if outcome == "passed" else "failed", "node": "n1"}
    return ShardRun(shard, records, verdict, 3600.0, 60.0)


RED = ran(2, "failed", line=7, message="assert 1 == 2", output="E   assert 1 == 2\n")


@dataclass
class Gate:
    """A job that runs the gate, and the GitHub that it speaks to."""

    directory: Path
    server: Server
    needs: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    run_id: str = "77"
    attempt: int = 1
    event: str = "schedule"

    @property
    def shop(self) -> Repository:
        return self.server.state.repositories[0]

    @property
    def status(self) -> tuple[str, str]:
        """State and description of the newest status `gpuci`; empty if there is none."""
        own = [one for one in self.shop.statuses.get(SHA, []) if one["context"] == "gpuci"]
        return (own[-1]["state"], own[-1]["description"]) if own else ("", "")

    @property
    def comments(self) -> list[str]:
        return [comment["body"] for comment in self.shop.comments.get(12, [])]

    @property
    def summary(self) -> str:
        return html.unescape((self.directory / "summary").read_text())

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.directory / "output").read_text().splitlines()
        starts = [number for number, line in enumerate(lines) if "<<gpuci-" in line]
        return {lines[number].partition("<<")[0]: lines[number + 1] for number in starts}

    def leave(self, *runs: ShardRun, attempt: int = 1, sha: str = SHA) -> None:
        """The artifacts of shards."""
        for run in runs:
            folder = self.directory / "results" / f"gpuci-shard-{run.index}-attempt-{attempt}"
            folder.mkdir(parents=True)
            (folder / "runs.json").write_text(json.dumps(to_document(sha, [run])))

    def plan(self, plan: Plan = PLAN) -> None:
        text = json.dumps(plan_document.to_document(plan))
        (self.directory / "plan.json").write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.needs["calculate-shards"]["outputs"]["plan-digest"] = f"sha256:{digest}"

    def run(self, token: str = "tok") -> int:
        for name in ("output", "summary"):
            (self.directory / name).write_text("")
        (self.directory / "event.json").write_text("{}")
        step = Step(
            "gpu-tests-passed",
            {
                "GITHUB_API_URL": self.server.url,
                "GITHUB_EVENT_NAME": self.event,
                "GITHUB_EVENT_PATH": str(self.directory / "event.json"),
                "GITHUB_OUTPUT": str(self.directory / "output"),
                "GITHUB_REF": "refs/heads/main",
                "GITHUB_REPOSITORY": "octo/shop",
                "GITHUB_RUN_ATTEMPT": str(self.attempt),
                "GITHUB_RUN_ID": self.run_id,
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_SHA": SHA,
                "GITHUB_STEP_SUMMARY": str(self.directory / "summary"),
                "GITHUB_WORKFLOW": "gpu",
                "RUNNER_TEMP": str(self.directory),
                "GPUCI_NEEDS": json.dumps(self.needs),
                "GPUCI_PLAN": str(self.directory / "plan.json"),
                "GPUCI_RESULTS": str(self.directory / "results"),
                **{f"GPUCI_{name.upper()}": value for name, value in self.inputs.items()},
            },
            {"GPUCI_TOKEN": token},
        )
        return gpu_tests_passed.run(step)


def needs(**results: str) -> dict[str, Any]:
    """Good jobs about pull request 12, but for `results`."""
    outputs: dict[str, dict[str, str]] = {job: {} for job in JOBS}
    outputs["find-changed"] = {"sha": SHA, "pull-request": "12", "affected": "true", "everything": "true"}
    outputs["wait-for-label"] = {"sha": SHA, "approved": "true"}
    outputs["calculate-shards"] = {"artifact": "gpuci-plan-attempt-1"}
    given = {name.replace("_", "-"): result for name, result in results.items()}
    return {job: {"result": given.get(job, "success"), "outputs": outputs[job]} for job in JOBS}


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    shop = Repository("octo/shop", pulls={12: Pull(12, SHA)}, commits=[SHA, OTHER])
    with Server(State([shop], {"tok": Token(PERMISSIONS)})) as server:
        made = Gate(tmp_path, server, needs(push_image="skipped"))
        made.plan()
        yield made


def set_status(gate: Gate, state: str) -> None:
    gate.shop.statuses[SHA] = [
        {"context": "gpuci", "state": state, "description": "before", "target_url": "", "creator": None}
    ]


# -- results -------------------------------------------------------------------------------------------


def test_green(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    gate.leave(ran(1), ran(2))
    assert gate.run() == 0
    assert gate.status == ("success", "2 passed, 1 elsewhere")
    assert (
        gate.shop.statuses[SHA][-1]["target_url"] == "https://github.com/octo/shop/actions/runs/77/attempts/1"
    )
    assert {name: gate.outputs[name] for name in ("verdict", "passed", "decision")} == {
        "verdict": "passed",
        "passed": "true",
        "decision": "results",
    }
    assert "## ✅ GPU tests passed\n\n**2 passed, 1 elsewhere** in 1 h 00 min" in gate.summary
    assert "longest wait in the queue 1 min 00 s" in gate.summary
    assert "GPU time: 16.0 GPU-hours held, $32.00 at $2.00 per GPU-hour" in gate.summary
    (comment,) = gate.comments
    assert "GPU tests passed" in comment
    assert "::error" not in capsys.readouterr().out


def test_red(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    gate.needs["gpu-tests"]["result"] = "failure"
    gate.inputs["root"] = "sub"
    gate.leave(ran(1), RED)
    assert gate.run() == 1
    assert gate.status == ("failure", "1 failed, 1 passed, 1 elsewhere")
    out = capsys.readouterr().out
    assert "::error title=GPU tests failed::1 failed" in out
    assert "::error title=failed%3A b.py%3A%3Atest_b,file=sub/b.py,line=7::assert 1 == 2%0A" in out
    where = f"[<code>b.py:7</code>](https://github.com/octo/shop/blob/{SHA}/sub/b.py#L7)"
    assert where in gate.summary
    assert where in html.unescape(gate.comments[0])


def test_the_files_of_the_report(gate: Gate) -> None:
    gate.leave(ran(1), RED)
    gate.run()
    folder = Path(gate.outputs["report"])
    assert sorted(path.name for path in folder.iterdir()) == ["junit.xml", "report.json", "summary.md"]
    report = report_document.from_document(json.loads((folder / "report.json").read_text()))
    assert (report.verdict, report.sha, report.counts["failed"]) == ("failed", SHA, 1)
    assert ElementTree.parse(folder / "junit.xml").getroot().get("failures") == "1"
    assert html.unescape((folder / "summary.md").read_text()).strip() == gate.summary.strip()


LOST = {
    "no artifact": [ran(1)],
    "of another shard": [ran(1), ShardRun(2, (), None)],
}


@pytest.mark.parametrize(("policy", "code", "state"), [("fail", 4, "error"), ("pass", 0, "success")])
@pytest.mark.parametrize("left", LOST.values(), ids=LOST)
def test_a_shard_without_results_is_no_pass(
    gate: Gate, left: list[ShardRun], policy: str, code: int, state: str
) -> None:
    gate.inputs["policy_infra"] = policy
    gate.leave(*left)
    assert gate.run() == code
    assert gate.status[0] == state
    assert gate.status[1].startswith(
        "infra: shard 2: infra" if code else "infra accepted by policy-infra: shard 2: infra"
    )
    assert gate.outputs["verdict"] == "infra"
    assert gate.outputs["passed"] == ("false" if code else "true")
    assert "**What now:** no test is to blame: run the failed jobs again" in gate.summary
    assert ("`policy-infra` lets this pass." in gate.summary) is not code


FATES = {
    "queue_timeout": (6, "error", "the cluster is full"),
    "preempted": (5, "error", "other jobs took the nodes twice"),
    "timeout": (3, "failure", "raise slurm.time-limit"),
    "config_error": (2, "failure", "which setting"),
}


@pytest.mark.parametrize(("fate", "told"), FATES.items(), ids=FATES)
def test_each_end_has_its_own_words(gate: Gate, fate: str, told: tuple[int, str, str]) -> None:
    code, state, text = told
    words = fate.replace("_", " ")
    gate.leave(ran(1), ShardRun(2, (), None, fate=fate, reason="why"))
    assert gate.run() == code
    assert gate.status == (state, f"{words}: shard 2: {words} (why)")
    assert text in gate.summary


def test_attempts_are_combined(gate: Gate) -> None:
    gate.leave(ran(1), RED)
    gate.leave(ran(2), attempt=2)
    gate.attempt = 2
    assert gate.run() == 0
    assert gate.status == ("success", "2 passed, 1 elsewhere")
    assert "\n\nResults of earlier attempts: shard 1 (attempt 1).\n\n" in gate.summary
    assert "Results of earlier attempts: shard 1 (attempt 1)." in gate.comments[0]
    cost = "24.0 GPU-hours held (8.0 of them in earlier attempts of this run), $48.00 at $2.00 per GPU-hour"
    assert f"GPU time: {cost}" in gate.summary


def test_results_of_an_attempt_to_come_do_not_count(gate: Gate) -> None:
    gate.leave(ran(1), RED)
    gate.leave(ran(2), attempt=2)
    assert gate.run() == 1


def test_results_from_before_the_plan_do_not_count(gate: Gate) -> None:
    gate.attempt = 2
    gate.needs["calculate-shards"]["outputs"]["artifact"] = "gpuci-plan-attempt-2"
    gate.leave(ran(1), ran(2))
    gate.leave(ran(2), attempt=2)
    assert gate.run() == 4
    assert gate.status[1].startswith("infra: shard 1: infra (its job left no results")


def test_results_of_another_commit_do_not_count(gate: Gate) -> None:
    gate.leave(ran(1))
    gate.leave(ran(2), sha=OTHER)
    assert gate.run() == 4
    assert "its results are of another commit" in gate.summary


def test_a_shard_can_t_pass_for_another(gate: Gate) -> None:
    gate.leave(ran(1), RED)
    forged = to_document(SHA, [ran(1), ran(2)])
    (gate.directory / "results/gpuci-shard-1-attempt-1/runs.json").write_text(json.dumps(forged))
    assert gate.run() == 1
    assert "shard 1 told of other shards; that is ignored" in gate.summary


def test_good_results_of_a_failed_job_are_no_pass(gate: Gate) -> None:
    gate.needs["gpu-tests"]["result"] = "failure"
    gate.leave(ran(1), ran(2))
    assert gate.run() == 4
    assert gate.status == ("error", "infra: all results are good, and yet a job of gpu-tests failed")
    assert "GPU tests not finished: the infrastructure failed" in gate.summary


def test_one_job_that_ran_all(gate: Gate) -> None:
    steps = {
        name: {"outcome": job["result"], "outputs": job["outputs"]}
        for name, job in gate.needs.items()
        if "image" not in name
    }
    steps["gpu-tests"] |= {"outcome": "failure", "conclusion": "success"}
    gate.needs = {**steps, "environment": {"outcome": "success", "outputs": {}}}
    gate.inputs["single_job"] = "true"
    (gate.directory / "results").mkdir()
    (gate.directory / "results/runs.json").write_text(json.dumps(to_document(SHA, [ran(1), RED])))
    assert gate.run() == 1
    assert gate.status == ("failure", "1 failed, 1 passed, 1 elsewhere")


def test_what_a_job_spoiled_is_in_all_files(gate: Gate) -> None:
    gate.needs["gpu-tests"]["result"] = "failure"
    gate.leave(ran(1), ran(2))
    gate.run()
    document = json.loads((Path(gate.outputs["report"]) / "report.json").read_text())
    assert (document["verdict"], document["counts"]["passed"]) == ("infra", 2)


def test_a_run_that_was_stopped_shows_what_there_is(gate: Gate) -> None:
    gate.needs["gpu-tests"]["result"] = "cancelled"
    gate.leave(ran(1))
    assert gate.run() == 7
    assert gate.status == ("error", "cancelled: gpu-tests was cancelled")
    assert "## ❌ GPU tests cancelled\n\n**1 not finished, 1 passed" in gate.summary
    assert gate.comments == []


@pytest.mark.parametrize("job", ["cancelled", "failure"])
@pytest.mark.parametrize("left", [[], [ShardRun(1, (), None, fate="cancelled", reason="scancel")]])
def test_a_test_that_failed_is_not_hidden_by_a_shard_that_was_stopped(
    gate: Gate, job: str, left: list[ShardRun]
) -> None:
    set_status(gate, "success")
    gate.needs["gpu-tests"]["result"] = job
    gate.leave(RED, *left)
    assert gate.run() == 1
    assert gate.status[0] == "failure"
    assert gate.status[1].startswith("failed: 1 failed, 1 not finished; shard 1: ")
    assert "## ❌ GPU tests failed\n\n**1 failed, 1 not finished, 1 elsewhere**" in gate.summary
    assert ("gpu-tests was cancelled, and tests had failed before." in gate.summary) == (job == "cancelled")
    (body,) = gate.comments
    assert "GPU tests failed" in body


def test_what_a_policy_accepts_is_a_warning(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    gate.inputs["policy_preempted"] = "pass"
    gate.leave(ran(1), ShardRun(2, (), None, fate="preempted"))
    assert gate.run() == 0
    assert "::warning title=GPU tests not finished" in capsys.readouterr().out


# -- no results ------------------------------------------------------------------------------------------

UNREACHED = {
    "nobody approved": ("wait-for-label", {"approved": "false"}, "unauthorized"),
    "another commit was approved": ("wait-for-label", {"sha": OTHER}, "unauthorized"),
    "no job ran": ("gpu-tests", {}, "gpu-tests-skipped"),
}


@pytest.mark.parametrize(("job", "outputs", "row"), UNREACHED.values(), ids=UNREACHED)
def test_results_that_can_t_be_of_this_run_are_not_shown(
    gate: Gate, job: str, outputs: dict[str, str], row: str
) -> None:
    gate.leave(ran(1), ran(2))
    gate.needs[job]["outputs"] |= outputs
    gate.needs[job]["result"] = "skipped" if job == "gpu-tests" else "success"
    assert gate.run() != 0
    assert gate.outputs["decision"] == row
    assert [path.name for path in Path(gate.outputs["report"]).iterdir()] == ["summary.md"]
    assert bool(gate.comments) == (job == "gpu-tests")


@pytest.mark.parametrize(("policy", "code"), [("fail", 8), ("pass", 0)])
@pytest.mark.parametrize("before", ["", "pending", "success", "failure"])
def test_without_approval_nothing_is_said_of_the_commit(
    gate: Gate, before: str, policy: str, code: int
) -> None:
    if before:
        set_status(gate, before)
    gate.needs = needs(
        build_image="skipped", push_image="skipped", calculate_shards="skipped", gpu_tests="skipped"
    )
    gate.needs["wait-for-label"]["outputs"]["approved"] = "false"
    gate.inputs["policy_unauthorized"] = policy
    assert gate.run() == code
    assert gate.server.requests == []
    assert gate.status[0] == before
    assert "## ⏸️ GPU tests wait for approval\n\nNobody approved this commit.\n" in gate.summary
    assert "the summary of wait-for-label says who can, and how" in gate.summary


@pytest.mark.parametrize(
    ("before", "state"), [("", "failure"), ("pending", "failure"), ("success", "success")]
)
def test_an_environment_that_is_not_protected_is_told_by_its_own_reason(
    gate: Gate, before: str, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if before:
        set_status(gate, before)
    skipped = dict.fromkeys(("build_image", "push_image", "calculate_shards", "gpu_tests"), "skipped")
    gate.needs = needs(wait_for_label="failure", **skipped)
    why = "the environment gpu is missing: the first job that names it creates it"
    told = {"approved": "false", "decision": UNPROTECTED.name, "reason": why}
    gate.needs["wait-for-label"]["outputs"] |= told
    assert gate.run() == 2
    assert gate.status[0] == state
    if state == "failure":
        assert gate.status[1] == f"config error: {why}"
    assert "could not be found out" not in gate.summary + capsys.readouterr().out
    assert f"wait-for-label: <code>{why}</code>" in gate.summary


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "success"),
        ("pending", "success"),
        ("success", "success"),
        ("failure", "failure"),
        ("error", "error"),
    ],
)
def test_a_change_that_affects_nothing_changes_no_result(gate: Gate, before: str, after: str) -> None:
    if before:
        set_status(gate, before)
    gate.needs = needs(
        build_image="skipped", push_image="skipped", calculate_shards="skipped", gpu_tests="skipped"
    )
    gate.needs["find-changed"]["outputs"]["affected"] = "false"
    assert gate.run() == 0
    assert gate.status[0] == after
    assert ("before" in gate.status[1]) == (before not in ("", "pending"))
    assert "## ✅ GPU tests passed\n\nNo GPU test can be affected by this change." in gate.summary
    assert gate.comments == []


def find_changed_failed(gate: Gate, problem: str = "") -> None:
    skipped = {job.replace("-", "_"): "skipped" for job in JOBS if job != "find-changed"}
    gate.needs = needs(find_changed="failure", **skipped)
    gate.needs["find-changed"]["outputs"] = {"problem": problem}


def test_find_changed_failed_the_event_tells_the_commit(gate: Gate) -> None:
    find_changed_failed(gate)
    assert gate.run() == 2
    assert gate.status[0] == "failure"
    assert "find-changed failed" in gate.status[1]


@pytest.mark.parametrize(
    "inputs",
    [{}, {"pull_request": "999"}, {"pull_request": "999", "sha": SHA}],
    ids=["none reached the gate", "a number", "a number and a commit"],
)
def test_a_run_by_hand_that_was_not_resolved_sets_no_status(gate: Gate, inputs: dict[str, str]) -> None:
    """GITHUB_SHA is the head of the branch that it was started on, which it is not about."""
    gate.event = "workflow_dispatch"
    gate.inputs |= inputs
    find_changed_failed(gate, "config_error\nthere is no pull request 999\n")
    assert gate.run() == 2
    assert gate.server.requests == []
    assert "there is no pull request 999" in gate.summary


def test_an_infrastructure_that_failed_before_the_approval_is_accepted_by_no_policy(gate: Gate) -> None:
    gate.inputs["policy_infra"] = "pass"
    find_changed_failed(gate, "infra\nGitHub does not answer\n")
    assert gate.run() == 4
    assert gate.status == ("error", "infra: GitHub does not answer (find-changed failed)")


@pytest.mark.parametrize(
    ("policy", "code", "state"), [("fail", 4, "error"), ("pass", 0, "success")], ids=["fail", "pass"]
)
def test_a_registry_that_is_down_is_no_configuration_error(
    gate: Gate, policy: str, code: int, state: str
) -> None:
    gate.inputs["policy_infra"] = policy
    gate.needs["build-image"] = {
        "result": "failure",
        "outputs": {"problem": "infra\nghcr.io does not answer\nask its owner"},
    }
    gate.needs["gpu-tests"]["result"] = "skipped"
    assert gate.run() == code
    by = " accepted by policy-infra" if policy == "pass" else ""
    assert gate.status == (state, f"infra{by}: ghcr.io does not answer (build-image failed)")
    assert gate.outputs["verdict"] == "infra"
    assert "configuration" not in gate.summary
    assert "**What now:** <code>ask its owner; run the failed jobs again</code>" in gate.summary


def test_an_error_of_a_step_of_the_same_job_is_one_annotation(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    find_changed_failed(gate, "config_error\nroot is missing\n")
    gate.needs = {
        job: {"outcome": value["result"], "outputs": value["outputs"]} for job, value in gate.needs.items()
    }
    gate.inputs["single_job"] = "true"
    assert gate.run() == 2
    told = capsys.readouterr().out
    assert "::error" not in told
    assert "root is missing" in told


def test_a_job_that_failed_says_why_where_people_look(gate: Gate) -> None:
    gate.needs["calculate-shards"] = {
        "result": "failure",
        "outputs": {"problem": "config_error\nthere are no test files\ncommit some"},
    }
    gate.needs["gpu-tests"]["result"] = "skipped"
    assert gate.run() == 2
    assert gate.status == ("failure", "config error: there are no test files (calculate-shards failed)")
    assert "**What now:** <code>commit some</code>" in gate.summary
    assert "calculate-shards: <code>there are no test files</code>" in gate.summary
    assert "calculate-shards: <code>there are no test files</code>" in html.unescape(gate.comments[0])


@pytest.mark.parametrize("chosen", ["packages", "test_expression"])
@pytest.mark.parametrize(
    ("before", "after"),
    [("", "pending"), ("pending", "pending"), ("success", "success"), ("failure", "failure")],
)
def test_a_run_of_chosen_tests_decides_nothing(gate: Gate, chosen: str, before: str, after: str) -> None:
    if before:
        set_status(gate, before)
    gate.inputs[chosen] = "a"
    gate.leave(ran(1), ran(2))
    assert gate.run() == 0
    assert gate.status[0] == after
    if after == "pending":
        assert gate.status[1] == "a run of some tests: passed; those that are due did not all run"


def test_no_comment_while_nobody_approved_anything(gate: Gate) -> None:
    """Whoever opens a pull request can make a job before the approval fail."""
    gate.needs["wait-for-label"] = {"result": "failure", "outputs": {}}
    assert gate.run() == 2
    assert gate.status[0] == "failure"
    assert gate.comments == []


def test_a_commit_that_nobody_can_tell_gets_no_status(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    gate.needs["find-changed"] = {"result": "failure", "outputs": {}}
    gate.event = "pull_request_target"  # of which the payload is missing
    assert gate.run() == 2
    assert gate.server.requests == []
    assert "could not be set" not in capsys.readouterr().out


NOTHING_DUE = json.dumps({**plan_document.to_document(PLAN), "shards": [], "units": [], "cpu_units": []})
PLANS = {
    "there is none": lambda gate: (gate.directory / "plan.json").unlink(),
    "broken": lambda gate: (gate.directory / "plan.json").write_text("{"),
    "no plan": lambda gate: (gate.directory / "plan.json").write_text("{}"),
    "put there by another job": lambda gate: (gate.directory / "plan.json").write_text(NOTHING_DUE),
    "of another commit": lambda gate: gate.plan(plan_of(OTHER)),
}


def plan_of(sha: str) -> Plan:
    return plan_document.from_document({**plan_document.to_document(PLAN), "sha": sha})


@pytest.mark.parametrize("spoil", PLANS.values(), ids=PLANS)
def test_without_its_plan_a_run_is_no_pass(gate: Gate, spoil: Any) -> None:
    gate.leave(ran(1), ran(2))
    spoil(gate)
    assert gate.run() == 4
    assert gate.status[0] == "error"
    assert gate.status[1].startswith("infra: the plan did not reach the gate")


# -- status and comment ----------------------------------------------------------------------------------


def test_a_part_of_the_tests_says_nothing_of_the_commit(gate: Gate) -> None:
    set_status(gate, "pending")
    gate.inputs["test_expression"] = "not slow"
    gate.leave(ran(1), ran(2))
    assert gate.run() == 0
    assert gate.status[0] == "pending"
    assert "Only a part of the tests was asked for" in gate.summary


def test_a_result_takes_the_place_of_an_earlier_one(gate: Gate) -> None:
    set_status(gate, "success")
    gate.leave(ran(1), RED)
    assert gate.run() == 1
    assert gate.status[0] == "failure"


def test_one_comment_is_kept_in_place(gate: Gate) -> None:
    gate.shop.comments[12] = [{"id": 1, "body": "a person's", "user": {"login": "ada"}}]
    gate.leave(ran(1), RED)
    gate.run()
    gate.leave(ran(2), attempt=2)
    gate.run_id, gate.attempt = "78", 2
    assert gate.run() == 0
    person, ours = gate.comments
    assert person == "a person's"
    assert "GPU tests passed" in ours
    gate.run_id, gate.attempt = "77", 3
    gate.leave(RED, attempt=3)
    assert gate.run() == 1
    assert gate.comments == [person, ours], "an older run that ends later"


@pytest.mark.parametrize("place", [0, 1_499, 2_499], ids=["first", "in the middle", "last"])
def test_the_comment_is_found_among_all_that_a_pull_request_can_have(gate: Gate, place: int) -> None:
    gate.leave(ran(1), ran(2))
    gate.run()
    (ours,) = gate.shop.comments[12]
    others = [{"id": n, "body": "x", "user": {"login": "ada"}} for n in range(10**6, 10**6 + 2_499)]
    gate.shop.comments[12] = [*others[:place], ours, *others[place:]]
    gate.run_id = "78"
    assert gate.run() == 0
    assert [number for number, body in enumerate(gate.comments) if "run=78" in body] == [place]
    assert len(gate.comments) == 2_500


def test_two_uses_of_one_run_hide_nothing_of_each_other(gate: Gate) -> None:
    """Two roots, or two clusters: the green one ends last, and the status and comment of the red one stay."""
    for name, results in (("a-root", [ran(1), RED]), ("docs", [ran(1), ran(2)])):
        gate.inputs["name"] = name
        for run in results:
            folder = gate.directory / "results" / f"gpuci.{name}.shard-{run.index}-attempt-1"
            folder.mkdir(parents=True)
            (folder / "runs.json").write_text(json.dumps(to_document(SHA, [run])))
        assert gate.run() == (1 if RED in results else 0)
        assert gate.outputs["prefix"] == f"gpuci.{name}."
        assert f"This is <code>gpuci ({name})</code>." in gate.summary
    states = {one["context"]: one["state"] for one in gate.shop.statuses[SHA]}
    assert states == {"gpuci (a-root)": "failure", "gpuci (docs)": "success"}
    red, green = map(html.unescape, gate.comments)
    assert ("GPU tests failed" in red, "gpuci (a-root)" in red) == (True, True)
    assert ("GPU tests passed" in green, "gpuci (docs)" in green) == (True, True)
    gate.run_id = "78"
    assert gate.run() == 0
    assert len(gate.comments) == 2
    assert "run=78" in gate.comments[1]


def test_a_final_status_of_another_use_is_none_of_ours(gate: Gate) -> None:
    set_status(gate, "success")
    gate.inputs |= {"name": "docs", "test_expression": "x"}
    gate.leave(ran(1), ran(2))
    gate.run()
    newest = {one["context"]: one["state"] for one in gate.shop.statuses[SHA]}
    assert newest == {"gpuci": "success", "gpuci (docs)": "pending"}


def test_a_comment_is_as_long_as_github_takes(gate: Gate) -> None:
    about = {"kind": "end", "unit": "u2", "file": "b.py", "outcome": "failed", "output": "<é>" * 3000}
    red = tuple({**about, "nodeid": f"b.py::test_{number}"} for number in range(200))
    gate.leave(ran(1), ShardRun(2, (*RED.records, *red), RED.verdict))
    assert gate.run() == 1
    (body,) = gate.comments
    assert 30_000 < len(body) <= 65_536
    assert all(f"test&#95;{number}</code>" in body for number in range(200))
    assert "Without output, for want of room:" in body
    assert body.endswith("by [this run](https://github.com/octo/shop/actions/runs/77/attempts/1).\n")


def test_a_forged_marker_is_not_written_over(gate: Gate) -> None:
    gate.leave(ran(1), ran(2))
    gate.run()
    gate.shop.comments[12][0]["user"]["login"] = "mallory"
    gate.run()
    assert len(gate.comments) == 2


@pytest.mark.parametrize("changed", [{"comment": "false"}, {}], ids=["not wanted", "no pull request"])
def test_no_comment(gate: Gate, changed: dict[str, str]) -> None:
    gate.inputs |= changed
    if not changed:
        gate.needs["find-changed"]["outputs"]["pull-request"] = ""
    gate.leave(ran(1), ran(2))
    assert gate.run() == 0
    assert gate.comments == []


def test_a_status_that_can_t_be_set_is_no_pass(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    gate.server.state.tokens["poor"] = Token({"pull-requests": "write", "statuses": "read"})
    gate.leave(ran(1), ran(2))
    assert gate.run("poor") == 4
    assert gate.outputs["verdict"] == "passed"
    assert "`statuses: write`" in capsys.readouterr().out


def test_a_status_that_can_t_be_read_takes_all_that_the_job_needs(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    gate.server.state.tokens["poor"] = Token({"pull-requests": "write"})
    gate.inputs["test_expression"] = "not slow"
    gate.leave(ran(1), ran(2))
    assert gate.run("poor") == 4
    told = capsys.readouterr().out
    assert ("`statuses: write`" in told, "`statuses: read`" in told) == (True, False)


def test_a_status_that_can_t_be_set_is_told_before_many_red_tests(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    """GitHub shows ten errors of a step."""
    gate.server.state.tokens["poor"] = Token({"pull-requests": "write", "statuses": "read"})
    about = {"kind": "end", "unit": "u2", "file": "b.py", "outcome": "failed"}
    red = tuple({**about, "nodeid": f"b.py::test_{number}"} for number in range(30))
    gate.leave(ran(1), ShardRun(2, (*RED.records, *red), RED.verdict))
    assert gate.run("poor") == 1
    errors = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error")]
    assert len(errors) == ANNOTATIONS
    assert re.match("::error title=gpuci%3A the commit status could not be set::(?!error)", errors[0])


def test_a_comment_that_can_t_be_written_is_a_warning(gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    gate.server.state.tokens["poor"] = Token({"statuses": "write"})
    gate.leave(ran(1), ran(2))
    assert gate.run("poor") == 0
    assert gate.status[0] == "success"
    told = "::warning title=gpuci%3A the comment could not be written::(?!error)"
    assert re.search(told, capsys.readouterr().out)


def test_it_asks_only_for_what_the_job_may(gate: Gate) -> None:
    gate.leave(ran(1), RED)
    gate.run()
    seen = [
        (one.method, one.path.removeprefix("/repos/octo/shop/"), one.status) for one in gate.server.requests
    ]
    assert seen == [
        ("POST", f"statuses/{SHA}", 201),
        ("GET", "issues/12/comments", 200),
        ("POST", "issues/12/comments", 201),
    ]
    assert {one.agent.partition("(")[2] for one in gate.server.requests} == {"gpu-tests-passed)"}


# -- input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"comment": "perhaps"}, "comment is 'perhaps'"),
        ({"needs": "{}"}, "gpu-tests is missing"),
        ({"name": "My use"}, "the input name is 'My use'"),
    ],
    ids=["flag", "needs", "name"],
)
def test_input_that_makes_no_sense(gate: Gate, inputs: dict[str, str], says: str) -> None:
    gate.inputs |= inputs
    with pytest.raises(ConfigError, match=says):
        gate.run()


def test_tests_that_ran_are_not_lost_for_a_misspelt_policy(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    gate.inputs["policy_infra"] = "ignore"
    gate.leave(ran(1), ran(2))
    assert gate.run() == 2
    assert gate.status[0] == "success"
    told = capsys.readouterr().out
    assert "policy-infra is 'ignore'" in told
    assert "taken for fail" in told


def test_a_misspelt_policy_accepts_nothing(gate: Gate) -> None:
    gate.inputs["policy_infra"] = "Pass"
    gate.leave(ran(1))
    assert gate.run() == 4
    assert gate.status[0] == "error"
