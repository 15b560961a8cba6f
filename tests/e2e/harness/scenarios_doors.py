"""Scenarios about who may run what: nothing reaches the cluster, but where the first attempt was approved."""

from __future__ import annotations

import json

from tests.e2e.harness import events
from tests.e2e.harness.act import Ran
from tests.e2e.harness.caller import CONFIGURATION, WORKFLOW
from tests.e2e.harness.outcomes import counted, passed, refused, told
from tests.e2e.harness.scenario import DISPATCH, scenario
from tests.e2e.harness.scenarios import KERNELS, SHARED, touch
from tests.e2e.harness.stage import LABELED, Stage


def approved(stage: Stage, sha: str) -> str:
    """State of the record of an approval, empty if there is none."""
    return stage.statuses(sha).get("gpuci/approved", ("", ""))[0]


@scenario("no-approval")
def no_approval(stage: Stage) -> list[Ran]:
    """New commits, nobody labelled: nothing is submitted, the check is pending, the old label comes off."""
    pull = stage.open_pull(touch(stage, SHARED))
    pull.labels = [events.LABEL]
    ran = stage.run(events.pull_request(stage.repository, pull, "synchronize", "sam"))
    refused(stage, ran, pull.head_sha, "pushed", "gpuci approve 12")
    assert approved(stage, pull.head_sha) == ""
    assert pull.labels == []
    return [ran]


@scenario("stranger")
def stranger(stage: Stage) -> list[Ran]:
    """Somebody with triage, who can label but not write, sets the label: refused."""
    pull = stage.open_pull(touch(stage, SHARED))
    ran = stage.run(stage.label(pull, "tess"))
    refused(stage, ran, pull.head_sha, "no-write-access", "no write access", "triage")
    assert approved(stage, pull.head_sha) == ""
    return [ran]


@scenario("label-then-push")
def label_then_push(stage: Stage) -> list[Ran]:
    """The head moved between the label and the run: refused, and neither commit is approved."""
    pull = stage.open_pull(touch(stage, SHARED))
    event = stage.label(pull, "maria")
    old = pull.head_sha
    stage.push_to_pull(pull, {SHARED: "raise SystemExit('sneaked in')\n"})
    ran = stage.run(event)
    refused(stage, ran, old, "head-moved", check="")
    assert (approved(stage, old), approved(stage, pull.head_sha)) == ("", "")
    return [ran]


@scenario("push-then-label")
def push_then_label(stage: Stage) -> list[Ran]:
    """The label came seconds after a push, which its setter may not have seen: refused."""
    pull = stage.open_pull(touch(stage, SHARED))
    stage.repository.check_suites[pull.head_sha] = [LABELED]
    ran = stage.run(stage.label(pull, "maria"))
    refused(stage, ran, pull.head_sha, "too-soon", "when the label was set", "set it again")
    return [ran]


@scenario("fork-pushed")
def fork_pushed(stage: Stage) -> list[Ran]:
    """A fork whose commit is old here, but was pushed just before the label: refused."""
    pull = stage.open_pull(touch(stage, SHARED), fork=True, author="stranger")
    pull.head_pushed_at = LABELED
    ran = stage.run(stage.label(pull, "maria"))
    refused(stage, ran, pull.head_sha, "too-soon")
    return [ran]


@scenario("fork", shards={"max": 1})
def fork(stage: Stage) -> list[Ran]:
    """A fork's commit that a maintainer had time to look at before the label: it runs."""
    pull = stage.open_pull(touch(stage, KERNELS), fork=True, author="stranger")
    ran = stage.run(stage.label(pull, "maria"))
    passed(stage, ran, pull.head_sha, shards=1)
    return [ran]


@scenario("own-configuration", shards={"max": 1})
def own_configuration(stage: Stage) -> list[Ran]:
    """A pull request brings a configuration and a workflow of its own: those of the default branch count."""
    elsewhere = json.dumps({"packages": ["lib"], "slurm": {"login": ["login.example.com"], "user": "sam"}})
    pull = stage.open_pull(
        {**touch(stage, KERNELS), CONFIGURATION: elsewhere, WORKFLOW: "on: push\njobs: {}\n"}
    )
    ran = stage.run(stage.label(pull, "maria"))
    passed(stage, ran, pull.head_sha, shards=1)
    counted(stage)
    return [ran]


@scenario("fork-own-workflow")
def fork_own_workflow(stage: Stage) -> list[Ran]:
    """A fork's own workflow, by `pull_request`, and its author sets the label: refused, no status."""
    own = stage.caller.text(WORKFLOW).replace("pull_request_target", "pull_request")
    pull = stage.open_pull({**touch(stage, SHARED), WORKFLOW: own}, fork=True, author="stranger")
    pull.labels.append(events.LABEL)
    ran = stage.run(events.own_workflow(stage.repository, pull, "labeled", "stranger"))
    refused(stage, ran, pull.head_sha, "fork-pull-request", check="")
    return [ran]


@scenario("re-run", shards={"max": 1})
def re_run(stage: Stage) -> list[Ran]:
    """An approved run is re-run: it runs again. After a push to the pull request it is refused."""
    pull = stage.open_pull(touch(stage, KERNELS))
    event = stage.label(pull, "maria")
    first = stage.run(event)
    passed(stage, first, pull.head_sha, shards=1)
    old = pull.head_sha
    again = stage.run(event, attempt=2)
    assert again.code == 0, told(again)
    assert again.job("wait-for-label").outputs["decision"] == "re-run"
    assert len(stage.submitted()) == 2
    stage.push_to_pull(pull, {SHARED: "raise SystemExit('sneaked in')\n"})
    late = stage.run(event, attempt=3)
    assert late.job("wait-for-label").outputs["decision"] == "re-run-of-old-commit", told(late)
    assert late.job("gpu-tests-passed").outputs["verdict"] == "unauthorized"
    assert len(stage.submitted()) == 2
    assert stage.statuses(old)["gpuci"][0] == "success", "a later attempt changed a final status"
    assert (approved(stage, old), approved(stage, pull.head_sha)) == ("success", "")
    return [first, again, late]


def approve(stage: Stage, sha: str) -> None:
    """The record of an approval, as an earlier run left it."""
    record = {"context": "gpuci/approved", "state": "success", "description": "approved by @maria (label)"}
    creator = {"login": "github-actions[bot]", "type": "Bot"}
    stage.repository.statuses[sha] = [{"id": 1, "created_at": LABELED, "creator": creator, **record}]


@scenario("revoked")
def revoked(stage: Stage) -> list[Ran]:
    """The label is taken off: the record of the approval is taken back."""
    pull = stage.open_pull(touch(stage, SHARED))
    approve(stage, pull.head_sha)
    ran = stage.run(events.pull_request(stage.repository, pull, "unlabeled", "wim"))
    refused(stage, ran, pull.head_sha, "revoked", "wim took the label run-gpu-tests off")
    assert approved(stage, pull.head_sha) == "failure"
    return [ran]


@scenario("revoked-without-configuration", nobody_knows_this=True)
def revoked_without_configuration(stage: Stage) -> list[Ran]:
    """The label is taken off while the default branch's configuration is broken: the record is taken back."""
    pull = stage.open_pull(touch(stage, SHARED))
    approve(stage, pull.head_sha)
    ran = stage.run(events.pull_request(stage.repository, pull, "unlabeled", "wim"))
    assert ran.results["find-changed"] == {"failure"}, told(ran)
    door = ran.job("wait-for-label")
    assert (door.result, door.outputs["decision"], door.outputs["approved"]) == (
        "success", "revoked-by-any-label", "false",
    ), told(ran)  # fmt: skip
    assert "without the configuration any may be the one" in door.summary
    assert {"build-image", "calculate-shards", "gpu-tests"}.isdisjoint(ran.results), told(ran)
    assert approved(stage, pull.head_sha) == "failure"
    assert stage.submitted() == []
    return [ran]


@scenario("dispatch-old-head", DISPATCH)
def dispatch_old_head(stage: Stage) -> list[Ran]:
    """A dispatch with a SHA that is no longer the head: refused."""
    pull = stage.open_pull(touch(stage, SHARED))
    old = pull.head_sha
    stage.push_to_pull(pull, {SHARED: "raise SystemExit('sneaked in')\n"})
    ran = stage.run(events.dispatch(stage.repository, "maria", pull_request="12", sha=old))
    refused(stage, ran, old, "head-moved", check="", red=True)
    assert (approved(stage, old), approved(stage, pull.head_sha)) == ("", "")
    return [ran]


@scenario("environment-open")
def environment_open(stage: Stage) -> list[Ran]:
    """The environment lets any branch have the key: refused before a job names it."""
    stage.repository.environments["gpu"] = {"protection_rules": [], "deployment_branch_policy": None}
    return [_unprotected(stage, "is not protected")]


@scenario("environment-missing")
def environment_missing(stage: Stage) -> list[Ran]:
    """The environment is missing, and a job that named it would make one without protection: refused."""
    del stage.repository.environments["gpu"]
    return [_unprotected(stage, "is missing")]


@scenario("environment-protects-nothing")
def environment_protects_nothing(stage: Stage) -> list[Ran]:
    """Protected branches only, and no branch is protected: refused."""
    policy = {"protected_branches": True, "custom_branch_policies": False}
    stage.repository.environments["gpu"] = {"protection_rules": [], "deployment_branch_policy": policy}
    return [_unprotected(stage, "no branch is")]


def _unprotected(stage: Stage, words: str) -> Ran:
    pull = stage.open_pull(touch(stage, SHARED))
    ran = stage.run(stage.label(pull, "maria"))
    door = ran.job("wait-for-label")
    assert door.outputs["decision"] == "environment-unprotected", told(ran)
    assert words in door.summary, door.summary
    assert stage.submitted() == []
    assert ran.code != 0
    assert {"build-image", "calculate-shards", "gpu-tests"}.isdisjoint(ran.results), told(ran)
    assert approved(stage, pull.head_sha) == ""
    state, description = stage.statuses(pull.head_sha)["gpuci"]
    assert (state, words in description) == ("failure", True), description
    return ran


@scenario("nothing-affected", changes={"ignore": ["*.md", "**/*.md"]})
def nothing_affected(stage: Stage) -> list[Ran]:
    """A change that can break no test: the check passes without an approval, and nothing runs."""
    pull = stage.open_pull({"README.md": "# Better words\n"})
    ran = stage.run(events.pull_request(stage.repository, pull, "synchronize", "sam"))
    assert ran.code == 0, told(ran)
    assert {"build-image", "calculate-shards", "gpu-tests"}.isdisjoint(ran.results)
    assert ran.job("gpu-tests-passed").outputs["verdict"] == "passed"
    assert stage.statuses(pull.head_sha)["gpuci"][0] == "success"
    assert stage.submitted() == []
    return [ran]
