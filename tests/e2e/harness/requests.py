"""What the fake GitHub was asked, as lines that are the same in each run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.e2e.harness.product import token_of
from tests.fakes.github.server import Seen

EXPECTED = Path(__file__).resolve().parents[1] / "requests.expected.json"
LIMIT = 30  # requests to the API that all jobs of a run may make together, one of each of its 12 shards too
Permissions = Mapping[str, Mapping[str, str]]


def expected() -> dict[str, list[str]]:
    """Scenario -> its lines."""
    document: dict[str, list[str]] = json.loads(EXPECTED.read_text())
    return document


def lines(seen: Sequence[Seen], jobs: Permissions, names: Mapping[str, str]) -> list[str]:
    """`job: METHOD path (permission)`, sorted, each once; one that was refused ends with its status.

    `jobs`: job -> permissions. `names`: text of a path (a SHA, the run's number) -> what stands for it.
    """
    return sorted({_line(one, jobs, names) for one in seen})


def _line(one: Seen, jobs: Permissions, names: Mapping[str, str]) -> str:
    job = next((name for name in jobs if token_of(name) == one.token), "(no token)")
    path = one.path.removeprefix("/repos/octo/tests/")
    for text, name in names.items():
        path = path.replace(text, name)
    path = re.sub(r"issues/comments/\d+", "issues/comments/ID", path)
    refused = "" if 200 <= one.status < 400 else f" -> {one.status}"
    return f"{job}: {one.method} {path} ({_permission(one, jobs.get(job, {}))}){refused}"


def _permission(one: Seen, has: Mapping[str, str]) -> str:
    """Of the permissions that would do, the one that the job has."""
    return next((each for each in one.permissions if granted(each, has)), " or ".join(one.permissions))


def granted(permission: str, has: Mapping[str, str]) -> bool:
    """Whether `scope: level` is among a job's permissions; reading metadata always is."""
    scope, _, level = permission.partition(": ")
    return scope == "metadata" or has.get(scope) in (level, "write")


def is_git(one: Seen) -> bool:
    """Whether git asked, not the API's client."""
    return one.path.endswith(("/info/refs", "/git-upload-pack"))


def foreign(seen: Sequence[Seen], jobs: Sequence[str]) -> list[Seen]:
    """Requests by no job's token, or by a client that does not say which action it is of that job."""
    known = {token_of(job) for job in jobs}
    return [one for one in seen if one.token not in known or not (is_git(one) or _named(one.agent))]


def _named(agent: str) -> bool:
    return re.fullmatch(r"gpuci/\S+ \([a-z-]+\)", agent) is not None
