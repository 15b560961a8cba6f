"""An event's payload -> what the run is about. Pure.

Source: docs.github.com, "Events that trigger workflows" and "Webhook events and payloads". A called workflow
sees the event of its caller. Only the payload tells which commit was the head at that moment; a re-run gets
the old payload again, for 30 days. What a workflow does with its own GITHUB_TOKEN, such as to set a label,
starts no run but by workflow_dispatch ("Triggering a workflow").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuci.errors import ConfigError
from gpuci.github.model import PullRequest, Subject

PULL_REQUEST_EVENTS = ("pull_request", "pull_request_target")
EVENTS = (*PULL_REQUEST_EVENTS, "push", "merge_group", "schedule", "workflow_dispatch")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
Payload = Mapping[str, Any]


def subject_of(
    event_name: str, payload: Payload, environ: Mapping[str, str], *, sha: str = "", pull_request: str = ""
) -> Subject:
    """What a run is about, from what GitHub gave it; raises ConfigError.

    `sha` and `pull_request` are inputs of workflow_dispatch. Its pull request is only a number with that sha
    until `with_pull_request`. `environ` has GITHUB_REPOSITORY, GITHUB_SHA, GITHUB_REF, GITHUB_ACTOR,
    GITHUB_TRIGGERING_ACTOR and GITHUB_RUN_ATTEMPT.
    """
    if event_name not in EVENTS:
        raise ConfigError(
            f"the event {event_name or '(none)'} starts no run of gpuci",
            then=f"use one of {', '.join(EVENTS)}",
        )
    if event_name != "workflow_dispatch" and (sha or pull_request):
        raise ConfigError(
            f"sha and pull-request are inputs of workflow_dispatch, not of {event_name}",
            why="any other event names its commit itself",
            then="pass them as `${{ inputs.sha }}`, which is empty for other events",
        )
    if event_name in PULL_REQUEST_EVENTS:
        return _of_pull_request(event_name, payload, environ)
    if event_name == "push":
        return _of_push(payload, environ)
    if event_name == "merge_group":
        return _of_merge_group(payload, environ)
    if event_name == "workflow_dispatch" and (sha or pull_request):
        return _of_dispatch(payload, environ, sha, pull_request)
    return _common(event_name, payload, environ, sha=_own_sha(environ), ref=environ.get("GITHUB_REF", ""))


def with_pull_request(subject: Subject, document: Payload) -> Subject:
    """The subject with its pull request as GitHub's API tells it now (GET pulls/N); raises ConfigError."""
    found = pull_request_of(document)
    if subject.pull_request is None or subject.pull_request.number != found.number:
        raise ConfigError(f"the run is not about pull request {found.number}")
    return replace(subject, pull_request=found, base=found.base_sha, ref=_pull_ref(found.number))


def pull_request_of(document: Payload) -> PullRequest:
    """A pull request of a payload or of the API; raises ConfigError if it has no number or commits."""
    number = document.get("number")
    if not isinstance(number, int) or isinstance(number, bool):
        raise ConfigError("a pull request without a number", why="the event's payload is not GitHub's")
    return PullRequest(
        number=number,
        head_sha=_sha_of(document, "head", "sha"),
        head_repository=_text(document, "head", "repo", "full_name"),
        base_sha=_sha_of(document, "base", "sha"),
        base_ref=_text(document, "base", "ref"),
        open=_text(document, "state") == "open",
        draft=document.get("draft") is True,
        author=_text(document, "user", "login"),
        updated_at=_text(document, "updated_at"),
        head_pushed_at=_text(document, "head", "repo", "pushed_at"),
        labels=_labels(document),
    )


def full_sha(text: str) -> str:
    """A full commit id in lower case; raises ConfigError."""
    found = text.strip().lower()
    if not _SHA.fullmatch(found):
        raise ConfigError(
            f"{text!r} is no full commit id",
            why="a short one can come to mean another commit",
            then="give all 40 digits: git rev-parse HEAD",
        )
    return found


def pull_number(text: str) -> int:
    """The number of a pull request, as `12` or `#12`; raises ConfigError."""
    found = text.strip().removeprefix("#")
    if not _NUMBER.fullmatch(found):
        raise ConfigError(f"{text!r} is no number of a pull request", then="give it as 12 or #12")
    return int(found)


def _of_pull_request(event: str, payload: Payload, environ: Mapping[str, str]) -> Subject:
    document = payload.get("pull_request")
    if not isinstance(document, Mapping):
        raise ConfigError(f"the payload of {event} has no pull request", why="it is not GitHub's")
    pull = pull_request_of(document)
    subject = _common(event, payload, environ, sha=pull.head_sha, ref=_pull_ref(pull.number), trusted=False)
    return replace(subject, base=pull.base_sha, pull_request=pull, label=_text(payload, "label", "name"))


def _of_push(payload: Payload, environ: Mapping[str, str]) -> Subject:
    ref, sha = _text(payload, "ref") or environ.get("GITHUB_REF", ""), _text(payload, "after")
    if payload.get("deleted") is True or (sha and not sha.strip("0")):
        raise ConfigError(
            f"{ref} was deleted: there is nothing to test",
            then="leave such events out: `if: ${{ !github.event.deleted }}` on the job",
        )
    before = _text(payload, "before")
    base = before if _SHA.fullmatch(before) and before.strip("0") else ""  # a new branch has none
    if ref.startswith("refs/tags/") or not sha:
        sha = _own_sha(environ)  # `after` is the id of an annotated tag, not of its commit
    subject = _common("push", payload, environ, sha=_checked(sha), ref=ref)
    return replace(subject, base=base)


def _of_merge_group(payload: Payload, environ: Mapping[str, str]) -> Subject:
    sha, base = _sha_of(payload, "merge_group", "head_sha"), _sha_of(payload, "merge_group", "base_sha")
    ref = _text(payload, "merge_group", "head_ref") or environ.get("GITHUB_REF", "")
    return replace(_common("merge_group", payload, environ, sha=sha, ref=ref), base=base)


def _of_dispatch(payload: Payload, environ: Mapping[str, str], sha: str, pull_request: str) -> Subject:
    """With a pull request. A commit alone is not taken: those of forks are found in the repository too."""
    if not (sha and pull_request):
        raise ConfigError(
            "workflow_dispatch needs the pull request and the commit, or neither",
            why="a person approves a commit of a pull request, not whatever its head is when the run starts",
            then="give both inputs, pull-request and sha; or neither, to test the branch it is started on",
        )
    number, wanted = pull_number(pull_request), full_sha(sha)
    subject = _common("workflow_dispatch", payload, environ, sha=wanted, ref=_pull_ref(number), trusted=False)
    only_named = PullRequest(number, "", "", "", "", open=False, draft=False, author="")
    return replace(subject, pull_request=only_named)


def _common(
    event: str, payload: Payload, environ: Mapping[str, str], *, sha: str, ref: str, trusted: bool = True
) -> Subject:
    attempt = _attempt(environ.get("GITHUB_RUN_ATTEMPT", ""))
    actor, actor_type = _actor(payload, environ, attempt)
    return Subject(
        event=event,
        action=_text(payload, "action"),
        repository=_repository(environ),
        sha=sha,
        ref=ref,
        default_branch=_default_branch(event, payload, environ),
        base="",
        actor=actor,
        actor_type=actor_type,
        run_attempt=attempt,
        trusted=trusted,
    )


def _actor(payload: Payload, environ: Mapping[str, str], attempt: int) -> tuple[str, str]:
    """Login and type (User, Bot) of who caused this attempt; the type of who re-ran a run is not told."""
    if attempt > 1:
        return environ.get("GITHUB_TRIGGERING_ACTOR", ""), ""
    sender = _text(payload, "sender", "login")
    return sender or environ.get("GITHUB_ACTOR", ""), _text(payload, "sender", "type")


def _attempt(text: str) -> int:
    """GITHUB_RUN_ATTEMPT; what can't be read is no first attempt, which alone could approve."""
    if not _NUMBER.fullmatch(text):
        raise ConfigError(f"GITHUB_RUN_ATTEMPT is {text!r}", why="GitHub sets it to 1, 2, ...")
    return int(text)


def _repository(environ: Mapping[str, str]) -> str:
    name = environ.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", name):
        raise ConfigError(f"GITHUB_REPOSITORY is {name!r}", why="GitHub sets it to owner/name")
    return name


def _default_branch(event: str, payload: Payload, environ: Mapping[str, str]) -> str:
    """By the payload; that of a schedule may have no repository, and it runs on the default branch only."""
    told = _text(payload, "repository", "default_branch")
    if not told and event == "schedule":
        return environ.get("GITHUB_REF", "").removeprefix("refs/heads/")
    return told


def _pull_ref(number: int) -> str:
    return f"refs/pull/{number}/head"


def _own_sha(environ: Mapping[str, str]) -> str:
    return _checked(environ.get("GITHUB_SHA", ""))


def _sha_of(document: Payload, *keys: str) -> str:
    return _checked(_text(document, *keys), ".".join(keys))


def _checked(sha: str, where: str = "GITHUB_SHA") -> str:
    if not _SHA.fullmatch(sha):
        raise ConfigError(f"{where} is {sha!r}: no commit id", why="the event's payload is not GitHub's")
    return sha


def _labels(document: Payload) -> frozenset[str]:
    labels = document.get("labels")
    found = labels if isinstance(labels, list) else []
    return frozenset(_text(label, "name") for label in found if isinstance(label, Mapping))


def _text(value: Any, *keys: str) -> str:
    """The text at a path of keys; empty where something on the way, or the text, is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""
