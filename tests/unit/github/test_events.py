"""What a run is about, by the payloads that GitHub sends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.github.events import EVENTS, full_sha, pull_number, subject_of, with_pull_request
from gpuci.github.model import Subject

HEAD, BASE, OTHER = "a" * 40, "b" * 40, "c" * 40
ZERO = "0" * 40
ENVIRON = {
    "GITHUB_REPOSITORY": "org/mono",
    "GITHUB_SHA": OTHER,
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_ACTOR": "ada",
    "GITHUB_TRIGGERING_ACTOR": "ada",
    "GITHUB_RUN_ATTEMPT": "1",
}
SENDER = {"login": "grace", "type": "User"}
REPOSITORY = {"full_name": "org/mono", "default_branch": "main"}


def document(**changes: Any) -> dict[str, Any]:
    """A pull request of a fork as payloads and the API tell it."""
    return {
        "number": 12,
        "state": "open",
        "draft": False,
        "user": {"login": "eve"},
        "updated_at": "2026-11-30T10:00:00Z",
        "labels": [{"name": "run-gpu-tests"}, {"name": "bug"}],
        "head": {
            "sha": HEAD,
            "ref": "topic",
            "repo": {"full_name": "eve/mono", "pushed_at": "2026-11-30T09:00:00Z"},
        },
        "base": {"sha": BASE, "ref": "main"},
        **changes,
    }


def payload(**more: Any) -> dict[str, Any]:
    return {"sender": SENDER, "repository": REPOSITORY, **more}


def labeled(**changes: Any) -> dict[str, Any]:
    return payload(action="labeled", label={"name": "run-gpu-tests"}, pull_request=document(**changes))


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target"])
def test_a_pull_request_is_told_as_its_payload_has_it(event: str) -> None:
    subject = subject_of(event, labeled(), ENVIRON)
    assert (subject.event, subject.action, subject.label) == (event, "labeled", "run-gpu-tests")
    assert (subject.sha, subject.base, subject.ref) == (HEAD, BASE, "refs/pull/12/head")
    assert (subject.actor, subject.actor_type, subject.run_attempt) == ("grace", "User", 1)
    assert (subject.trusted, subject.fork, subject.key) == (False, True, "pr-12")
    pull = subject.pull_request
    assert pull is not None
    assert (pull.open, pull.draft, pull.author, pull.base_ref) == (True, False, "eve", "main")
    assert (pull.updated_at, pull.head_pushed_at) == ("2026-11-30T10:00:00Z", "2026-11-30T09:00:00Z")
    assert pull.labels == {"run-gpu-tests", "bug"}


def test_a_branch_of_the_repository_is_no_fork_and_a_deleted_fork_is_one() -> None:
    own = {"sha": HEAD, "repo": {"full_name": "org/mono"}}
    assert not subject_of("pull_request", labeled(head=own), ENVIRON).fork
    assert subject_of("pull_request", labeled(head={"sha": HEAD, "repo": None}), ENVIRON).fork


PUSH = {"ref": "refs/heads/topic", "before": BASE, "after": HEAD}
GROUP = {"head_sha": HEAD, "base_sha": BASE, "head_ref": "refs/heads/gh-readonly-queue/main/pr-7-b"}


@pytest.mark.parametrize(
    ("event", "given", "sha", "base", "ref", "key"),
    [
        pytest.param("push", PUSH, HEAD, BASE, "refs/heads/topic", "branch-topic", id="push"),
        pytest.param(
            "push", {**PUSH, "before": ZERO}, HEAD, "", "refs/heads/topic", "branch-topic", id="new-branch"
        ),
        pytest.param(
            "push", {**PUSH, "ref": "refs/tags/v1"}, OTHER, BASE, "refs/tags/v1", "tag-v1", id="annotated-tag"
        ),
        pytest.param("merge_group", {"merge_group": GROUP}, HEAD, BASE, GROUP["head_ref"], None, id="queue"),
        pytest.param("schedule", {}, OTHER, "", "refs/heads/main", "branch-main", id="schedule"),
        pytest.param("workflow_dispatch", {}, OTHER, "", "refs/heads/main", "branch-main", id="dispatch"),
    ],
)
def test_what_people_with_write_access_pushed_is_trusted(
    event: str, given: dict[str, Any], sha: str, base: str, ref: str, key: str | None
) -> None:
    subject = subject_of(event, payload(**given), ENVIRON)
    assert (subject.sha, subject.base, subject.ref, subject.default_branch) == (sha, base, ref, "main")
    assert subject.trusted
    assert subject.pull_request is None
    assert key is None or subject.key == key


def test_a_schedule_without_a_repository_in_its_payload_runs_on_the_default_branch() -> None:
    assert subject_of("schedule", {"schedule": "0 2 * * *"}, ENVIRON).default_branch == "main"


def dispatched(sha: str = HEAD, pull_request: str = "12") -> Subject:
    return subject_of("workflow_dispatch", payload(), ENVIRON, sha=sha, pull_request=pull_request)


def test_a_dispatch_with_a_pull_request_is_about_that_commit_and_is_not_trusted() -> None:
    subject = dispatched(sha=f" {OTHER.upper()}", pull_request="#12")
    assert (subject.sha, subject.trusted, subject.key) == (OTHER, False, "pr-12")
    whole = with_pull_request(subject, document())
    assert whole.pull_request is not None
    assert (whole.sha, whole.pull_request.head_sha, whole.base) == (OTHER, HEAD, BASE)
    assert not whole.trusted


def test_a_pull_request_of_another_number_is_not_taken() -> None:
    with pytest.raises(ConfigError, match="not about pull request 13"):
        with_pull_request(dispatched(), document(number=13))


def test_a_re_run_is_caused_by_who_re_ran_it_whatever_the_old_payload_says() -> None:
    again = {**ENVIRON, "GITHUB_RUN_ATTEMPT": "2", "GITHUB_TRIGGERING_ACTOR": "mallory"}
    subject = subject_of("pull_request_target", labeled(), again)
    assert (subject.actor, subject.actor_type, subject.run_attempt) == ("mallory", "", 2)


def refusals() -> list[Any]:
    cases: list[tuple[str, str, dict[str, Any], dict[str, str], dict[str, str], str]] = [
        ("unknown-event", "issue_comment", {}, {}, {}, "pull_request, pull_request_target, push"),
        ("no-event", "", {}, {}, {}, "starts no run"),
        ("sha-elsewhere", "push", PUSH, {}, {"sha": HEAD}, "inputs of workflow_dispatch"),
        ("pull-elsewhere", "schedule", {}, {}, {"pull_request": "1"}, "inputs of workflow_dispatch"),
        ("sha-alone", "workflow_dispatch", {}, {}, {"sha": HEAD}, "or neither"),
        ("pull-alone", "workflow_dispatch", {}, {}, {"pull_request": "1"}, "or neither"),
        ("short-sha", "workflow_dispatch", {}, {}, {"sha": HEAD[:12], "pull_request": "1"}, "no full commit"),
        ("pull-0", "workflow_dispatch", {}, {}, {"sha": HEAD, "pull_request": "0"}, "no number"),
        ("pull-path", "workflow_dispatch", {}, {}, {"sha": HEAD, "pull_request": "1/../2"}, "no number"),
        ("deleted", "push", {**PUSH, "deleted": True}, {}, {}, "was deleted"),
        ("deleted-by-sha", "push", {**PUSH, "after": ZERO}, {}, {}, "was deleted"),
        ("sha-of-shell", "push", {**PUSH, "after": "$(id)"}, {}, {}, "no commit id"),
        ("no-pull", "pull_request", {}, {}, {}, "has no pull request"),
        ("pull-is-text", "pull_request", {"pull_request": "12"}, {}, {}, "has no pull request"),
        ("no-group", "merge_group", {}, {}, {}, "no commit id"),
        ("no-attempt", "push", PUSH, {"GITHUB_RUN_ATTEMPT": ""}, {}, "GITHUB_RUN_ATTEMPT"),
        ("no-repository", "push", PUSH, {"GITHUB_REPOSITORY": "../../x/y"}, {}, "GITHUB_REPOSITORY"),
        ("no-sha", "schedule", {}, {"GITHUB_SHA": ""}, {}, "no commit id"),
    ]
    return [pytest.param(*rest, id=name) for name, *rest in cases]


@pytest.mark.parametrize(("event", "given", "environ", "inputs", "message"), refusals())
def test_what_can_not_be_is_refused_with_a_reason(
    event: str, given: dict[str, Any], environ: dict[str, str], inputs: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        subject_of(event, payload(**given), {**ENVIRON, **environ}, **inputs)
    assert message in caught.value.page()


@pytest.mark.parametrize("number", [True, "12", None, 1.5], ids=str)
def test_a_pull_request_needs_a_number(number: object) -> None:
    with pytest.raises(ConfigError, match="without a number"):
        subject_of("pull_request", labeled(number=number), ENVIRON)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([HEAD, ZERO]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["action", "after", "before", "deleted", "label", "merge_group", "pull_request", "ref", "repository"]


@given(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from([*KEYS, "sender"]), JSON, max_size=6))
def test_any_payload_gives_a_subject_with_a_commit_or_a_refusal(event: str, given: dict[str, Any]) -> None:
    try:
        subject = subject_of(event, given, ENVIRON)
    except ConfigError:
        return
    assert full_sha(subject.sha) == subject.sha
    assert len(subject.key) <= 60


@given(st.integers(1, 10**9))
def test_a_number_is_read_back(number: int) -> None:
    assert pull_number(f"#{number}") == pull_number(f" {number} ") == number
