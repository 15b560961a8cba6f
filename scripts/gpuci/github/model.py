"""Values of a run on GitHub. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_KEY_LENGTH = 60


@dataclass(frozen=True)
class PullRequest:
    """A pull request as an event or the API tells it. Times are ISO 8601 in UTC, empty if not told."""

    number: int
    head_sha: str
    head_repository: str  # owner/name; empty when the fork was deleted
    base_sha: str
    base_ref: str
    open: bool
    draft: bool
    author: str
    updated_at: str = ""
    head_pushed_at: str = ""  # the head repository's last push to any branch
    labels: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Subject:
    """What a run is about.

    `sha` is the commit to test. `base` is the commit that changes are counted from, empty: everything is due.
    `label` is the one that was set or removed. `trusted`: people with write access pushed the code; no
    approval is needed. `actor` is who caused this attempt of the run (re-ran it, for a re-run).
    """

    event: str
    action: str
    repository: str
    sha: str
    ref: str
    default_branch: str
    base: str
    actor: str
    actor_type: str
    run_attempt: int
    trusted: bool
    pull_request: PullRequest | None = None
    label: str = ""

    @property
    def fork(self) -> bool:
        """Whether the code comes from another repository."""
        return self.pull_request is not None and self.pull_request.head_repository != self.repository

    @property
    def key(self) -> str:
        """A name for concurrency groups: `pr-12`, `branch-main`; letters, digits, `._-`, at most 60."""
        if self.pull_request is not None:
            return f"pr-{self.pull_request.number}"
        plain = self.ref.removeprefix("refs/").replace("heads/", "branch-", 1).replace("tags/", "tag-", 1)
        safe = re.sub(r"[^A-Za-z0-9._-]", "-", plain)
        if safe == plain and len(safe) <= _KEY_LENGTH:
            return safe
        digest = hashlib.sha256(self.ref.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        return f"{safe[: _KEY_LENGTH - 13]}-{digest}"
