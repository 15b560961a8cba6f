"""What tests/e2e/run does to the product before it runs it; permissions of jobs, by what they ask for."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pytest
import yaml
from tests.e2e.harness import act, requests, several
from tests.e2e.harness.again import rerun, together
from tests.e2e.harness.all_scenarios import SCENARIOS
from tests.e2e.harness.product import CLONE, NAME, REF, load, permissions, rewritten, token_of
from tests.e2e.harness.scenario import DISPATCH, LABEL, ROOT_ACTION, TRUSTED, TWO_USES, WITH_IMAGE, Scenario

GPU = load(CLONE / ".github/workflows/gpu.yml")
JOBS = permissions(GPU)
# A job has these for what is no request to the API by us: what, and for which job.
NOT_OF_THE_API = {
    ("build-image", "packages: read"),  # the registry
    ("push-image", "packages: write"),
    ("tag-image", "packages: write"),
    ("gpu-tests-passed", "actions: read"),  # download-artifact, given the token
}


def ours(step: dict[str, Any]) -> str:
    """The action of ours that a step of gpu.yml uses, or empty."""
    uses: str = step.get("uses", "")
    return uses.removeprefix("$/actions/") if uses.startswith("$/") else ""


def action(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((CLONE / "actions" / name / "action.yml").read_text())
    return document


STEPS = [(job, step) for job, document in GPU["jobs"].items() for step in document["steps"] if ours(step)]


@pytest.mark.parametrize(("job", "step"), STEPS, ids=[f"{job}-{ours(step)}" for job, step in STEPS])
def test_a_step_of_the_workflow_gives_an_action_what_it_takes(job: str, step: dict[str, Any]) -> None:
    inputs = action(ours(step))["inputs"]
    given = step.get("with", {})
    assert given.keys() <= inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} <= given.keys()


@pytest.mark.parametrize(("job", "step"), STEPS, ids=[f"{job}-{ours(step)}" for job, step in STEPS])
def test_what_the_workflow_reads_of_an_action_is_an_output_of_it(job: str, step: dict[str, Any]) -> None:
    text = (CLONE / ".github/workflows/gpu.yml").read_text()
    read = set(re.findall(rf"steps\.{re.escape(step.get('id', '-'))}\.outputs\.([\w-]+)", text))
    assert read <= action(ours(step)).get("outputs", {}).keys()


def test_a_rewritten_workflow_differs_in_what_act_lacks_only() -> None:
    workflow = {
        "on": {"workflow_call": {}},
        "jobs": {
            "a": {
                "cache-mode": "none",
                "strategy": {"max-parallel": "${{ inputs.n }}", "matrix": {"k": "${{ fromJSON(inputs.k) }}"}},
                "permissions": {"contents": "read"},
                "steps": [
                    {"uses": "$/actions/x", "with": {"sha": "${{ needs.b.outputs.sha }}"}},
                    {"uses": "$/actions/y"},
                    {"uses": f"{NAME}/actions/x@v1"},
                    {"uses": f"{NAME}@{REF}", "with": {"token": "mine"}},
                    {"uses": "actions/cache@1", "with": {"github-token": "${{ github.token }}", "n": 1}},
                ],
            }
        },
    }
    token = token_of("a")
    output = "${{ (needs.b.result != 'skipped' && needs.b.outputs.sha || '') }}"
    assert rewritten(workflow, {"/actions/x", ""}) == {
        "on": {"workflow_call": {}},
        "jobs": {
            "a": {
                "strategy": {"max-parallel": 12, "matrix": {"k": "${{ fromJSON(inputs.k || '[0]') }}"}},
                "permissions": {"contents": "read"},
                "steps": [
                    {"uses": f"{NAME}/actions/x@{REF}", "with": {"token": token, "sha": output}},
                    {"uses": f"{NAME}/actions/y@{REF}", "with": {}},
                    {"uses": f"{NAME}/actions/x@{REF}", "with": {"token": token}},
                    {"uses": f"{NAME}@{REF}", "with": {"token": "mine"}},
                    {"uses": "actions/cache@1", "with": {"github-token": token, "n": 1}},
                ],
            }
        },
    }


def test_a_log_is_read_by_jobs_of_a_matrix() -> None:
    one, two = {"jobID": "t", "matrix": {"shard": 1}, "step": "s"}, {"jobID": "t", "matrix": {"shard": 2}}
    entries = [
        {**one, "raw_output": True, "msg": "one\n"},
        {**two, "step": "s", "raw_output": True, "msg": "two\n"},
        {**one, "command": "error", "arg": "bad"},
        {**one, "command": "set-output", "name": "n", "arg": "v"},
        {**one, "command": "summary", "content": "# S\n"},
        {**one, "stepID": ["of the composite"], "command": "summary", "content": "# S\n"},
        {**one, "command": "group", "arg": "g", "raw": "::group::g\n"},
        {**one, "level": "error", "msg": "exit status 8"},
        {**one, "jobResult": "failure", "msg": "Job failed"},
    ]
    first, second = act.read([*map(json.dumps, entries), "not JSON"])
    assert (first.matrix, first.log, first.summary) == ({"shard": 1}, "one\n::group::g\n", "# S\n")
    assert (first.raw, first.exit_codes, second.exit_codes) == (first.log, {8}, set())
    assert (first.annotations, first.outputs, first.result) == ([("error", "bad")], {"n": "v"}, "failure")
    assert (second.log, second.result) == ("two\n", "")


def test_two_calls_of_a_workflow_have_a_job_each() -> None:
    entries = [
        {"job": f"{call}/gpu.yml/a", "jobID": "a", "step": "s", "raw_output": True, "msg": call}
        for call in ("one", "two")
    ]
    jobs = act.read(map(json.dumps, entries))
    assert [(job.name, job.log) for job in jobs] == [("a", "one"), ("a", "two")]


def job(name: str, shard: int = 0, **more: Any) -> act.Job:
    return act.Job(name, {"shard": shard} if shard else {}, "success", **more)


def test_only_what_failed_runs_again_and_the_rest_keeps_what_it_has() -> None:
    prefix = "${{ (needs.a.result != 'skipped' && needs.a.outputs.sha || '') }}"
    outputs = {
        "sha": "${{ steps.x.outputs.sha }}",
        "artifact": f"{prefix}-${{{{ steps.x.outputs.other }}}}-attempt-${{{{ github.run_attempt }}}}",
    }
    tests = {"needs": ["a", "b"], "strategy": {"matrix": {"shard": "${{ fromJSON('[1,2]') }}"}}, "steps": [1]}
    gate = {"if": "always()", "needs": ["a", "b", "tests"], "steps": [2]}
    workflow = {
        "name": "w",
        "jobs": {"a": {"outputs": outputs, "steps": [0]}, "b": {"steps": [0]}, "tests": tests, "gate": gate},
    }
    first = act.Ran(1, [job("a", outputs={"sha": "c0ffee", "other": "x"}), job("tests", 2)], "")
    kept = {"runs-on": "ubuntu-latest", "steps": [{"run": "true"}]}
    assert rerun(workflow, first, {"tests": [2], "gate": []}) == {
        "name": "w",
        "jobs": {
            "a": {**kept, "outputs": {"sha": "c0ffee", "artifact": "c0ffee-x-attempt-1"}},
            "b": {**kept, "if": False},
            "tests": {**tests, "strategy": {"matrix": {"shard": [2]}}},
            "gate": gate,
        },
    }
    failed = act.Ran(1, [job("a", exit_codes={1})], "")
    with pytest.raises(AssertionError, match="a would be run again"):
        rerun(workflow, failed, {"tests": [2], "gate": []})


def test_the_attempts_of_a_run_together() -> None:
    one, red, gate, green = job("t", 1), job("t", 2, exit_codes={1}), job("g"), job("t", 2)
    later = act.Ran(0, [job("a", log="does nothing"), green, job("g", log="new")], "")
    jobs = together(act.Ran(1, [job("a"), one, red, gate], ""), later, {"t": [2], "g": []}).jobs
    assert list(jobs) == [job("a"), one, green, job("g", log="new")]


def test_scenarios_run_at_once_but_for_the_first_and_those_that_must_be_alone() -> None:
    running: set[str] = set()
    beside: dict[str, set[str]] = {}
    meet = threading.Barrier(2, timeout=60)

    def play(one: Scenario) -> several.Lines:
        running.add(one.name)
        if one.name in ("fork", "revoked"):
            meet.wait()
        beside[one.name] = running - {one.name}
        running.discard(one.name)
        if one.name == "revoked":
            raise ValueError("red")
        return [one.name]

    outcomes = several.begin(["image", "green", "fork", "revoked", "dead-node"], play)
    assert {name: outcomes[name].result() for name in ("image", "green", "fork", "dead-node")} == {
        name: [name] for name in ("image", "green", "fork", "dead-node")
    }
    with pytest.raises(ValueError, match="red"):
        outcomes["revoked"].result()
    assert next(iter(beside)) == "green"
    assert set(list(beside)[1:3]) == {"fork", "revoked"}
    assert [beside[name] for name in ("green", "image", "dead-node")] == [set(), set(), set()]


def test_what_has_not_begun_can_be_left_out() -> None:
    began, leave = threading.Event(), threading.Event()

    def play(one: Scenario) -> several.Lines:
        began.set()
        assert leave.wait(60)
        return []

    outcomes = several.begin(["green", "image"], play)
    assert began.wait(60)
    assert outcomes["image"].cancel()
    leave.set()
    several.end(outcomes)
    assert outcomes["green"].done()
    assert not outcomes["green"].cancelled()


@pytest.mark.parametrize("workflow", [LABEL, DISPATCH, WITH_IMAGE, TRUSTED, TWO_USES])
def test_a_caller_grants_what_the_jobs_ask_for_and_no_more(workflow: str) -> None:
    """A called workflow's job with more than its caller grants: GitHub starts none of the run's jobs."""
    wanted: dict[str, str] = {}
    for granted in JOBS.values():
        for scope, level in granted.items():
            wanted[scope] = "write" if "write" in (level, wanted.get(scope)) else level
    jobs = load(CLONE / workflow)["jobs"].values()
    assert all(job["permissions"] == wanted for job in jobs)


def test_only_the_job_that_submits_takes_a_place_in_a_group() -> None:
    """A workflow's group is claimed before any job's `if`: another label would cancel a run that submits. A
    job that is skipped by its `if` joins no group (docs.github.com, "Control the concurrency of workflows").
    """
    assert "concurrency" not in GPU
    assert [name for name, job in GPU["jobs"].items() if "concurrency" in job] == ["gpu-tests"]
    group = GPU["jobs"]["gpu-tests"]["concurrency"]["group"]
    assert "needs.find-changed.outputs.subject" in group
    assert "matrix.shard" in group
    for workflow in (LABEL, DISPATCH, TRUSTED, ROOT_ACTION):
        assert "concurrency" not in load(CLONE / workflow)


def test_each_scenario_has_its_requests() -> None:
    assert list(requests.expected()) == list(SCENARIOS)


@pytest.mark.parametrize("name", requests.expected())
def test_a_request_is_covered_by_a_permission_of_its_job(name: str) -> None:
    jobs = permissions(load(CLONE / SCENARIOS[name].workflow)) or JOBS
    for line in requests.expected()[name]:
        job, _, permission = re.fullmatch(
            r"([a-z-]+): (\w+ \S+) \(([a-z-]+: \w+)\)(?: -> \d+)?", line
        ).groups()  # type: ignore[union-attr]
        assert requests.granted(permission, jobs[job]), line


def test_no_job_has_a_permission_that_no_scenario_uses() -> None:
    used = {
        (line.partition(": ")[0], re.findall(r"\(([a-z-]+: \w+)\)", line)[0])
        for name, lines in requests.expected().items()
        for line in lines
        if SCENARIOS[name].workflow in (LABEL, DISPATCH, WITH_IMAGE, TRUSTED)
    }
    has = {(job, f"{scope}: {level}") for job, granted in JOBS.items() for scope, level in granted.items()}
    assert has - used - NOT_OF_THE_API == set()
