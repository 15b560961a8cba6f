"""The commits of a run, fetched, and what changed between them. I/O.

Commits come without their files (`--filter=blob:none`); of those only the ones that say something of packages
are brought. Ten thousand files are then a few hundred kilobytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpuci.changes.model import Changes, Rules, Side
from gpuci.changes.read import Files, Source, compare_trees, listed
from gpuci.changes.select import everything, select
from gpuci.errors import ConfigError
from gpuci.github.model import Subject
from gpuci.github.step import Step
from gpuci.repository.fetch import Repository
from gpuci.repository.history import merge_bases
from gpuci.steps.changed_base import Base, base_of

_TREES = "blob:none"


@dataclass(frozen=True)
class Remote:
    """A repository of ours and where its commits come from; `root` is the directory in them."""

    repository: Repository
    url: str
    token: str
    root: str

    @property
    def source(self) -> Source:
        """Objects, brought when they are read."""
        return Source(self.repository.git, self._bring)

    def _bring(self, object_ids: Sequence[str]) -> None:
        self.repository.bring(self.url, self.token, object_ids)

    def fetch(self, *names: str) -> tuple[str, ...]:
        """The ids of commits, which are here then with their trees; raises ConfigError."""
        return self.repository.fetch(self.url, self.token, names, filter_=_TREES)

    def files(self, sha: str) -> Files:
        """What is in ROOT of a commit; raises ConfigError if there is no ROOT."""
        return listed(self.repository.entries(sha, self.root))


def remote_of(step: Step, repository: str, root: str) -> Remote:
    """The repository of a run, without anything in it yet."""
    server = step.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    ours = Repository(step.scratch() / "repository", say=step.say)
    return Remote(ours, f"{server.rstrip('/')}/{repository}", step.secret("TOKEN"), root)


def changes_of(remote: Remote, subject: Subject, head: Files, rules: Rules) -> Changes:
    """What changed for a run, and which tests that can break; `head` is the listing of the tested commit.

    Whatever keeps the base from being found means everything, with the reason.
    """
    try:
        base, reason = _base(remote, subject, base_of(subject))
        before = remote.files(base) if base else {}
    except ConfigError as error:
        base, reason = "", error.what
    if not base:
        return replace(everything([reason], rules, Side(head)), head=subject.sha)
    compared = compare_trees(remote.source, before, head)
    found = select(compared.changed, compared.base, compared.head, rules, compared.locks)
    return replace(found, base=base, head=subject.sha)


def _base(remote: Remote, subject: Subject, rule: Base) -> tuple[str, str]:
    """The commit that is compared with, its trees here; or an empty text, and why there is none."""
    if not rule.commit:
        return "", rule.reason
    if not rule.merge:
        return remote.fetch(rule.commit)[0], ""
    other = remote.repository.fetched(rule.commit)  # for its configuration
    found = merge_bases(remote.repository, remote.url, remote.token, other, subject.sha)
    reason = _doubt(found, subject.sha, other)
    if reason:
        return "", reason
    tree = remote.repository.git.line("log", "-1", "--format=%T", found[0])  # which does not look for it
    remote.repository.bring(remote.url, remote.token, [tree])
    return found[0], ""


def _doubt(found: tuple[str, ...], sha: str, other: str) -> str:
    """Why the merge bases don't tell what changed, empty if they do."""
    if not found:
        return f"{sha} and {other} have no history in common"
    if len(found) > 1:
        return f"{sha} and {other} were merged crosswise: they have {len(found)} common ancestors"
    if found[0] == sha:
        return f"{sha} is part of {other} already: what it changed can't be told"
    return ""
