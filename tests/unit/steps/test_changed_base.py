"""Which commit changes are counted from, and whose configuration counts."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci.errors import ConfigError
from gpuci.github.model import PullRequest, Subject
from gpuci.steps.changed_base import Base, base_of, configuration_ref

PULL = PullRequest(12, "a" * 40, "eve/mono", "b" * 40, "main", True, False, "eve")
MAIN, TOPIC, TAG = "refs/heads/main", "refs/heads/topic", "refs/tags/v1"
OLD = "b" * 40


def subject(event: str, ref: str = MAIN, base: str = OLD, **more: Any) -> Subject:
    values: dict[str, Any] = {"action": "", "repository": "org/mono", "actor": "ada", "actor_type": "User"}
    values |= {"sha": "a" * 40, "default_branch": "main", "run_attempt": 1, "trusted": True} | more
    return Subject(event=event, ref=ref, base=base, **values)


@pytest.mark.parametrize(
    ("about", "base", "configuration"),
    [
        (subject("pull_request", "refs/pull/12/head", pull_request=PULL), Base(MAIN, merge=True), MAIN),
        (
            subject("pull_request_target", "refs/pull/12/head", pull_request=PULL),
            Base(MAIN, merge=True),
            MAIN,
        ),
        (subject("workflow_dispatch", "refs/pull/12/head", pull_request=PULL), Base(MAIN, merge=True), MAIN),
        (subject("push"), Base(OLD), ""),
        (subject("push", TOPIC), Base(MAIN, merge=True), MAIN),
        (subject("push", TAG), Base(MAIN, merge=True), MAIN),
        (subject("push", TOPIC, ""), Base("", reason=f"this is the first push of {TOPIC}"), MAIN),
        (subject("push", MAIN, ""), Base("", reason=f"this is the first push of {MAIN}"), ""),
        (subject("merge_group", "refs/heads/gh-readonly-queue/main/x"), Base(OLD), ""),
        (subject("schedule", base=""), Base("", reason="a run by schedule tests everything"), ""),
        (
            subject("workflow_dispatch", TOPIC, ""),
            Base("", reason="a run by workflow_dispatch tests everything"),
            "",
        ),
    ],
    ids=lambda value: f"{value.event}-{value.ref}" if isinstance(value, Subject) else "",
)
def test_the_event_decides(about: Subject, base: Base, configuration: str) -> None:
    assert (base_of(about), configuration_ref(about)) == (base, configuration)


@pytest.mark.parametrize(
    "about",
    [
        subject("pull_request", pull_request=PULL, default_branch=""),
        subject("push", TOPIC, default_branch=""),
    ],
    ids=["pull request", "push"],
)
def test_an_unknown_default_branch_is_an_error(about: Subject) -> None:
    """Nobody's configuration but that of the default branch would do."""
    with pytest.raises(ConfigError, match="default branch"):
        configuration_ref(about)
