"""wait-for-label against a GitHub over HTTP: what it asks for, what it writes, what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.github.endpoints import pull_document
from tests.fakes.github.server import Server
from tests.fakes.github.state import Pull, Repository, State, Token

from gpuci.config import document as config_document
from gpuci.config.load import load_config
from gpuci.errors import ConfigError
from gpuci.github import environments
from gpuci.github.client import Client
from gpuci.github.messages import ApiError
from gpuci.github.step import Step
from gpuci.steps import wait_for_label

HEAD, OLD, BASE = "a" * 40, "c" * 40, "b" * 40
PUSHED, LABELLED = "2026-11-30T10:00:00Z", "2026-11-30T10:05:00Z"
ENTRY = Path(wait_for_label.__file__).resolve().parents[2] / "wait_for_label.py"
# As gpu.yml gives them to this job.
PERMISSIONS = {
    "actions": "read",
    "checks": "read",
    "contents": "read",
    "pull-requests": "write",
    "statuses": "write",
}


@dataclass
class World:
    """A repository with pull request 12 of a fork, and the files of a step."""

    directory: Path
    server: Server
    repository: Repository
    pull: Pull
    configuration: str
    inputs: dict[str, str] = field(default_factory=dict)

    def event(self, name: str, sender: str = "ada", attempt: int = 1, **payload: Any) -> dict[str, str]:
        """The environment of a step for an event."""
        kinds = self.server.state.kinds
        whole = {
            "sender": {"login": sender, "type": kinds.get(sender, "User")},
            "repository": {"full_name": "org/mono", "default_branch": "main"},
            **payload,
        }
        path = self.directory / "event.json"
        path.write_text(json.dumps(whole))
        for file in ("output", "summary"):
            (self.directory / file).write_text("")
        return {
            "GITHUB_API_URL": self.server.url,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "org/mono",
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_SHA": BASE,
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "GITHUB_TRIGGERING_ACTOR": sender,
            "GITHUB_WORKFLOW_REF": "org/mono/.github/workflows/gpu.yml@refs/heads/main",
            "GITHUB_OUTPUT": str(self.directory / "output"),
            "GITHUB_STEP_SUMMARY": str(self.directory / "summary"),
            "GPUCI_CONFIGURATION": self.configuration,
            **{f"GPUCI_{key}": value for key, value in self.inputs.items()},
        }

    def pull_event(
        self, action: str = "labeled", label: str = "run-gpu-tests", *, sha: str = HEAD, **more: Any
    ) -> dict[str, str]:
        """An event of the pull request, of when `sha` was its head."""
        document = pull_document("org/mono", self.pull, {}) | {"updated_at": LABELLED}
        document["head"] = {**document["head"], "sha": sha}
        payload: dict[str, Any] = {"action": action, "label": {"name": label}, "pull_request": document}
        return self.event("pull_request_target", **payload, **more)

    def run(self, environ: dict[str, str], token: str = "job") -> tuple[int, dict[str, str]]:
        """Exit code and outputs."""
        code = wait_for_label.run(Step("wait-for-label", environ, {"GPUCI_TOKEN": token}))
        return code, self.outputs()

    def outputs(self) -> dict[str, str]:
        lines = (self.directory / "output").read_text().splitlines()
        return {line.partition("<<")[0]: value for line, value in pairwise(lines) if "<<gpuci-" in line}

    def summary(self) -> str:
        return (self.directory / "summary").read_text()

    def newest(self, context: str, sha: str = HEAD) -> tuple[str, str] | None:
        """State and description of the newest status."""
        found = [one for one in self.repository.statuses.get(sha, []) if one["context"] == context]
        return (found[-1]["state"], found[-1]["description"]) if found else None

    def put(self, context: str, state: str, description: str = "", sha: str = HEAD) -> None:
        """A status that was there before."""
        status = {"id": 1, "context": context, "state": state, "description": description}
        self.repository.statuses.setdefault(sha, []).append(status | {"created_at": PUSHED})

    def asked(self) -> list[str]:
        return [f"{seen.method} {seen.path.partition('/org/mono/')[2]}" for seen in self.server.requests]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    pull = Pull(12, HEAD, BASE, head_repository="eve/mono", author="eve", labels=["run-gpu-tests"])
    pull.head_pushed_at = PUSHED
    selected = {"protected_branches": False, "custom_branch_policies": True}
    repository = Repository(
        "org/mono",
        private=False,
        pulls={12: pull},
        commits=[HEAD, OLD, BASE],
        collaborators={"ada": "write", "max": "maintain", "tri": "triage", "app[bot]": "write"},
        check_suites={HEAD: [PUSHED], OLD: [PUSHED]},
        environments={"gpu": {"deployment_branch_policy": selected, "branch_policies": ["main"]}},
    )
    state = State([repository], {"job": Token(dict(PERMISSIONS)), "weak": Token({"pull-requests": "read"})})
    state.kinds["app[bot]"] = "Bot"
    configuration = json.dumps(config_document.to_document(load_config(tmp_path, [])))
    with Server(state) as server:
        yield World(tmp_path, server, repository, pull, configuration)


def test_a_label_by_a_writer_approves_the_commit_and_records_it(world: World) -> None:
    code, outputs = world.run(world.pull_event())
    assert (code, outputs["approved"], outputs["approver"]) == (0, "true", "ada")
    assert (outputs["sha"], outputs["decision"]) == (HEAD, "approved-by-label")
    assert world.newest("gpuci/approved") == ("success", "approved by @ada (label)")
    assert world.newest("gpuci") == ("pending", "approved by @ada; the tests run")
    assert world.asked() == [
        "GET pulls/12",
        f"GET commits/{HEAD}/statuses",
        "GET collaborators/ada/permission",
        f"GET commits/{HEAD}/check-suites",
        "GET environments/gpu",
        "GET environments/gpu/deployment-branch-policies",
        f"POST statuses/{HEAD}",
        f"POST statuses/{HEAD}",
        "GET pulls/12",
    ]
    assert {seen.agent.partition(" ")[2] for seen in world.server.requests} == {"(wait-for-label)"}
    assert "gpuci: approved" in world.summary()


def test_two_uses_wait_each_by_a_status_of_its_own_for_one_approval(world: World) -> None:
    world.put("gpuci", "success", "passed")
    for name in ("docs", "other"):
        world.inputs["NAME"] = name
        assert world.run(world.pull_event())[1]["approved"] == "true"
        assert world.newest(f"gpuci ({name})") == ("pending", "approved by @ada; the tests run")
    assert world.newest("gpuci") == ("success", "passed")
    contexts = [one["context"] for one in world.repository.statuses[HEAD]]
    assert sorted(contexts) == ["gpuci", "gpuci (docs)", "gpuci (other)", "gpuci/approved", "gpuci/approved"]


Change = Callable[[World], None]


def moved(world: World) -> None:
    world.pull.head_sha = OLD


def closed(world: World) -> None:
    world.pull.state = "closed"


def unlabeled(world: World) -> None:
    world.pull.labels = []


def no_suite(world: World) -> None:
    world.repository.check_suites.clear()


def late_suite(world: World) -> None:
    world.repository.check_suites[HEAD] = [LABELLED]


def same(world: World) -> None:
    return


@pytest.mark.parametrize(
    ("sender", "change", "row", "told"),
    [
        ("tri", same, "no-write-access", "@tri has no write access to this repository (permission: triage)"),
        ("eve", same, "no-write-access", "(permission: read)"),
        ("app[bot]", same, "not-a-person", "no person"),
        ("ada", moved, "head-moved", "not the head"),
        ("ada", closed, "closed", "not open"),
        ("ada", unlabeled, "label-gone", "was taken off again"),
        ("ada", no_suite, "push-time-unknown", "does not tell when"),
        ("ada", late_suite, "too-soon", "was not there for 10 s"),
    ],
    ids=["triage", "stranger", "bot", "label-then-push", "closed", "on-and-off", "no-suite", "late-suite"],
)
def test_a_label_that_approves_nothing_says_why_and_writes_no_record(
    world: World, capsys: pytest.CaptureFixture[str], sender: str, change: Change, row: str, told: str
) -> None:
    environ = world.pull_event(sender=sender)
    change(world)
    code, outputs = world.run(environ)
    assert (code, outputs["approved"], outputs["decision"], outputs["approver"]) == (0, "false", row, "")
    assert told in outputs["reason"]
    assert world.newest("gpuci/approved") is None
    assert "::warning" in capsys.readouterr().out
    assert f"gpuci approve 12 {world.pull.head_sha}" in world.summary()
    assert "environments" not in " ".join(world.asked())


@pytest.mark.parametrize(
    ("pushed", "row"),
    [
        ("2026-11-30T10:04:50Z", "approved-by-label"),
        ("2026-11-30T10:04:51Z", "too-soon"),
        ("", "push-time-unknown"),
    ],
    ids=["in-time", "late", "not-told"],
)
def test_the_last_push_to_a_fork_counts_too(world: World, pushed: str, row: str) -> None:
    """A commit that was in another pull request before has a check suite that is older than this push."""
    world.pull.head_pushed_at = pushed
    assert world.run(world.pull_event())[1]["decision"] == row


def test_a_maintainer_writes_too(world: World) -> None:
    assert world.run(world.pull_event(sender="max"))[1]["approved"] == "true"


def test_a_push_takes_the_label_off_and_waits(world: World) -> None:
    code, outputs = world.run(world.pull_event("synchronize"))
    assert (code, outputs["approved"], outputs["decision"]) == (0, "false", "pushed")
    assert world.pull.labels == []
    assert world.newest("gpuci") == (
        "pending",
        "waits for approval: label run-gpu-tests, or gpuci approve 12",
    )
    assert world.newest("gpuci/approved") is None
    assert "waits for approval" in world.summary()
    assert "actions/workflows/gpu.yml" in world.summary()


def test_a_push_back_to_an_approved_commit_starts_nothing_and_keeps_the_label(world: World) -> None:
    world.put("gpuci/approved", "success", "approved by @ada (label)")
    world.put("gpuci", "failure", "2 tests failed")
    _, outputs = world.run(world.pull_event("synchronize"))
    assert (outputs["approved"], world.pull.labels) == ("false", ["run-gpu-tests"])
    assert world.newest("gpuci") == ("failure", "2 tests failed")


def test_the_label_stays_if_the_configuration_says_so(world: World) -> None:
    document = json.loads(world.configuration)
    document["label"]["remove-on-push"] = False
    world.configuration = json.dumps(document)
    world.run(world.pull_event("synchronize"))
    assert world.pull.labels == ["run-gpu-tests"]


@pytest.mark.parametrize("action", ["opened", "reopened", "edited", "ready_for_review"])
def test_nobody_asked(world: World, action: str) -> None:
    world.pull.labels = []
    _, outputs = world.run(world.pull_event(action, label=""))
    assert (outputs["approved"], outputs["decision"]) == ("false", "not-asked")
    assert world.asked() == [f"GET commits/{HEAD}/statuses", f"POST statuses/{HEAD}"]


def test_another_label_is_not_ours_and_ours_can_have_another_name(world: World) -> None:
    assert world.run(world.pull_event(label="bug"))[1]["decision"] == "other-label"
    world.inputs["LABEL"] = "bug"
    world.pull.labels = ["bug"]
    assert world.run(world.pull_event(label="bug"))[1]["approved"] == "true"


def test_the_label_taken_off_takes_the_approval_back_on_both_commits(world: World) -> None:
    for sha in (HEAD, OLD):
        world.put("gpuci/approved", "success", "approved by @ada (label)", sha)
    environ = world.pull_event("unlabeled", sender="tri")
    world.pull.head_sha = OLD
    _, outputs = world.run(environ)
    assert (outputs["approved"], outputs["decision"]) == ("false", "revoked")
    assert (
        world.newest("gpuci/approved")
        == world.newest("gpuci/approved", OLD)
        == ("failure", "revoked by @tri")
    )


@pytest.mark.parametrize(
    ("recorded", "labels", "state"),
    [
        ("2026-11-30T10:05:30Z", ["run-gpu-tests"], "success"),
        ("2026-11-30T10:05:30Z", [], "failure"),
        (LABELLED, ["run-gpu-tests"], "failure"),
        ("2026-11-30T10:04:00Z", ["run-gpu-tests"], "failure"),
        ("", ["run-gpu-tests"], "failure"),
    ],
    ids=["set-again-and-approved", "on-and-off", "same-second", "approved-before", "no-time"],
)
def test_the_label_off_and_on_again(world: World, recorded: str, labels: list[str], state: str) -> None:
    """Two events, whose runs may end in any order; anybody with triage can set the label again."""
    environ = world.pull_event("unlabeled")
    world.put("gpuci/approved", "success", "approved by @ada (label)")
    world.repository.statuses[HEAD][-1]["created_at"] = recorded
    world.pull.labels = labels
    assert world.run(environ)[1]["decision"] == "revoked"
    found = world.newest("gpuci/approved")
    assert found is not None
    assert found[0] == state


@pytest.mark.parametrize(
    ("ours", "taken", "row", "state"),
    [
        ("", "run-gpu-tests", "revoked-by-any-label", "failure"),
        ("", "bug", "revoked-by-any-label", "failure"),
        ("gpu", "gpu", "revoked", "failure"),
        ("gpu", "bug", "no-configuration", "success"),
    ],
    ids=["unknown", "unknown-another", "by-the-input", "another"],
)
def test_an_approval_can_be_taken_back_when_find_changed_failed(
    world: World, capsys: pytest.CaptureFixture[str], ours: str, taken: str, row: str, state: str
) -> None:
    """No output of find-changed is there, and the label that is left on says nothing."""
    approve(world)
    world.inputs |= {"CONFIGURATION": "", "AFFECTED": "", "LABEL": ours, "WAIT_SECONDS": "600"}
    code, outputs = world.run(world.pull_event("unlabeled", taken, sender="tri"))
    assert (code, outputs["approved"], outputs["decision"]) == (0, "false", row)
    assert world.newest("gpuci/approved") == (
        ("failure", "revoked by @tri") if state == "failure" else ("success", "approved by @ada (label)")
    )
    assert "without the configuration any may be" in outputs["reason"] or row != "revoked-by-any-label"
    assert "::warning" in capsys.readouterr().out
    assert f"gpuci approve 12 {HEAD}" in world.summary()
    assert world.newest("gpuci") == (
        "pending",
        f"waits for approval: {'label gpu' if ours else 'the label'}, or gpuci approve 12",
    )


@pytest.mark.parametrize("action", ["labeled", "opened", "synchronize"])
def test_nothing_else_comes_of_a_run_without_a_configuration(world: World, action: str) -> None:
    world.inputs["CONFIGURATION"] = ""
    with pytest.raises(ConfigError, match="configuration is empty"):
        world.run(world.pull_event(action))
    assert world.server.requests == []


def test_an_approval_is_taken_back_also_where_no_test_can_be_affected(world: World) -> None:
    world.put("gpuci/approved", "success", "approved by @ada (label)")
    world.inputs["AFFECTED"] = "false"
    world.run(world.pull_event("unlabeled"))
    assert world.newest("gpuci/approved") == ("failure", "revoked by @ada")
    assert world.newest("gpuci") is None


def test_a_re_run_needs_the_record_on_the_head(world: World) -> None:
    again: dict[str, Any] = {"attempt": 2, "sender": "tri"}
    assert world.run(world.pull_event(**again))[1]["decision"] == "re-run-without-approval"
    world.put("gpuci/approved", "success", "approved by @ada (label)")
    _, outputs = world.run(world.pull_event(**again))
    assert (outputs["approved"], outputs["approver"]) == ("true", "ada")
    environ = world.pull_event(**again)
    world.pull.head_sha = OLD
    assert world.run(environ)[1]["decision"] == "re-run-of-old-commit"
    assert (
        len([seen for seen in world.server.requests if seen.method == "POST"]) == 2
    )  # gpuci: pending, twice


def dispatch(world: World, sha: str = HEAD, **more: Any) -> tuple[int, dict[str, str]]:
    world.inputs |= {"PULL_REQUEST": "12", "SHA": sha}
    return world.run(world.event("workflow_dispatch", **more))


def test_a_dispatch_approves_its_commit_without_a_quiet_period(world: World) -> None:
    world.repository.check_suites.clear()
    _, outputs = dispatch(world)
    assert (outputs["approved"], outputs["sha"], outputs["approver"]) == ("true", HEAD, "ada")
    assert world.newest("gpuci/approved") == ("success", "approved by @ada (dispatch)")


@pytest.mark.parametrize(
    ("sha", "sender", "row"),
    [(OLD, "ada", "head-moved"), (HEAD, "tri", "no-write-access"), (HEAD, "app[bot]", "not-a-person")],
    ids=["old", "triage", "token"],
)
def test_a_dispatch_that_is_refused(world: World, sha: str, sender: str, row: str) -> None:
    _, outputs = dispatch(world, sha, sender=sender)
    assert (outputs["approved"], outputs["decision"], world.newest("gpuci/approved", sha)) == (
        "false",
        row,
        None,
    )


def test_a_dispatch_of_a_pull_request_that_is_not_there(world: World) -> None:
    world.inputs |= {"PULL_REQUEST": "13", "SHA": HEAD}
    with pytest.raises(ApiError, match="finds no pull request 13"):
        world.run(world.event("workflow_dispatch"))


@pytest.mark.parametrize(
    ("event", "payload", "row"),
    [
        ("push", {"ref": "refs/heads/gpuci/pr-12", "after": HEAD, "before": BASE}, "push"),
        ("schedule", {}, "schedule"),
        ("workflow_dispatch", {}, "dispatch-of-a-branch"),
        ("merge_group", {"merge_group": {"head_sha": HEAD, "base_sha": BASE}}, "merge-queue"),
    ],
    ids=["mirror-branch", "schedule", "dispatch", "merge-queue"],
)
def test_what_is_trusted_needs_no_approval_and_gets_no_record(
    world: World, event: str, payload: dict[str, Any], row: str
) -> None:
    _, outputs = world.run(world.event(event, **payload))
    assert (outputs["approved"], outputs["decision"]) == ("true", row)
    assert {seen.method for seen in world.server.requests} == {"GET"}


def test_an_environment_that_keeps_nobody_out_is_refused(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.repository.environments.clear()
    code, outputs = world.run(world.pull_event())
    assert (code, outputs["approved"], outputs["decision"]) == (2, "false", "environment-unprotected")
    assert "gpu is missing" in outputs["reason"]
    assert world.newest("gpuci/approved") is None
    assert "::error" in capsys.readouterr().out
    assert "the environment is not protected" in world.summary()


def test_an_environment_without_protection_can_be_accepted_for_a_trial(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.repository.environments.clear()
    world.inputs["ACCEPT_UNPROTECTED_ENVIRONMENT"] = "true"
    assert world.run(world.pull_event())[1]["approved"] == "true"
    assert "was not checked" in capsys.readouterr().out


def test_nothing_is_asked_for_a_fork_whose_workflow_is_its_own(world: World) -> None:
    environ = world.pull_event() | {"GITHUB_EVENT_NAME": "pull_request"}
    _, outputs = world.run(environ, token="weak")
    assert (outputs["approved"], outputs["decision"], world.asked()) == ("false", "fork-pull-request", [])


def test_a_change_that_affects_no_test_needs_no_approval(world: World) -> None:
    world.inputs["AFFECTED"] = "false"
    _, outputs = world.run(world.pull_event("synchronize"))
    assert (outputs["approved"], outputs["decision"]) == ("false", "nothing-affected")
    assert (world.newest("gpuci"), world.pull.labels) == (None, [])


def test_a_status_that_can_not_be_set_is_a_warning_where_nothing_was_approved(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.server.state.tokens["job"].permissions["statuses"] = "read"
    code, outputs = world.run(world.pull_event("opened"))
    assert (code, outputs["decision"]) == (0, "not-asked")
    assert "statuses: write" in capsys.readouterr().out


def test_a_status_that_can_not_be_read_takes_all_that_the_job_needs(world: World) -> None:
    """Not `read` first, and `write` one run later."""
    del world.server.state.tokens["job"].permissions["statuses"]
    with pytest.raises(ApiError) as caught:
        world.run(world.pull_event())
    assert world.asked()[-1].startswith("GET ")
    assert "add `statuses: write`" in caught.value.page()
    assert "statuses: read" not in caught.value.page()


def test_an_approval_that_can_not_be_recorded_is_none(world: World) -> None:
    world.server.state.tokens["job"].permissions["statuses"] = "read"
    with pytest.raises(ApiError) as caught:
        world.run(world.pull_event())
    assert "statuses: write" in caught.value.page()
    assert world.outputs() == {}


# --- waiting


def during_the_wait(world: World, monkeypatch: pytest.MonkeyPatch, *changes: Change) -> list[float]:
    """What happens at each pause; the pauses that were asked for."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        if len(pauses) < len(changes):
            changes[len(pauses)](world)
        pauses.append(seconds)

    monkeypatch.setattr("gpuci.steps.wait_for_label.time.sleep", pause)
    return pauses


def approve(world: World) -> None:
    world.put("gpuci/approved", "success", "approved by @ada (label)")


def approve_and_move(world: World) -> None:
    approve(world)
    moved(world)


def test_a_run_can_wait_for_the_approval(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.inputs["WAIT_SECONDS"] = "600"
    pauses = during_the_wait(world, monkeypatch, same, approve)
    _, outputs = world.run(world.pull_event("opened"))
    assert (outputs["approved"], outputs["approver"]) == ("true", "ada")
    assert outputs["decision"] == "approved-while-waiting"
    assert pauses == [100.0, 100.0]


@pytest.mark.parametrize(
    ("changes", "row"), [([same], "not-asked"), ([approve_and_move], "not-asked")], ids=["never", "moved"]
)
def test_a_wait_has_an_end(
    world: World, monkeypatch: pytest.MonkeyPatch, changes: list[Change], row: str
) -> None:
    world.inputs["WAIT_SECONDS"] = "9999"
    pauses = during_the_wait(world, monkeypatch, *changes)
    _, outputs = world.run(world.pull_event("opened"))
    assert (outputs["approved"], outputs["decision"]) == ("false", row)
    assert sum(pauses) <= 3600
    assert len(world.server.requests) <= 30


# tests/e2e/requests.expected.json: each of 12 shards and build-image look at the record once, and
# gpu-tests-passed sets the status, looks for the comment, and writes it.
OTHER_JOBS = 12 + 1 + 3


@pytest.mark.parametrize("action", ["opened", "synchronize"])
def test_a_run_of_12_shards_that_waits_sends_30_requests_at_most(
    world: World, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    world.inputs["WAIT_SECONDS"] = "3600"
    pauses = during_the_wait(world, monkeypatch, *[same] * 5, approve)
    _, outputs = world.run(world.pull_event(action))
    assert (outputs["decision"], len(pauses)) == ("approved-while-waiting", 6)
    assert len(world.server.requests) + OTHER_JOBS <= 30


def test_a_commit_approved_before_is_not_started_by_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.inputs["WAIT_SECONDS"] = "600"
    approve(world)
    pauses = during_the_wait(world, monkeypatch)
    assert world.run(world.pull_event("synchronize"))[1]["approved"] == "false"
    assert pauses == []


# --- inputs, and text of strangers


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"CONFIGURATION": ""}, "configuration is empty"),
        ({"CONFIGURATION": "{}"}, "the configuration in the document is broken"),
        ({"WAIT_SECONDS": "soon"}, "wait-seconds is 'soon'"),
        ({"AFFECTED": "maybe"}, "affected is 'maybe'"),
        ({"SHA": HEAD}, "inputs of workflow_dispatch"),
        ({"NAME": "a.b"}, "the input name is 'a.b'"),
    ],
    ids=["none", "other", "wait", "affected", "sha", "name"],
)
def test_an_input_that_makes_no_sense(world: World, inputs: dict[str, str], told: str) -> None:
    world.inputs |= inputs
    with pytest.raises(ConfigError, match=told):
        world.run(world.pull_event())
    assert world.server.requests == []


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ({"name": ""}, "label.name"),
        ({"name": "x", "quiet-seconds": None}, "label.quiet-seconds of the configuration is None"),
        ({"name": "x", "quiet-seconds": -1, "wait-seconds": 0}, "label.quiet-seconds"),
        ({"name": "x", "quiet-seconds": 1, "wait-seconds": True}, "label.wait-seconds"),
        ({"name": "x", "quiet-seconds": 1, "wait-seconds": float("inf")}, "label.wait-seconds"),
        ({"name": "x", "quiet-seconds": float("nan"), "wait-seconds": 0}, "label.quiet-seconds"),
    ],
    ids=["name", "missing", "negative", "flag", "infinite", "no-number"],
)
def test_a_configuration_that_find_changed_did_not_make(
    world: World, label: dict[str, Any], told: str
) -> None:
    world.configuration = json.dumps(json.loads(world.configuration) | {"label": label})
    with pytest.raises(ConfigError, match=told):
        world.run(world.pull_event())


def test_a_sender_of_any_name_stays_text(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x`</code>\n::error::\n##[add-mask]@team"
    world.run(world.pull_event(sender=name))
    said = capsys.readouterr().out + world.summary()
    lines = [line for line in said.splitlines() if line.lstrip().startswith("::")]
    assert [line.partition(" ")[0] for line in lines] == ["::warning"]
    assert "##[" not in said
    assert "@team" not in world.summary()


def test_the_program_needs_the_standard_library_only(world: World) -> None:
    environ = world.pull_event() | {
        "GPUCI_TOKEN": "job",
        "GITHUB_ACTIONS": "true",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(ENTRY)], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert world.outputs()["approved"] == "true"
    assert f"[{HEAD}]" in done.stdout


def test_a_label_that_goes_while_it_is_looked_at_leaves_no_approval(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run of its removal can be over before the slower one has recorded what that takes back."""
    asked = environments.problem

    def meanwhile(client: Client, name: str) -> str:
        monkeypatch.undo()
        world.pull.labels = []
        assert world.run(world.pull_event("unlabeled"))[1]["decision"] == "revoked"
        assert world.newest("gpuci/approved") is None
        return asked(client, name)

    monkeypatch.setattr(environments, "problem", meanwhile)
    environ = world.pull_event()
    code, outputs = world.run(environ)
    assert (code, outputs["approved"], outputs["decision"]) == (0, "false", "label-gone")
    assert world.newest("gpuci/approved") == ("failure", "revoked: the label was taken off meanwhile")
    told = world.newest("gpuci")
    assert told is not None
    assert told[0] == "pending"
    assert "waits for approval" in told[1]
