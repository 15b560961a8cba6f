"""What the fake GitHub knows, set up by a test or a JSON file. Values only."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from typing import Any

# docs.github.com, "Automatic token authentication": what a job may ask for, as written in `permissions:`.
SCOPES = ("actions", "checks", "contents", "deployments", "issues", "packages", "pull-requests", "statuses")
EVERYTHING = dict.fromkeys(SCOPES, "write")
GITHUB_TOKEN = "github-actions[bot]"


def utc_now() -> str:
    """The time as GitHub writes it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Pull:
    """A pull request. `head_repository` is "" for the repository itself, None when the fork was deleted."""

    number: int
    head_sha: str
    base_sha: str = "b" * 40
    head_repository: str | None = ""
    head_ref: str = "feature"
    base_ref: str = "main"
    state: str = "open"
    draft: bool = False
    title: str = "A change"
    author: str = "author"
    labels: list[str] = field(default_factory=list)
    updated_at: str = "2026-11-20T12:00:00Z"
    head_pushed_at: str = "2026-11-20T10:00:00Z"


@dataclass
class Repository:
    """A repository. `git` is a bare repository on disk, which is then served; "" has none.

    `collaborators`: login -> admin, maintain, write, triage, read. `check_suites`: SHA -> times of creation.
    `environments`: name -> the document that the API gives (`protection_rules`, `deployment_branch_policy`,
    and our own key `branch_policies`: names of the custom policies). `workflows`: file -> declared inputs.
    `files`: path -> text of the default branch, for the contents API. `artifacts`: run -> names.
    """

    name: str = "octo/shop"
    private: bool = True
    default_branch: str = "main"
    git: str = ""
    pulls: dict[int, Pull] = field(default_factory=dict)
    collaborators: dict[str, str] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    check_suites: dict[str, list[str]] = field(default_factory=dict)
    statuses: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # newest last
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)  # name -> SHA
    protected_branches: list[str] = field(default_factory=list)  # by branch protection rules
    rules: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # branch -> active rules of rulesets
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    workflows: dict[str, list[str]] = field(default_factory=dict)
    dispatches: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    artifacts: dict[int, list[str]] = field(default_factory=dict)
    renamed_from: str = ""

    def knows(self, sha: str) -> bool:
        """Whether a commit is known here; with `git` every SHA is taken for one."""
        heads = {pull.head_sha for pull in self.pulls.values()} | set(self.branches.values())
        return bool(self.git) or sha in {*self.commits, *self.check_suites, *self.statuses, *heads}


@dataclass
class Token:
    """Who a token speaks for, and what it may do: permission as in a workflow -> `read` or `write`.

    `repositories`: the ones it can see; empty: all. A GITHUB_TOKEN speaks for `github-actions[bot]`.
    """

    permissions: dict[str, str] = field(default_factory=lambda: dict(EVERYTHING))
    repositories: list[str] = field(default_factory=list)
    login: str = GITHUB_TOKEN

    def may(self, scope: str, level: str) -> bool:
        """Whether the token has a permission; reading the metadata is always allowed."""
        has = self.permissions.get(scope, "none")
        return scope == "metadata" or has == "write" or has == level


@dataclass
class State:
    """All of it. `kinds`: login -> Bot or Organization, where it is no User."""

    repositories: list[Repository] = field(default_factory=list)
    tokens: dict[str, Token] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=lambda: {GITHUB_TOKEN: "Bot"})
    ids: Any = field(default_factory=lambda: itertools.count(1001), repr=False)

    def repository(self, name: str) -> Repository | None:
        """A repository by its name, which has no case, as on GitHub."""
        return next((one for one in self.repositories if one.name.lower() == name.lower()), None)

    def to_document(self) -> dict[str, Any]:
        """The state as JSON; `from_document` reads it."""
        return {
            "repositories": [asdict(one) for one in self.repositories],
            "tokens": {name: asdict(token) for name, token in self.tokens.items()},
            "kinds": self.kinds,
        }


def from_document(document: dict[str, Any]) -> State:
    """JSON -> state; an unknown key is an error (TypeError), so that a typing mistake is seen."""
    return State(
        repositories=[_repository(one) for one in document.get("repositories", [])],
        tokens={name: Token(**token) for name, token in document.get("tokens", {}).items()},
        kinds={GITHUB_TOKEN: "Bot", **document.get("kinds", {})},
    )


def _repository(document: dict[str, Any]) -> Repository:
    """JSON has no numbers as keys."""
    numbered = {one.name for one in fields(Repository) if str(one.type).startswith("dict[int")}
    values: dict[str, Any] = {
        key: {int(number): one for number, one in value.items()} if key in numbered else value
        for key, value in document.items()
    }
    values["pulls"] = {number: Pull(**pull) for number, pull in values.get("pulls", {}).items()}
    return Repository(**values)
