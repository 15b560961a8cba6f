"""The decision table against a second statement of its rules, over the product of everything it looks at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.github.approval import decide, markdown_table
from gpuci.github.approval_facts import Facts, asks, earliest, facts_of, may_wait, quiet
from gpuci.github.approval_table import ROWS
from gpuci.github.events import subject_of

KINDS = [
    ("pull_request", True),
    ("pull_request_target", True),
    ("workflow_dispatch", True),
    ("workflow_dispatch", False),
    ("push", False),
    ("merge_group", False),
    ("schedule", False),
]
ACTIONS: list[tuple[str, bool | None]] = [
    ("labeled", True),
    ("labeled", False),
    ("unlabeled", True),
    ("unlabeled", False),
    ("unlabeled", None),
    ("labeled", None),
    ("synchronize", False),
    ("opened", False),
]
BOTH = (False, True)
YES_NO = [
    "rerun", "affected", "fork", "head", "open", "user", "writer", "recorded", "appeared", "unprotected",
    "labeled", "configured",
]  # fmt: skip


def facts(kind: tuple[str, bool], action: tuple[str, bool | None], **values: Any) -> Facts:
    """Facts from the dimensions of the product, in which three are plainer than in the product's code."""
    plain = {key: values[key] for key in values if key not in ("writer", "unprotected")}
    plain.setdefault("configured", True)
    return Facts(
        event=kind[0],
        pull_request=kind[1],
        action=action[0],
        label_event=action[1],
        permission="write" if values.get("writer", True) else "read",
        environment="open to all" if values.get("unprotected") else "",
        **plain,
    )


def product(kind: tuple[str, bool]) -> Iterator[Facts]:
    """Everything that who may run depends on."""
    for action, calm in itertools.product(ACTIONS, ("kept", "broken", "unknown")):
        for values in itertools.product(BOTH, repeat=len(YES_NO)):
            yield facts(kind, action, quiet=calm, **dict(zip(YES_NO, values, strict=True)))


# --- the rules, said again


def asked_by_label(f: Facts) -> bool:
    return f.event.startswith("pull_request") and f.action == "labeled" and f.label_event is True


def unlabeled(f: Facts) -> bool:
    """Our label was taken off, or one that may be ours."""
    return f.event.startswith("pull_request") and f.action == "unlabeled" and f.label_event in (True, None)


def asked(f: Facts) -> bool:
    return asked_by_label(f) or (f.event == "workflow_dispatch" and f.pull_request)


def approves(f: Facts) -> bool:
    """The one statement of when an approval is made."""
    person = f.user and f.permission == "write"
    exact = f.open and f.head
    calm = (f.quiet == "kept" and f.labeled) or not asked_by_label(f)
    return asked(f) and not f.rerun and person and exact and calm


def runs(f: Facts) -> bool:
    """The one statement of what reaches the cluster."""
    if not f.configured or not f.affected or f.environment or (f.event == "pull_request" and f.fork):
        return False
    trusted = f.event in ("push", "merge_group", "schedule", "workflow_dispatch") and not f.pull_request
    again = asked(f) and f.rerun and f.head and f.recorded
    waited = f.event.startswith("pull_request") and not asked(f) and not unlabeled(f)
    came = waited and not f.rerun and f.appeared and f.head and f.open
    return trusted or again or came or approves(f)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
def test_who_may_run_over_the_whole_product(kind: tuple[str, bool]) -> None:
    for one in product(kind):
        decision = decide(one)
        taken_back = unlabeled(one) and not one.rerun and not (one.event == "pull_request" and one.fork)
        assert decision.approved == runs(one), (one, decision.row)
        assert (decision.record == "approve") == (runs(one) and approves(one)), one
        assert (decision.record == "revoke") == taken_back, one
        assert decision.fault == (runs(one._replace(environment="")) and bool(one.environment)), one


def test_every_row_decides_something_and_says_why() -> None:
    found = {(made := decide(one)).row: made for kind in KINDS for one in product(kind)}
    assert set(found) == {row.name for row in ROWS} - {"unknown"}
    assert all(decision.reason for decision in found.values())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
def test_status_and_label_over_the_whole_product(kind: tuple[str, bool]) -> None:
    """What else is written: never over a final status, never by an old payload."""
    names = ["rerun", "affected", "fork", "head", "open", "recorded", "labeled", "remove_on_push"]
    good = {"user": True, "quiet": "kept", "writer": True}
    for action, status, more in itertools.product(
        ACTIONS, ("", "pending", "success"), (good, {}, {**good, "unprotected": True})
    ):
        for values in itertools.product(BOTH, repeat=len(names)):
            one = facts(kind, action, status=status, **more, **dict(zip(names, values, strict=True)))
            decision = decide(one)
            writes = one.pull_request and one.affected and not (one.event == "pull_request" and one.fork)
            waiting = not status or (status == "pending" and (decision.approved or bool(decision.record)))
            here = decision.approved or (one.open and one.head)
            assert decision.pending == (writes and waiting and here), one
            pushed = kind[0].startswith("pull_request") and action[0] == "synchronize" and not one.rerun
            off = one.labeled and one.remove_on_push and not one.recorded
            own = not (kind[0] == "pull_request" and one.fork)
            assert decision.remove_label == (pushed and off and own), one


FACTS = st.builds(
    facts,
    st.sampled_from(KINDS),
    st.sampled_from(ACTIONS),
    quiet=st.sampled_from(["kept", "broken", "unknown"]),
    **{name: st.booleans() for name in YES_NO},
)


@given(FACTS, st.sampled_from(["", "pending", "success", "failure"]), st.booleans(), st.booleans())
def test_what_a_status_is_and_a_label_of_other_events_changes_no_decision(
    one: Facts, status: str, labeled: bool, remove: bool
) -> None:
    labeled = one.labeled if asked_by_label(one) else labeled
    other = decide(one._replace(status=status, labeled=labeled, remove_on_push=remove))
    assert (other.row, other.record) == (decide(one).row, decide(one).record)


@given(FACTS, st.text(max_size=30))
def test_no_name_is_a_format(one: Facts, name: str) -> None:
    decide(one._replace(actor=name, label=name + "{event}", approver="{0}", environment="{x}"))


@pytest.mark.parametrize(
    ("permission", "writes"),
    [("admin", True), ("maintain", True), ("write", True)]
    + [(name, False) for name in ("triage", "read", "none", "", "Write")],
)
def test_who_has_write_access(permission: str, writes: bool) -> None:
    one = facts(KINDS[1], ACTIONS[0], head=True, open=True, user=True, quiet="kept", labeled=True)
    decision = decide(one._replace(permission=permission, actor="eve"))
    assert decision.approved == writes
    assert decision.row == ("approved-by-label" if writes else "no-write-access")
    assert "@eve" in decision.reason


def test_what_is_not_known_is_refused() -> None:
    """Facts without the answers of the API, and an event that nobody thought of."""
    assert decide(facts(KINDS[1], ACTIONS[0])).row == "closed"
    assert decide(Facts("repository_dispatch")).row == "no-configuration"
    assert decide(Facts("repository_dispatch", configured=True)).row == "unknown"
    assert not decide(Facts("repository_dispatch", pull_request=True, head=True, open=True)).approved


# --- the cases of the issue, by their names

GOOD: dict[str, Any] = {
    "head": True, "open": True, "user": True, "quiet": "kept", "fork": True, "labeled": True
}  # fmt: skip
LABELED = ("labeled", True)


@pytest.mark.parametrize(
    ("kind", "action", "values", "row"),
    [
        pytest.param(KINDS[1], LABELED, GOOD, "approved-by-label", id="label-on-a-fork"),
        pytest.param(KINDS[0], LABELED, GOOD | {"fork": False}, "approved-by-label", id="label-on-a-branch"),
        pytest.param(KINDS[0], LABELED, GOOD, "fork-pull-request", id="pull_request-of-a-fork"),
        pytest.param(KINDS[1], LABELED, GOOD | {"writer": False}, "no-write-access", id="stranger"),
        pytest.param(KINDS[1], LABELED, GOOD | {"user": False}, "not-a-person", id="bot"),
        pytest.param(KINDS[1], LABELED, GOOD | {"open": False}, "closed", id="closed"),
        pytest.param(KINDS[1], LABELED, GOOD | {"labeled": False}, "label-gone", id="label-on-and-off"),
        pytest.param(KINDS[1], LABELED, GOOD | {"head": False}, "head-moved", id="label-then-push"),
        pytest.param(KINDS[1], LABELED, GOOD | {"quiet": "broken"}, "too-soon", id="push-then-label-at-once"),
        pytest.param(KINDS[1], LABELED, GOOD | {"quiet": "unknown"}, "push-time-unknown", id="no-suite"),
        pytest.param(KINDS[1], LABELED, GOOD | {"recorded": True}, "approved-by-label", id="label-again"),
        pytest.param(KINDS[1], ("labeled", False), GOOD, "other-label", id="other-label"),
        pytest.param(KINDS[1], ("unlabeled", True), GOOD, "revoked", id="label-off"),
        pytest.param(
            KINDS[1],
            ("unlabeled", None),
            GOOD | {"configured": False},
            "revoked-by-any-label",
            id="label-off-without-find-changed",
        ),
        pytest.param(
            KINDS[1],
            ("unlabeled", False),
            GOOD | {"configured": False},
            "no-configuration",
            id="other-label-off-without-find-changed",
        ),
        pytest.param(
            KINDS[1],
            ("unlabeled", None),
            GOOD | {"configured": False, "rerun": True},
            "no-configuration",
            id="re-run-without-find-changed",
        ),
        pytest.param(KINDS[4], ("", False), {"configured": False}, "no-configuration", id="push-without"),
        pytest.param(KINDS[1], ("synchronize", False), GOOD | {"recorded": True}, "pushed", id="force-push"),
        pytest.param(KINDS[1], ("edited", False), GOOD | {"recorded": True}, "not-asked", id="edited"),
        pytest.param(KINDS[1], ("converted_to_draft", False), GOOD, "not-asked", id="draft"),
        pytest.param(
            KINDS[1], LABELED, GOOD | {"rerun": True, "recorded": True}, "re-run", id="re-run"
        ),
        pytest.param(
            KINDS[1], LABELED, GOOD | {"rerun": True}, "re-run-without-approval", id="re-run-after-label-off"
        ),
        pytest.param(
            KINDS[1],
            LABELED,
            GOOD | {"rerun": True, "recorded": True, "head": False},
            "re-run-of-old-commit",
            id="re-run-after-push",
        ),
        pytest.param(KINDS[2], ("", False), GOOD, "approved-by-dispatch", id="dispatch"),
        pytest.param(
            KINDS[2], ("", False), GOOD | {"labeled": False}, "approved-by-dispatch", id="dispatch-unlabeled"
        ),
        pytest.param(KINDS[2], ("", False), GOOD | {"quiet": "unknown"}, "approved-by-dispatch", id="new"),
        pytest.param(KINDS[2], ("", False), GOOD | {"head": False}, "head-moved", id="dispatch-of-old"),
        pytest.param(KINDS[2], ("", False), GOOD | {"user": False}, "not-a-person", id="dispatch-by-a-token"),
        pytest.param(KINDS[3], ("", False), {}, "dispatch-of-a-branch", id="dispatch-of-a-branch"),
        pytest.param(KINDS[4], ("", False), {}, "push", id="push-default-or-mirror"),
        pytest.param(KINDS[5], ("checks_requested", False), {}, "merge-queue", id="merge-queue"),
        pytest.param(KINDS[6], ("", False), {"rerun": True}, "schedule", id="schedule-again"),
        pytest.param(KINDS[4], ("", False), {"affected": False}, "nothing-affected", id="docs-only"),
        pytest.param(KINDS[4], ("", False), {"unprotected": True}, "environment-unprotected", id="open"),
    ],
)  # fmt: skip
def test_the_cases_have_names(
    kind: tuple[str, bool], action: tuple[str, bool | None], values: dict[str, Any], row: str
) -> None:
    assert decide(facts(kind, action, **values)).row == row


# --- facts


def labeled(attempt: str = "1", **changes: Any) -> Facts:
    pull = {
        "number": 1,
        "state": "open",
        "draft": False,
        "labels": [{"name": "gpu"}],
        "head": {"sha": "a" * 40, "repo": {"full_name": "eve/mono"}},
        "base": {"sha": "b" * 40, "ref": "main"},
        **changes,
    }
    payload = {
        "action": "labeled",
        "label": {"name": "gpu"},
        "pull_request": pull,
        "sender": {"login": "ada", "type": "User"},
    }
    environ = {"GITHUB_REPOSITORY": "org/mono", "GITHUB_RUN_ATTEMPT": attempt}
    subject = subject_of("pull_request_target", payload, environ)
    return facts_of(subject, "gpu", configured=True, affected=True, quiet_seconds=10, remove=True)


def test_the_event_alone_approves_nothing() -> None:
    one = labeled()
    assert (one.fork, one.user, one.labeled, one.label_event, one.actor) == (True, True, True, True, "ada")
    assert asks(one)
    assert not decide(one).approved


def test_an_old_payload_tells_nothing_of_now() -> None:
    one = labeled("2")
    assert (one.head, one.open, one.rerun) == (False, False, True)


def test_a_draft_counts_as_any_other() -> None:
    assert labeled(draft=True) == labeled(draft=False)


@pytest.mark.parametrize(
    ("action", "values", "waits"),
    [
        (("opened", False), {}, True),
        (("synchronize", False), {}, True),
        (("synchronize", False), {"recorded": True}, False),
        (("opened", False), {"open": False}, False),
        (("opened", False), {"rerun": True}, False),
        (("opened", False), {"affected": False}, False),
        (("opened", False), {"configured": False}, False),
        (("unlabeled", True), {}, False),
        (LABELED, {"quiet": "broken"}, False),
    ],
    ids=[
        "opened",
        "pushed",
        "approved-before",
        "closed",
        "re-run",
        "docs-only",
        "unknown",
        "label-off",
        "refused",
    ],
)
def test_a_run_waits_only_for_what_can_still_come(
    action: tuple[str, bool], values: dict[str, Any], waits: bool
) -> None:
    assert may_wait(facts(KINDS[1], action, **({"open": True, "head": True} | values))) == waits


EARLY, LATE = "2026-11-30T09:59:50Z", "2026-11-30T09:59:51Z"


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        ([EARLY], "kept"),
        ([LATE], "broken"),
        ([EARLY, LATE], "broken"),
        (["2026-11-30T10:00:05Z"], "broken"),
        ([], "unknown"),
        ([""], "unknown"),
        ([EARLY, "yesterday"], "unknown"),
        (["2026-11-30T09:59:50.250+00:00"], "kept"),
        (["2026-11-30T09:59:50+02:00"], "unknown"),
    ],
    ids=[
        "in-time",
        "a-second-late",
        "the-later-counts",
        "after",
        "none",
        "empty",
        "text",
        "offset",
        "other-zone",
    ],
)
def test_the_quiet_period(pushed: list[str], expected: str) -> None:
    assert quiet("2026-11-30T10:00:00Z", pushed, 10) == expected


def test_a_label_without_a_time_is_not_known_to_be_late_enough() -> None:
    assert quiet("", [EARLY], 0) == "unknown"


def test_the_earliest_of_some_times() -> None:
    assert earliest([LATE, EARLY]) == EARLY
    assert earliest([]) == ""
    assert earliest([LATE, "?"]) == ""


def test_the_table_has_a_line_for_each_row() -> None:
    lines = list(markdown_table())
    assert len(lines) == len(ROWS) + 2
    assert all(line.count("|") == 4 for line in lines)
