"""What is known of a run when it is decided whether it may start, and what kind of event that is. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from gpuci.github.events import PULL_REQUEST_EVENTS
from gpuci.github.model import Subject

Quiet = Literal["kept", "broken", "unknown"]
# docs.github.com/rest/collaborators: `permission` tells maintain as write and triage as read.
WRITERS = frozenset({"admin", "maintain", "write"})
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|\+00:00)")


class Facts(NamedTuple):
    """What the table looks at. What was not asked for keeps its default, which approves nothing.

    `label_event`: the event's label is ours; None: nobody knows, as the name of ours is not known.
    `configured`: there is a configuration. `affected`: the change can break a test. `head`: the commit
    is the head of the pull request now; `open`: that is open now. `user`: the actor is a person, not an app.
    `role`: what people call the actor's permission, for texts. `quiet`: whether the label was set long enough
    after the commit was pushed. `recorded`: an approval stands on this commit; `appeared`: it came while this
    run waited. `status`: state of the commit's status `gpuci`, empty if none. `environment`: what is wrong
    with its protection. `labeled`: the pull request has our label now, or had it when it was pushed to. The
    last five are for texts, `named` is the label of the event. Whether it is a draft plays no part.
    """

    event: str
    pull_request: bool = False
    action: str = ""
    label_event: bool | None = False
    configured: bool = False
    rerun: bool = False
    affected: bool = True
    fork: bool = False
    head: bool = False
    open: bool = False
    user: bool = False
    permission: str = "none"
    role: str = ""
    quiet: Quiet = "unknown"
    recorded: bool = False
    appeared: bool = False
    status: str = ""
    environment: str = ""
    labeled: bool = False
    remove_on_push: bool = True
    actor: str = ""
    approver: str = ""
    label: str = ""
    quiet_seconds: float = 0.0
    named: str = ""


def facts_of(
    subject: Subject, label: str, *, configured: bool, affected: bool, quiet_seconds: float, remove: bool
) -> Facts:
    """What the event alone tells. The payload of a first attempt is of just now, that of a re-run is not.

    `label` is empty if its name is not known.
    """
    pull = subject.pull_request
    first = subject.run_attempt == 1
    return Facts(
        event=subject.event,
        pull_request=pull is not None,
        action=subject.action,
        label_event=subject.label == label if label else None,
        configured=configured,
        rerun=not first,
        affected=affected,
        fork=subject.fork,
        head=first and pull is not None and pull.head_sha == subject.sha,
        open=first and pull is not None and pull.open,
        user=subject.actor_type == "User",
        labeled=pull is not None and label in pull.labels,
        remove_on_push=remove,
        actor=subject.actor,
        label=label,
        quiet_seconds=quiet_seconds,
        named=subject.label,
    )


def is_pull_event(facts: Facts) -> bool:
    """Whether GitHub started this for something that happened to a pull request."""
    return facts.pull_request and facts.event in PULL_REQUEST_EVENTS


def is_foreign(facts: Facts) -> bool:
    """Whether the workflow is the fork's own, with a token that only reads."""
    return facts.event == "pull_request" and facts.fork


def asks(facts: Facts) -> bool:
    """Whether the event says of a pull request's commit: test this one."""
    if facts.event == "workflow_dispatch":
        return facts.pull_request
    return is_pull_event(facts) and facts.action == "labeled" and facts.label_event is True


def revokes(facts: Facts) -> bool:
    """Whether the event takes an approval back; an old payload does not. A label that may be ours does."""
    off = facts.action == "unlabeled" and facts.label_event is not False
    return is_pull_event(facts) and off and not facts.rerun and not is_foreign(facts)


def may_wait(facts: Facts) -> bool:
    """Whether an approval of the commit can still come and would count for this run."""
    event = is_pull_event(facts) and not facts.rerun and not is_foreign(facts)
    idle = not asks(facts) and not revokes(facts) and not facts.recorded
    return event and idle and facts.configured and facts.affected and facts.open


def came_while_waiting(facts: Facts) -> bool:
    """Whether what the run waited for came: an approval of the commit, which is still the head."""
    event = is_pull_event(facts) and not facts.rerun and not asks(facts)
    return event and facts.appeared and facts.head and facts.open


def quiet(labelled: str, pushed: Iterable[str], seconds: float) -> Quiet:
    """Whether a label was set at least `seconds` after each of the times of a push (ISO 8601, UTC).

    None, or one that can't be read: unknown.
    """
    times = [_epoch(text) for text in pushed]
    then = _epoch(labelled)
    known = [time for time in times if time is not None]
    if then is None or not known or len(known) < len(times):
        return "unknown"
    return "kept" if then - max(known) >= seconds else "broken"


def earliest(times: Iterable[str]) -> str:
    """The earliest of some times (ISO 8601, UTC); empty if there is none, or one can't be read."""
    read = [(_epoch(text), text) for text in times]
    known = [(when, text) for when, text in read if when is not None]
    return min(known)[1] if known and len(known) == len(read) else ""


def _epoch(text: str) -> int | None:
    """Seconds since 1970 of a time as GitHub writes it, None if it is none."""
    found = _TIME.fullmatch(text)
    return calendar.timegm(tuple(map(int, found.groups()))) if found else None
