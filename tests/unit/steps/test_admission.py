"""What goes to a cluster: what people with write access pushed, or what has an approval on record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Repository, State, Token

from gpuci.errors import ConfigError, GpuciError
from gpuci.github.record import Unauthorized
from gpuci.github.step import Step
from gpuci.steps.admission import approver

OWN, HEAD, BASE = "1" * 40, "2" * 40, "3" * 40
PULL = {
    "number": 7,
    "state": "open",
    "head": {"sha": HEAD, "repo": {"full_name": "octo/shop"}},
    "base": {"sha": BASE, "ref": "main"},
}
SENDER = {"sender": {"login": "writer", "type": "User"}}
PAYLOADS: dict[str, dict[str, Any]] = {
    "push": {"ref": "refs/heads/main", "before": BASE, "after": OWN, **SENDER},
    "schedule": {},
    "workflow_dispatch": {"inputs": {}, **SENDER},
    "merge_group": {"merge_group": {"head_sha": OWN, "base_sha": BASE, "head_ref": "refs/heads/q"}, **SENDER},
    "pull_request": {"action": "labeled", "label": {"name": "x"}, "pull_request": PULL, **SENDER},
    "pull_request_target": {"action": "labeled", "label": {"name": "x"}, "pull_request": PULL, **SENDER},
}
TRUSTED = ("push", "schedule", "workflow_dispatch", "merge_group")


@pytest.fixture
def github() -> Iterator[Server]:
    """A GitHub whose token may read statuses, and nothing else."""
    state = State([Repository("octo/shop", commits=[OWN, HEAD])], {"t": Token({"statuses": "read"})})
    with Server(state) as server:
        yield server


def step_of(github: Server, directory: Path, event: str, token: str = "t") -> Step:
    """The step of a run that this event started."""
    (directory / "event.json").write_text(json.dumps(PAYLOADS[event]))
    environ = {
        "GITHUB_REPOSITORY": "octo/shop",
        "GITHUB_API_URL": github.url,
        "GITHUB_EVENT_PATH": str(directory / "event.json"),
        "GITHUB_SHA": OWN,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_ACTOR": "writer",
        "GITHUB_RUN_ATTEMPT": "1",
    }
    return Step("run-gpu-shard", environ, {"GPUCI_TOKEN": token})


def record(github: Server, sha: str, *states: tuple[str, str]) -> None:
    """Statuses of the context, the oldest first."""
    common = {"context": "gpuci/approved", "created_at": "2026-11-20T12:00:00Z"}
    github.state.repositories[0].statuses[sha] = [
        {**common, "state": state, "description": text} for state, text in states
    ]


GIVEN = ("success", "approved by @maria (label)")
TAKEN = ("failure", "revoked by @maria")


@pytest.mark.parametrize("event", TRUSTED)
def test_the_commit_of_such_an_event_needs_no_record(github: Server, tmp_path: Path, event: str) -> None:
    assert approver(step_of(github, tmp_path, event), event, OWN) == "writer"
    assert approver(step_of(github, tmp_path, event), event, "") == "writer"
    assert github.requests == []


@pytest.mark.parametrize("event", PAYLOADS)
def test_any_other_commit_has_to_have_its_own(github: Server, tmp_path: Path, event: str) -> None:
    """Whatever an earlier job said of it: the shard asks by itself."""
    with pytest.raises(Unauthorized, match=HEAD):
        approver(step_of(github, tmp_path, event), event, HEAD)
    record(github, OWN, GIVEN)
    with pytest.raises(Unauthorized, match=HEAD):
        approver(step_of(github, tmp_path, event), event, HEAD)
    record(github, HEAD, GIVEN)
    assert approver(step_of(github, tmp_path, event), event, HEAD) == "maria"
    assert {(seen.method, seen.path) for seen in github.requests} == {
        ("GET", f"/repos/octo/shop/commits/{HEAD}/statuses")
    }


@pytest.mark.parametrize(
    ("states", "stands"),
    [
        ([GIVEN], True),
        ([GIVEN, TAKEN], False),
        ([GIVEN, TAKEN, GIVEN], True),
        ([("pending", "waits")], False),
        ([("error", "approved by @maria (label)")], False),
        ([], False),
    ],
    ids=["given", "taken back", "given again", "pending", "error", "none"],
)
def test_the_newest_record_counts(
    github: Server, tmp_path: Path, states: list[tuple[str, str]], stands: bool
) -> None:
    record(github, HEAD, *states)
    step = step_of(github, tmp_path, "pull_request")
    if stands:
        assert approver(step, "pull_request", HEAD) == "maria"
    else:
        with pytest.raises(Unauthorized):
            approver(step, "pull_request", HEAD)


def test_a_directory_of_a_pull_request_is_refused(github: Server, tmp_path: Path) -> None:
    record(github, HEAD, GIVEN)
    with pytest.raises(Unauthorized, match="directory"):
        approver(step_of(github, tmp_path, "pull_request"), "pull_request", "")


@pytest.mark.parametrize("sha", ["2222222", "HEAD", HEAD[:-1], f"{HEAD}/../x"])
def test_only_a_whole_commit_id_is_asked_for(github: Server, tmp_path: Path, sha: str) -> None:
    with pytest.raises(ConfigError, match="no full commit id"):
        approver(step_of(github, tmp_path, "pull_request"), "pull_request", sha)
    assert github.requests == []


@pytest.mark.parametrize("token", ["", "another"])
def test_who_can_not_ask_is_not_let_in(github: Server, tmp_path: Path, token: str) -> None:
    record(github, HEAD, GIVEN)
    with pytest.raises(GpuciError):
        approver(step_of(github, tmp_path, "pull_request", token), "pull_request", HEAD)


def test_an_event_that_is_not_known_is_refused(github: Server, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="issue_comment"):
        approver(step_of(github, tmp_path, "push"), "issue_comment", OWN)


def test_without_an_event_nobody_is_asked(github: Server, tmp_path: Path) -> None:
    assert approver(step_of(github, tmp_path, "push"), "", HEAD) == ""
    assert github.requests == []


def test_a_runner_that_names_no_event_is_refused(github: Server, tmp_path: Path) -> None:
    step = step_of(github, tmp_path, "push")
    step = Step("run-gpu-shard", {**step.environ, "GITHUB_ACTIONS": "true"}, {"GPUCI_TOKEN": "t"})
    with pytest.raises(ConfigError, match="starts no run"):
        approver(step, "", OWN)
