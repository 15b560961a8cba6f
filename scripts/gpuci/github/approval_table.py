"""The table of who may run what: the first row that holds decides. Pure; docs/security.md prints it.

Refusals come first, then the one about the environment, then what starts a run. Each of those names all of
its conditions again, so that a refusal that is missing above ends in the last row and not on the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpuci.github.approval_facts import (
    WRITERS,
    Facts,
    asks,
    came_while_waiting,
    is_foreign,
    is_pull_event,
    revokes,
)

Record = Literal["approve", "revoke"]


@dataclass(frozen=True)
class Row:
    """A row of the table. `when` is its words in the docs, `reason` and `advice` those of a run."""

    name: str
    when: str
    holds: Callable[[Facts], bool]
    reason: str
    advice: str = ""
    approved: bool = False
    record: Record | None = None

    @property
    def then(self) -> str:
        """What comes of it, in words."""
        told = {"approve": "**runs**; recorded on the commit", "revoke": "the approval is taken back"}
        return told[self.record] if self.record else "**runs**" if self.approved else "nothing runs"


def _starts(facts: Facts) -> bool:
    return facts.appeared or not is_pull_event(facts) or asks(facts)


def _idle(facts: Facts) -> bool:
    return is_pull_event(facts) and not asks(facts) and not came_while_waiting(facts)


def _first(facts: Facts) -> bool:
    return asks(facts) and not facts.rerun


def _again(facts: Facts) -> bool:
    return asks(facts) and facts.rerun


def _by_label(facts: Facts) -> bool:
    return _first(facts) and facts.event != "workflow_dispatch"


def _by_a_writer(facts: Facts) -> bool:
    return facts.open and facts.head and facts.user and facts.permission in WRITERS


def _trusted(event: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.event == event and not facts.pull_request


_AGAIN = "take the label {label} off and set it again"
UNPROTECTED = Row(
    "environment-unprotected",
    "it would run, but the environment of the key is missing or open to any branch",
    lambda f: bool(f.environment) and _starts(f),
    "{environment}",
    "under Settings > Environments give it the key, and the default branch as only deployment branch",
)

NOT_ASKED: tuple[Row, ...] = (
    Row(
        "fork-pull-request",
        "`pull_request` of a fork, any action",
        lambda f: is_pull_event(f) and is_foreign(f),
        "the event pull_request of a fork runs the fork's own workflow, with a token that only reads",
        "start the run by hand, or use pull_request_target for the label",
    ),
    Row(
        "revoked",
        "our label was taken off",
        lambda f: revokes(f) and f.label_event is True,
        "@{actor} took the label {label} off",
        record="revoke",
    ),
    Row(
        "revoked-by-any-label",
        "a label was taken off, and nobody knows which is ours: find-changed failed, no input `label`",
        revokes,
        "@{actor} took a label off, and without the configuration any may be the one that approved",
        "repair what find-changed tells; then approve the commit anew, if it was another label",
        record="revoke",
    ),
    Row(
        "no-configuration",
        "find-changed failed, and our label was not taken off",
        lambda f: not f.configured,
        "find-changed told no configuration to go by",
        "repair what find-changed tells",
    ),
    Row(
        "nothing-affected",
        "the change can break no GPU test",
        lambda f: not f.affected,
        "no GPU test can be affected, so none needs an approval",
    ),
    Row(
        "pushed",
        "`synchronize`: new commits, or a force-push back to an approved commit",
        lambda f: _idle(f) and f.action == "synchronize",
        "a push starts nothing: nobody approves a commit by it",
    ),
    Row(
        "other-label",
        "another label was set or taken off",
        lambda f: _idle(f) and f.action in ("labeled", "unlabeled") and not f.label_event,
        "the label of this event is {named}, not {label}",
    ),
    Row(
        "not-asked",
        "any other action: opened, reopened, edited, ready for review; a re-run of a label's removal",
        _idle,
        "nobody asked for the tests of this commit",
    ),
)

REFUSED: tuple[Row, ...] = (
    Row(
        "re-run-of-old-commit",
        "re-run, and the commit is not the head of the pull request now",
        lambda f: _again(f) and not f.head,
        "this run is of a commit that is no longer the head of the pull request",
        "look at the commit that is, and approve that one",
    ),
    Row(
        "re-run-without-approval",
        "re-run, and no approval stands on the commit",
        lambda f: _again(f) and not f.recorded,
        "a re-run approves nothing, and no approval stands on this commit",
        "approve it anew",
    ),
    Row(
        "closed",
        "asked for, and the pull request is not open now",
        lambda f: _first(f) and not f.open,
        "the pull request is not open",
        "reopen it first",
    ),
    Row(
        "head-moved",
        "asked for, and the commit is not the head of the pull request now",
        lambda f: _first(f) and not f.head,
        "this commit is not the head of the pull request, maybe because of newer commits",
        "look at the commit that is, and approve that one",
    ),
    Row(
        "label-gone",
        "our label was set, and is not on the pull request now",
        lambda f: _by_label(f) and not f.labeled,
        "the label {label} was taken off again",
        "set it again",
    ),
    Row(
        "not-a-person",
        "asked for by an app, a bot, or the token of a workflow",
        lambda f: _first(f) and not f.user,
        "{actor} is no person, and only people approve a commit",
        "let a person with write access ask for it",
    ),
    Row(
        "no-write-access",
        "asked for by somebody without write access; triage is not enough",
        lambda f: _first(f) and f.permission not in WRITERS,
        "@{actor} has no write access to this repository (permission: {role})",
        "let a person with write access ask for it",
    ),
    Row(
        "push-time-unknown",
        "our label was set, and nothing tells when the commit was pushed",
        lambda f: _by_label(f) and f.quiet == "unknown",
        "GitHub does not tell when this commit was pushed, so it is not sure that the label meant this one",
        _AGAIN,
    ),
    Row(
        "too-soon",
        "our label was set sooner after the push than `label.quiet-seconds`",
        lambda f: _by_label(f) and f.quiet != "kept",
        "as far as GitHub tells, this commit was not there for {quiet_seconds} s when the label was set",
        f"look at the commit that is there now, then {_AGAIN}",
    ),
    UNPROTECTED,
)

STARTED: tuple[Row, ...] = (
    Row(
        "push",
        "push to any branch that the workflow listens to: the default branch, a mirror branch",
        _trusted("push"),
        "pushed by @{actor}, who has write access",
        approved=True,
    ),
    Row(
        "merge-queue",
        "`merge_group`",
        _trusted("merge_group"),
        "put into the merge queue by somebody with write access",
        approved=True,
    ),
    Row("schedule", "`schedule`", _trusted("schedule"), "a schedule of the default branch", approved=True),
    Row(
        "dispatch-of-a-branch",
        "`workflow_dispatch` without a pull request",
        _trusted("workflow_dispatch"),
        "started by @{actor} on a branch of this repository",
        approved=True,
    ),
    Row(
        "re-run",
        "re-run, and the approval stands on the commit, which is still the head",
        lambda f: _again(f) and f.head and f.recorded,
        "approved by {approved_by}, and the approval stands",
        approved=True,
    ),
    Row(
        "approved-while-waiting",
        "`wait-seconds` is set, and an approval of the commit came meanwhile, which is still the head",
        came_while_waiting,
        "approved by {approved_by} while this run waited",
        approved=True,
    ),
    Row(
        "approved-by-dispatch",
        "`workflow_dispatch` with a pull request and its head's full SHA, by a person with write access",
        lambda f: _first(f) and f.event == "workflow_dispatch" and _by_a_writer(f),
        "approved by @{actor}, who started this run for the commit",
        approved=True,
        record="approve",
    ),
    Row(
        "approved-by-label",
        "our label was set by a person with write access, on the head, long enough after its push, and is on",
        lambda f: _by_label(f) and f.labeled and f.quiet == "kept" and _by_a_writer(f),
        "approved by @{actor}, who set the label {label}",
        approved=True,
        record="approve",
    ),
)

UNKNOWN = Row("unknown", "anything else", lambda f: True, "the event {event} is not known to start a run")

ROWS: tuple[Row, ...] = (*NOT_ASKED, *REFUSED, *STARTED, UNKNOWN)
