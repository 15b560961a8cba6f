"""What a run is about -> which commit its changes are counted from, and whose configuration counts. Pure.

docs/changes.md has the table of events. Who may only propose code chooses neither.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuci.errors import ConfigError
from gpuci.github.model import Subject


@dataclass(frozen=True)
class Base:
    """`commit` is a full id, or a ref; empty: everything is due, and `reason` says why.

    `merge`: not this commit itself counts, but where the history of the tested one left it.
    """

    commit: str
    merge: bool = False
    reason: str = ""


def base_of(subject: Subject) -> Base:
    """Where the changes of a run are counted from."""
    if not subject.base:
        return Base("", reason=_reason(subject))
    ref = configuration_ref(subject)
    # The verdict belongs to the commit, whatever branch it goes into: who opens a pull request chooses that
    # branch, and can choose another one later. And a branch is pushed in pieces: the last answers for all.
    return Base(ref, merge=True) if ref else Base(subject.base)


def configuration_ref(subject: Subject) -> str:
    """The ref whose configuration counts; empty: that of the tested commit.

    Who may only propose code must not choose where and how it runs.
    """
    proposed = subject.pull_request is not None
    mirrored = subject.event == "push" and not _on_default_branch(subject)
    return default_ref(subject) if proposed or mirrored else ""


def default_ref(subject: Subject) -> str:
    """The default branch; raises ConfigError if the event does not name it."""
    if not subject.default_branch:
        raise ConfigError(
            "the event does not tell the default branch",
            why="its configuration is the one that counts, and the payload has no repository.default_branch",
        )
    return f"refs/heads/{subject.default_branch}"


def _on_default_branch(subject: Subject) -> bool:
    return bool(subject.default_branch) and subject.ref == f"refs/heads/{subject.default_branch}"


def _reason(subject: Subject) -> str:
    if subject.event == "push":
        return f"this is the first push of {subject.ref}"
    return f"a run by {subject.event} tests everything"
