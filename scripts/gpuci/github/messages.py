"""What GitHub's refusals mean: endpoint -> permission, status -> a help page. Pure.

Source of the permissions: docs.github.com/rest, "Fine-grained access tokens" of each endpoint; written
here as in a workflow's `permissions:`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import NamedTuple

from gpuci.errors import GpuciError
from gpuci.github.retry import Kind
from gpuci.reporting.text import about, clip, one_line

# (method, path below the repository, the permission it takes). For a pull request's labels GitHub names
# `issues` too, but it does not suffice (reported in Arize-ai/phoenix pull request 13279).
PERMISSIONS: tuple[tuple[str, str, str], ...] = (
    ("GET", r"", "metadata: read"),
    ("GET", r"pulls/\d+", "pull-requests: read"),
    ("POST", r"statuses/[^/]+", "statuses: write"),
    ("GET", r"commits/[^/]+/statuses", "statuses: read"),
    ("GET", r"commits/[^/]+/check-suites", "checks: read"),
    ("GET", r"collaborators/[^/]+/permission", "metadata: read"),
    ("GET", r"environments/[^/]+(?:/deployment-branch-policies)?", "actions: read"),
    ("GET", r"branches(?:/[^/]+)?", "contents: read"),
    ("GET", r"rules/branches/[^/]+", "metadata: read"),
    ("GET", r"issues/\d+/comments", "pull-requests: read"),
    ("POST", r"issues/\d+/comments", "pull-requests: write"),
    ("PATCH", r"issues/comments/\d+", "pull-requests: write"),
    ("DELETE", r"issues/\d+/labels/[^/]+", "pull-requests: write"),
    ("POST", r"actions/workflows/[^/]+/dispatches", "actions: write"),
)
_ACCEPTED = re.compile(r"([a-z_]+)=(read|write|admin)")


class ApiError(GpuciError):
    """GitHub did not do what was asked. `status` 0: no answer. `unsure`: it may have been done."""

    def __init__(self, page: Page, *, status: int = 0, unsure: bool = False) -> None:
        super().__init__(page.what, why=page.why, then=page.then)
        self.status = status
        self.unsure = unsure
        self.verdict = page.verdict


class Page(NamedTuple):
    """The texts of a GpuciError."""

    what: str
    why: str = ""
    then: str = ""
    verdict: str = "infra"


@dataclass(frozen=True)
class Refusal:
    """A request and how it ended. `text`: GitHub's message or the reason of no answer. `accepted`: the header
    that names permissions. `pause`: seconds that GitHub wants us to wait, if it limits us. `writes`: scopes
    that the job writes too: who adds only what one refused request takes would meet the next refusal.
    """

    method: str
    path: str
    status: int
    kind: Kind
    text: str = ""
    accepted: str = ""
    pause: float = 0.0
    writes: tuple[str, ...] = ()

    @property
    def request(self) -> str:
        return f"{self.method} {clip(one_line(self.path), 200)}"


def permission_of(method: str, path: str) -> str:
    """The permission that an endpoint takes, such as `statuses: write`; "" for one that we don't use."""
    plain = path.partition("?")[0]
    return next((p for m, rule, p in PERMISSIONS if m == method and re.fullmatch(rule, plain)), "")


def page(refusal: Refusal) -> Page:
    """The help page of a refusal."""
    if refusal.kind is Kind.LIMITED:
        return _limited(refusal)
    if refusal.status in _PAGES:
        return _PAGES[refusal.status](refusal)
    if refusal.status == 0 or refusal.status >= 500:
        return _unreachable(refusal)
    return Page(f"GitHub can't process {refusal.request}: {refusal.status}{_quoted(refusal)}")


def _unauthorized(refusal: Refusal) -> Page:
    return Page(
        f"GitHub does not accept the token ({refusal.request})",
        why="there is none, or it is mistyped, expired or revoked; a job's own token ends with the job",
        then="pass `token: ${{ github.token }}` to the action",
        verdict="config_error",
    )


def _forbidden(refusal: Refusal) -> Page:
    wanted = _wanted(refusal) or _accepted(refusal.accepted)
    lacks = f"the token lacks the permission `{wanted}`" if wanted else "the token may not do this"
    return Page(
        f"GitHub refuses {refusal.request}{_quoted(refusal)}",
        why=f"{lacks}; a called workflow has at most what the job that calls it has",
        then=f"add `{wanted or 'the permission'}` to `permissions:` of the job and of its caller",
        verdict="config_error",
    )


def _missing(refusal: Refusal) -> Page:
    wanted = _wanted(refusal)
    hint = f" (it takes `{wanted}`)" if wanted else ""
    pull = re.fullmatch(r"pulls/(\d+)", refusal.path)
    what = f"no pull request {pull[1]} ({refusal.request})" if pull else f"nothing at {refusal.request}"
    return Page(
        f"GitHub finds {what}",
        why=f"it is not there, or the token can't see it: a private repository hides itself{hint}",
        then="check the name and number, and the job's `permissions:`",
        verdict="config_error",
    )


def _limited(refusal: Refusal) -> Page:
    pause = f"; it asks for a pause of {about(refusal.pause)}" if refusal.pause else ""
    return Page(
        f"GitHub limits our requests ({refusal.request}, {refusal.status}){pause}",
        why="a repository's jobs share 1,000 requests an hour, and many at once meet the secondary limit",
        then="re-run the failed jobs later",
    )


def _unreachable(refusal: Refusal) -> Page:
    happened = f"answered {refusal.status}" if refusal.status else f"did not answer: {_text(refusal)}"
    return Page(
        f"GitHub {happened} ({refusal.request})",
        why="GitHub has a disturbance (githubstatus.com), or the runner's network or proxy has",
        then="re-run the failed jobs; on a runner of your own check HTTPS_PROXY and SSL_CERT_FILE",
    )


def message_of(body: bytes) -> str:
    """The message of an error's document, and of the fields it complains about; "" if there is none."""
    try:
        document = json.loads(body[:65536])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return ""
    errors = document.get("errors")
    told = [one.get("message") for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    return ": ".join(str(text) for text in (document.get("message"), *told) if text)


_PAGES = {401: _unauthorized, 403: _forbidden, 404: _missing}


def _wanted(refusal: Refusal) -> str:
    """What the job needs, which is more than the request if it writes there later; "" if not known."""
    wanted = permission_of(refusal.method, refusal.path)
    scope = wanted.partition(":")[0]
    return f"{scope}: write" if scope in refusal.writes else wanted


def _accepted(header: str) -> str:
    """`pull_requests=write; issues=write` -> `pull-requests: write`, which is the first that would do."""
    return next((f"{name.replace('_', '-')}: {level}" for name, level in _ACCEPTED.findall(header)), "")


def _quoted(refusal: Refusal) -> str:
    return f": {_text(refusal)}" if refusal.text else ""


def _text(refusal: Refusal) -> str:
    return clip(one_line(refusal.text), 300)
