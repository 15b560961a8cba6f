"""Events as GitHub sends them: name, payload, who caused them, what is checked out. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.github.endpoints import pull_document
from tests.fakes.github.state import Pull, Repository

LABEL = "run-gpu-tests"
# Who has which role in the caller's repository. The others have none.
COLLABORATORS = {"maria": "maintain", "wim": "write", "tess": "triage"}


@dataclass(frozen=True)
class Event:
    """`sha` and `branch` are what the run has as GITHUB_SHA and the branch of GITHUB_REF.

    `foreign`: GitHub runs a fork's workflow, so it gives no secret, and tokens that only read.
    """

    name: str
    payload: Mapping[str, Any]
    actor: str
    sha: str
    branch: str = "main"
    foreign: bool = False


def _base(repository: Repository, actor: str) -> dict[str, Any]:
    owner, _, name = repository.name.partition("/")
    described = {"full_name": repository.name, "name": name, "default_branch": repository.default_branch}
    return {
        "repository": {**described, "owner": {"login": owner}},
        "sender": {"login": actor, "type": "User"},
    }


def pull_request(repository: Repository, pull: Pull, action: str, actor: str, *, label: str = LABEL) -> Event:
    """`pull_request_target`, with the pull request as it is now; it runs on the default branch."""
    if action in ("labeled", "unlabeled"):
        others = [one for one in pull.labels if one != label]
        pull.labels = [*others, label] if action == "labeled" else others
    payload = {
        **_base(repository, actor),
        "action": action,
        "number": pull.number,
        "pull_request": pull_document(repository.name, pull, {}),
    }
    if action in ("labeled", "unlabeled"):
        payload["label"] = {"name": label}
    return Event("pull_request_target", payload, actor, repository.branches["main"])


def own_workflow(repository: Repository, pull: Pull, action: str, actor: str) -> Event:
    """`pull_request` of a fork, which runs the workflow of the merge of head and base."""
    event = pull_request(repository, pull, action, actor)
    return Event("pull_request", event.payload, actor, pull.head_sha, "feature", foreign=True)


def push(repository: Repository, branch: str, before: str, after: str, actor: str) -> Event:
    """`push` to a branch."""
    payload = {"ref": f"refs/heads/{branch}", "before": before, "after": after, "deleted": False}
    return Event("push", {**_base(repository, actor), **payload}, actor, after, branch)


def merge_group(repository: Repository, base: str, head: str, actor: str) -> Event:
    """`merge_group`: the queue made a commit of the base and a pull request, on a branch of its own."""
    branch = f"gh-readonly-queue/main/pr-12-{base}"
    group = {
        "head_sha": head,
        "head_ref": f"refs/heads/{branch}",
        "base_sha": base,
        "base_ref": "refs/heads/main",
    }
    payload = {"action": "checks_requested", "merge_group": group}
    return Event("merge_group", {**_base(repository, actor), **payload}, actor, head, branch)


def schedule(repository: Repository, actor: str) -> Event:
    """`schedule`: the newest commit of the default branch; the payload has not even the repository."""
    return Event("schedule", {"schedule": "17 3 * * *"}, actor, repository.branches["main"])


def dispatch(repository: Repository, actor: str, **inputs: str) -> Event:
    """`workflow_dispatch` on the default branch; `_` in the name of an input stands for `-`."""
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    payload = {**_base(repository, actor), "ref": "refs/heads/main", "inputs": given}
    return Event("workflow_dispatch", payload, actor, repository.branches["main"])
