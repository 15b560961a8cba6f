"""Which environments keep a key from workflows that nobody reviewed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Repository, State, Token

from gpuci.github.client import Client
from gpuci.github.environments import judge, problem
from gpuci.github.messages import ApiError

REVIEWERS = {"type": "required_reviewers", "reviewers": [{"type": "User", "reviewer": {"login": "ada"}}]}
SELECTED = {"protected_branches": False, "custom_branch_policies": True}
PROTECTED = {"protected_branches": True, "custom_branch_policies": False}


def document(policy: dict[str, bool] | None, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"name": "gpu", "protection_rules": list(rules), "deployment_branch_policy": policy}


@pytest.mark.parametrize(
    ("given", "patterns", "any_rule", "told"),
    [
        pytest.param(None, [], True, "is missing", id="missing"),
        pytest.param(document(None), [], True, "any branch's workflow", id="no-rule"),
        pytest.param({"name": "gpu"}, [], True, "any branch's workflow", id="bare"),
        pytest.param(document(None, {"type": "wait_timer"}), [], True, "any branch's", id="wait-timer"),
        pytest.param(
            document(None, {"type": "required_reviewers", "reviewers": []}), [], True, "any", id="nobody"
        ),
        pytest.param(document(None, REVIEWERS), [], False, "", id="reviewers"),
        pytest.param(document(PROTECTED, {"type": "branch_policy"}), [], True, "", id="protected"),
        pytest.param(document(PROTECTED), [], False, "no branch is", id="protected-but-none-is"),
        pytest.param(document(SELECTED), ["main"], False, "", id="selected"),
        pytest.param(document(SELECTED), ["main", "gpuci/*", "v*"], False, "", id="mirror-branches"),
        pytest.param(document(SELECTED), ["gh-readonly-queue/main/*", "m*"], False, "", id="queue"),
        pytest.param(document(SELECTED), [], False, "admits no branch", id="selected-but-none"),
        *(
            pytest.param(document(SELECTED), ["main", wide], True, "admits any branch", id=f"pattern-{wide}")
            for wide in ("*", "**", "**/*", "*/*", "?*", "[a-z]*", "[^x]*", "*-*", "")
        ),
        *(
            pytest.param(document(SELECTED), [wide], True, "its own workflow", id=f"pulls-{wide}")
            for wide in ("refs/pull/*/merge", "pull/*", "ref*/pull/**", "refs/*/*/merge", "*/merge")
        ),
        pytest.param(document(SELECTED, REVIEWERS), ["*"], False, "", id="any-branch-but-reviewed"),
    ],
)
def test_what_counts_as_protection(
    given: dict[str, Any] | None, patterns: list[str], any_rule: bool, told: str
) -> None:
    found = judge("gpu", given, patterns=patterns, any_rule=any_rule)
    assert told in found
    assert bool(found) == bool(told)


def test_a_name_is_one_line_without_commands() -> None:
    assert "\n" not in judge("a\n::error::b", None, patterns=[], any_rule=False)


@pytest.fixture
def repository() -> Repository:
    environments = {
        "open": document(None),
        "selected": document(SELECTED) | {"branch_policies": ["main"]},
        "wide": document(SELECTED) | {"branch_policies": ["main", "*"]},
        "protected": document(PROTECTED),
    }
    return Repository("org/mono", environments=environments)


@pytest.fixture
def server(repository: Repository) -> Iterator[Server]:
    tokens = {"good": Token({"actions": "read", "contents": "read"}), "none": Token({})}
    with Server(State([repository], tokens)) as found:
        yield found


def client(server: Server, token: str = "good") -> Client:
    return Client(server.url, token, "org/mono", action="test", say=lambda text: None)


@pytest.mark.parametrize(
    ("name", "protected", "told", "requests"),
    [
        ("gone", [], "missing", 1),
        ("open", [], "not protected", 1),
        ("selected", [], "", 2),
        ("wide", [], "any branch", 2),
        ("protected", [], "no branch is", 2),
        ("protected", ["main"], "", 3),
    ],
    ids=["missing", "open", "selected", "wide", "none-protected", "protected"],
)
def test_what_github_tells(
    server: Server, repository: Repository, name: str, protected: list[str], told: str, requests: int
) -> None:
    repository.protected_branches = protected
    found = problem(client(server), name)
    assert (bool(found), told in found, len(server.requests)) == (bool(told), True, requests)


def test_a_ruleset_alone_protects_no_environment(server: Server, repository: Repository) -> None:
    """GitHub calls the branch protected, and lets every branch deploy."""
    repository.rules = {"main": [{"type": "pull_request"}]}
    assert "a ruleset is none" in problem(client(server), "protected")


def test_a_token_that_may_not_look_is_told_the_permission(server: Server) -> None:
    with pytest.raises(ApiError) as caught:
        problem(client(server, "none"), "open")
    assert "actions: read" in caught.value.page()
