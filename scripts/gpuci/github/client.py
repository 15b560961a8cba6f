"""What gpuci asks GitHub for, one endpoint each. I/O, standard library only.

The permission of each endpoint stands in `messages.PERMISSIONS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from gpuci.errors import ConfigError
from gpuci.github.addresses import join
from gpuci.github.api import Api
from gpuci.github.messages import ApiError, Page
from gpuci.github.step import Step
from gpuci.reporting.text import clip, one_line

APPROVAL_CONTEXT = "gpuci/approved"
_BRANCHES = 3  # looked at, a request each
# GitHub's own answer to one more: "Commenting is disabled on issues with more than 2500 comments".
_COMMENT_PAGES = 26
_DESCRIPTION = 140  # docs.github.com/rest/commits/statuses; longer is refused

_ROLE = 40  # columns of a text


@dataclass(frozen=True)
class CommitStatus:
    """A commit status. `state`: error, failure, pending, success."""

    context: str
    state: str
    description: str
    target_url: str
    creator: str
    created_at: str


class Access(NamedTuple):
    """What a person may do. `permission`: admin, write, read or none, which counts; `role`: what people call
    it, such as triage (that is read) or a role of the organization's own.
    """

    permission: str
    role: str


@dataclass(frozen=True)
class Comment:
    """A comment of a pull request."""

    id: int
    body: str
    author: str


class Client(Api):
    """Documents are GitHub's own mappings, unless they have a class here. All methods raise ApiError."""

    def status(self, sha: str, context: str) -> CommitStatus | None:
        """The newest status of a commit in a context: GitHub lists the newest first."""
        for item in self.items(f"{join('commits', sha)}/statuses"):
            if isinstance(item, dict) and item.get("context") == context:
                return _status(item)
        return None

    def set_status(
        self, sha: str, context: str, state: str, description: str = "", target_url: str = ""
    ) -> None:
        """Set a status; the description is cut to what GitHub takes. Again is harmless: the newest counts."""
        body = {"context": context, "state": state}
        body["description"] = clip(one_line(description), _DESCRIPTION)
        if target_url:
            body["target_url"] = target_url
        self.post(join("statuses", sha), body, harmless=True)

    def repository_document(self) -> dict[str, Any]:
        """The repository: `default_branch`, `private`."""
        return _mapping(self.get(""))

    def pull_request(self, number: int) -> dict[str, Any]:
        """A pull request, as it is now."""
        return _mapping(self.get(join("pulls", number)))

    def access(self, login: str) -> Access:
        """What a person may do (GitHub counts maintain as write, triage as read)."""
        document = _mapping(self.get(f"{join('collaborators', login)}/permission", missing={}))
        found = document.get("permission")
        permission = found if found in ("admin", "write", "read") else "none"
        return Access(permission, clip(one_line(_text(document, "role_name")), _ROLE) or permission)

    def check_suites(self, sha: str) -> list[dict[str, Any]]:
        """All check suites of a commit; `created_at` tells when GitHub first saw it pushed."""
        return [_mapping(one) for one in self.items(f"{join('commits', sha)}/check-suites", "check_suites")]

    def environment(self, name: str) -> dict[str, Any] | None:
        """An environment with its `protection_rules` and `deployment_branch_policy`; None: there is none."""
        document = self.get(join("environments", name), missing=None)
        return None if document is None else _mapping(document)

    def branch_policies(self, environment: str) -> list[str]:
        """The names (patterns) of an environment's own branch and tag policies."""
        path = f"{join('environments', environment)}/deployment-branch-policies"
        return [str(_mapping(one).get("name", "")) for one in self.items(path, "branch_policies")]

    def has_protection_rule(self) -> bool:
        """Whether a branch protection rule is known to exist.

        A job's token can't read these rules, and `protected` counts rulesets too: of a branch that no ruleset
        is about it means a rule.
        """
        found = self.items("branches", protected="true", per_page=_BRANCHES)
        names = (str(_mapping(one).get("name", "")) for one in islice(found, _BRANCHES))
        return any(not self.get(join("rules", "branches", name), per_page=1) for name in names)

    def comments(self, number: int) -> Iterator[Comment]:
        """All comments of a pull request, oldest first; pages are fetched as they are read."""
        for item in self.items(f"{join('issues', number)}/comments", limit_pages=_COMMENT_PAGES):
            yield _comment(item)

    def add_comment(self, number: int, body: str) -> Comment:
        """Add a comment. When the answer is lost, it is looked for before it is sent once more."""
        path = f"{join('issues', number)}/comments"
        try:
            return _comment(self.post(path, {"body": body}))
        except ApiError as error:
            if not error.unsure:
                raise
        there = [one for one in self.comments(number) if _same(one.body, body)]
        return there[-1] if there else _comment(self.post(path, {"body": body}))

    def edit_comment(self, comment: int, body: str) -> None:
        """Replace the text of a comment."""
        self.patch(join("issues", "comments", comment), {"body": body})

    def remove_label(self, number: int, label: str) -> bool:
        """Take a label off a pull request; False if it was not there."""
        return self.delete(join("issues", number, "labels", label))

    def dispatch(self, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        """Start a workflow (the name of its file) by workflow_dispatch."""
        path = f"{join('actions', 'workflows', workflow)}/dispatches"
        self.post(path, {"ref": ref, "inputs": dict(inputs)})


def client_of(step: Step, *, writes: tuple[str, ...] = ()) -> Client:
    """The client of an action: its token, the run's repository, `writes` as in Api. Raises ConfigError."""
    token = step.secret("TOKEN")
    if not token:
        raise ConfigError(
            "there is no token for GitHub's API",
            why="the input `token` is empty",
            then="leave the input out, or pass `${{ github.token }}`",
        )
    return Client(
        step.environ.get("GITHUB_API_URL") or "https://api.github.com",
        token,
        step.environ.get("GITHUB_REPOSITORY", ""),
        action=step.action,
        say=step.say,
        writes=writes,
    )


def _mapping(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ApiError(Page("GitHub's answer is no mapping", why="a proxy answers in its place"))
    return document


def _status(document: dict[str, Any]) -> CommitStatus:
    return CommitStatus(
        context=_text(document, "context"),
        state=_text(document, "state"),
        description=_text(document, "description"),
        target_url=_text(document, "target_url"),
        creator=_login(document.get("creator")),
        created_at=_text(document, "created_at"),
    )


def _comment(document: Any) -> Comment:
    found = _mapping(document)
    number = found.get("id")
    if not isinstance(number, int):
        raise ApiError(Page("GitHub's comment has no id", why="a proxy answers in its place"))
    return Comment(number, _text(found, "body"), _login(found.get("user")))


def _login(user: Any) -> str:
    """Empty for a user who is gone."""
    return _text(user, "login") if isinstance(user, dict) else ""


def _text(document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _same(one: str, other: str) -> bool:
    """Whether two texts of comments are one; GitHub may change line ends and white space at the end."""
    return one.replace("\r\n", "\n").strip() == other.replace("\r\n", "\n").strip()
