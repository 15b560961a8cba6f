"""The record of an approval: the commit status `gpuci/approved` on the commit itself. Standard library only.

Gate, submission and re-run ask for it on the exact commit, and for nothing else. Who can set a status can
push, so the record is as strong as write access, which is what an approval takes. No look at the pull request
could replace it: in its timeline a `labeled` event has no commit, and a `committed` one no time of a push
(docs.github.com/rest, "Issue event types").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuci.errors import GpuciError
from gpuci.github.approval_facts import quiet
from gpuci.github.client import APPROVAL_CONTEXT, Client, CommitStatus

_TOLD = re.compile(r"approved by @(?P<login>[A-Za-z0-9_-]{1,100}) \((?P<door>[a-z]{1,20})\)")


class Unauthorized(GpuciError):
    """Nobody approved this commit, or somebody took that back."""

    verdict = "unauthorized"


@dataclass(frozen=True)
class Approval:
    """Who approved a commit, by which door (`label`, `dispatch`), and when (ISO 8601); empty if not told."""

    sha: str
    login: str
    door: str
    at: str


def approved(client: Client, sha: str) -> Approval | None:
    """The approval that stands on a commit; the newest record counts. Raises ApiError."""
    newest = client.status(sha, APPROVAL_CONTEXT)
    return read(sha, newest) if newest is not None and newest.state == "success" else None


def require(client: Client, sha: str) -> Approval:
    """The approval that stands on a commit; raises Unauthorized if none does, and ApiError."""
    found = approved(client, sha)
    if found is None:
        raise Unauthorized(
            f"no approval stands on commit {sha}",
            why="nobody with write access approved it, or the approval was taken back since",
            then=f"look at the commit, then set the label again, or: gpuci approve PR {sha}",
        )
    return found


def approve(client: Client, sha: str, login: str, door: str, target_url: str = "") -> None:
    """Record an approval; raises ApiError."""
    client.set_status(sha, APPROVAL_CONTEXT, "success", f"approved by @{login} ({door})", target_url)


def revoke(client: Client, sha: str, login: str, target_url: str = "", *, but_after: str = "") -> bool:
    """Take the approval of a commit back; False if none stood. Raises ApiError.

    `but_after` (ISO 8601): one that was recorded after this time stays. `login` empty: nobody knows by whom.
    """
    found = approved(client, sha)
    if found is None or quiet(found.at, [but_after], 1) == "kept":
        return False
    told = f"revoked by @{login}" if login else "revoked: the label was taken off meanwhile"
    client.set_status(sha, APPROVAL_CONTEXT, "failure", told, target_url)
    return True


def read(sha: str, status: CommitStatus) -> Approval:
    """What a record tells; one that others wrote may tell nothing."""
    found = _TOLD.match(status.description)
    login, door = (found["login"], found["door"]) if found else ("", "")
    return Approval(sha, login, door, status.created_at)
