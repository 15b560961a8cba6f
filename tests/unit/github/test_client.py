"""What gpuci asks GitHub for, over HTTP, to the fake."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from tests.fakes.github.faults import Fault
from tests.fakes.github.server import Server
from tests.fakes.github.state import EVERYTHING, Pull, Repository, State, Token

from gpuci.errors import ConfigError
from gpuci.github.client import Client, Comment, CommitStatus, client_of
from gpuci.github.messages import ApiError
from gpuci.github.step import Step

SHA = "a" * 40
PROTECTED = {
    "protection_rules": [{"type": "required_reviewers"}],
    "deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True},
    "branch_policies": ["main", "release/*"],
}


@pytest.fixture
def server() -> Iterator[Server]:
    shop = Repository(
        "octo/shop",
        pulls={3: Pull(3, SHA, labels=["run-gpu-tests", "a/b c"])},
        collaborators={"ada": "admin", "max": "maintain", "wim": "write", "tri": "triage"},
        check_suites={SHA: ["2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"]},
        environments={"gpu/prod": PROTECTED, "bare": {}},
        workflows={"gpu.yml": ["pull-request", "sha"]},
    )
    with Server(State([shop], {"tok": Token()})) as fake:
        yield fake


@pytest.fixture
def client(server: Server) -> Client:
    return client_to(server)


def client_to(server: Server, token: str = "tok") -> Client:
    return Client(server.url, token, "octo/shop", action="test", say=lambda _: None, sleep=lambda _: None)


@pytest.fixture
def shop(server: Server) -> Repository:
    return server.state.repositories[0]


# --- statuses


def test_no_status(client: Client) -> None:
    assert client.status(SHA, "gpuci") is None


def test_the_newest_status_of_the_context(client: Client) -> None:
    client.set_status(SHA, "gpuci", "pending", "waits", "https://github.com/octo/shop/actions/runs/1")
    client.set_status(SHA, "gpuci", "success", "12 tests passed")
    client.set_status(SHA, "lint", "failure")
    found = client.status(SHA, "gpuci")
    assert found is not None
    assert found.created_at
    expected = CommitStatus(
        "gpuci", "success", "12 tests passed", "", "github-actions[bot]", found.created_at
    )
    assert found == expected


def test_a_status_behind_those_of_others(client: Client, shop: Repository) -> None:
    client.set_status(SHA, "gpuci", "success")
    shop.statuses[SHA] += [{"context": f"ci/{n}", "state": "success"} for n in range(120)]
    found = client.status(SHA, "gpuci")
    assert found is not None
    assert found.state == "success"


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("x" * 140, "x" * 140),
        ("x" * 141, "x" * 137 + "..."),
        ("漢" * 100, "漢" * 68 + "..."),
        ("e\u0301" * 140, "e\u0301" * 68 + "e..."),
        ("two\nlines \x1b[31mred", "two lines red"),
        ("", ""),
    ],
    ids=["fits", "long", "wide", "no-width", "lines", "empty"],
)
def test_a_description_fits(client: Client, text: str, description: str) -> None:
    client.set_status(SHA, "gpuci", "pending", text)
    found = client.status(SHA, "gpuci")
    assert found is not None
    assert found.description == description


def test_a_status_is_set_again_when_the_answer_is_lost(server: Server, client: Client) -> None:
    server.faults = [Fault(method="POST", close=True)]
    client.set_status(SHA, "gpuci", "pending")
    assert client.status(SHA, "gpuci") is not None


def test_a_status_of_an_unknown_commit_is_refused(client: Client) -> None:
    with pytest.raises(ApiError, match="422: No commit found for SHA"):
        client.set_status("f" * 40, "gpuci", "pending")


@pytest.mark.parametrize(
    "item", [{"context": "gpuci"}, {"context": "gpuci", "state": 3, "creator": None}, "x", None]
)
def test_a_status_that_is_odd_is_no_success(server: Server, client: Client, item: object) -> None:
    server.faults = [Fault(status=200, body=json.dumps([item]))]
    found = client.status(SHA, "gpuci")
    assert found is None or found.state == ""


# --- people, pull requests, environments


@pytest.mark.parametrize(
    ("login", "permission", "role"),
    [
        ("ada", "admin", "admin"),
        ("max", "write", "maintain"),
        ("wim", "write", "write"),
        ("tri", "read", "triage"),
        ("nobody", "none", "none"),
        ("a/../b", "none", "none"),
    ],
)
def test_access(client: Client, login: str, permission: str, role: str) -> None:
    assert client.access(login) == (permission, role)


@pytest.mark.parametrize(
    ("role", "told"),
    [
        (None, "read"),
        (["admin"], "read"),
        ("", "read"),
        ("GPU team", "GPU team"),
        ("x\n::error::" + "y" * 99, "x |::error::" + "y" * 25 + "..."),
    ],
    ids=["none", "list", "empty", "the organization's own", "hostile"],
)
def test_a_role_is_one_short_line(server: Server, client: Client, role: object, told: str) -> None:
    server.faults = [Fault(status=200, body=json.dumps({"permission": "read", "role_name": role}))]
    assert client.access("ada") == ("read", told)


@pytest.mark.parametrize(
    "answer", [{}, {"permission": "owner"}, {"permission": True}, {"permission": ["admin"]}]
)
def test_a_permission_that_is_unknown_is_none(server: Server, client: Client, answer: object) -> None:
    server.faults = [Fault(status=200, body=json.dumps(answer))]
    assert client.access("ada").permission == "none"


def test_a_user_who_is_gone_may_nothing(server: Server, client: Client) -> None:
    server.faults = [Fault(status=404)]
    assert client.access("ada").permission == "none"


def test_a_pull_request(client: Client) -> None:
    pull = client.pull_request(3)
    assert (pull["number"], pull["head"]["sha"], pull["state"]) == (3, SHA, "open")
    with pytest.raises(ApiError, match="finds no pull request 4"):
        client.pull_request(4)


def test_the_repository(client: Client) -> None:
    assert client.repository_document()["default_branch"] == "main"


def test_check_suites(client: Client) -> None:
    assert [suite["created_at"] for suite in client.check_suites(SHA)] == [
        "2026-11-20T10:00:00Z",
        "2026-11-20T11:00:00Z",
    ]
    assert client.check_suites("b" * 40) == []


def test_an_environment(client: Client) -> None:
    found = client.environment("gpu/prod")
    assert found is not None
    assert found["protection_rules"] == PROTECTED["protection_rules"]
    assert client.branch_policies("gpu/prod") == ["main", "release/*"]
    assert client.environment("none") is None


@pytest.mark.parametrize(
    ("by_rule", "by_ruleset", "known", "requests"),
    [
        ([], [], False, 1),
        (["main"], [], True, 2),
        ([], ["main"], False, 2),
        (["main"], ["main"], False, 2),
        (["rel/1"], ["main"], True, 3),
        (["z"], ["a", "b", "c"], False, 4),
    ],
    ids=["none", "a-rule", "a-ruleset", "both-at-once", "one-each", "too-many"],
)
def test_a_ruleset_is_no_protection_rule(
    server: Server,
    client: Client,
    shop: Repository,
    by_rule: list[str],
    by_ruleset: list[str],
    known: bool,
    requests: int,
) -> None:
    shop.protected_branches = by_rule
    shop.rules = {name: [{"type": "deletion"}] for name in by_ruleset}
    assert client.has_protection_rule() == known
    assert len(server.requests) == requests


# --- comments and labels


def test_comments(client: Client) -> None:
    first = client.add_comment(3, "one")
    client.add_comment(3, "two")
    client.edit_comment(first.id, "one, edited")
    assert [(one.body, one.author) for one in client.comments(3)] == [
        ("one, edited", "github-actions[bot]"),
        ("two", "github-actions[bot]"),
    ]


def test_a_comment_of_a_user_who_is_gone(client: Client, shop: Repository) -> None:
    shop.comments[3] = [{"id": 7, "body": None, "user": None}]
    assert list(client.comments(3)) == [Comment(7, "", "")]


@pytest.mark.parametrize("fault", [Fault(close=True), Fault(status=502)], ids=["closed", "502"])
@pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
def test_a_comment_is_made_once_when_the_answer_is_lost(
    server: Server, client: Client, shop: Repository, fault: Fault, done: bool
) -> None:
    server.faults = [Fault(method="POST", close=fault.close, status=fault.status, done=done)]
    made = client.add_comment(3, "hello\r\n")
    assert [(one["id"], one["body"]) for one in shop.comments[3]] == [(made.id, "hello\r\n")]


def test_a_comment_that_is_too_long_is_not_tried_again(server: Server, client: Client) -> None:
    with pytest.raises(ApiError, match="65536"):
        client.add_comment(3, "x" * 65537)
    assert len(server.requests) == 1


def test_labels(client: Client, shop: Repository) -> None:
    assert client.remove_label(3, "a/b c")
    assert not client.remove_label(3, "a/b c")
    assert shop.pulls[3].labels == ["run-gpu-tests"]


# --- dispatch


def test_a_workflow_is_started(client: Client, shop: Repository) -> None:
    client.dispatch("gpu.yml", "main", {"pull-request": "3", "sha": SHA})
    assert shop.dispatches == [
        {"workflow": "gpu.yml", "ref": "main", "inputs": {"pull-request": "3", "sha": SHA}}
    ]


@pytest.mark.parametrize(
    "fault", [Fault(close=True, done=True), Fault(status=500, done=True)], ids=["closed", "500"]
)
def test_a_workflow_is_not_started_twice(
    server: Server, client: Client, shop: Repository, fault: Fault
) -> None:
    server.faults = [fault]
    with pytest.raises(ApiError) as caught:
        client.dispatch("gpu.yml", "main", {})
    assert caught.value.unsure
    assert len(shop.dispatches) == 1


@pytest.mark.parametrize(
    ("workflow", "ref", "inputs", "words"),
    [
        ("none.yml", "main", {}, "finds nothing"),
        ("gpu.yml", "gone", {}, "No ref found"),
        ("gpu.yml", "main", {"shard": "1"}, "Unexpected inputs"),
    ],
    ids=["workflow", "ref", "input"],
)
def test_a_workflow_that_can_not_be_started(
    client: Client, workflow: str, ref: str, inputs: dict[str, str], words: str
) -> None:
    with pytest.raises(ApiError, match=words):
        client.dispatch(workflow, ref, inputs)


# --- each call by a token that has just the permission of the table, and by one that lacks it


def _add_status(client: Client) -> object:
    client.set_status(SHA, "gpuci", "pending")
    return None


CALLS: dict[str, tuple[str, Callable[[Client], object]]] = {
    "status": ("statuses: read", lambda c: c.status(SHA, "gpuci")),
    "set_status": ("statuses: write", _add_status),
    "pull_request": ("pull-requests: read", lambda c: c.pull_request(3)),
    "check_suites": ("checks: read", lambda c: c.check_suites(SHA)),
    "environment": ("actions: read", lambda c: c.environment("bare")),
    "branch_policies": ("actions: read", lambda c: c.branch_policies("bare")),
    "has_protection_rule": ("contents: read", lambda c: c.has_protection_rule()),
    "comments": ("pull-requests: read", lambda c: list(c.comments(3))),
    "add_comment": ("pull-requests: write", lambda c: c.add_comment(3, "x")),
    "edit_comment": ("pull-requests: write", lambda c: c.edit_comment(7, "x")),
    "remove_label": ("pull-requests: write", lambda c: c.remove_label(3, "a/b c")),
    "dispatch": ("actions: write", lambda c: c.dispatch("gpu.yml", "main", {})),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_permission_is_enough_and_without_it_it_is_named(
    server: Server, shop: Repository, name: str
) -> None:
    permission, call = CALLS[name]
    scope, _, level = permission.partition(": ")
    shop.comments[3] = [{"id": 7, "body": "x", "user": None}]
    server.state.tokens["just"] = Token({scope: level})
    call(client_to(server, "just"))
    without = {one: "write" for one in EVERYTHING if one != scope}
    server.state.tokens["lacks"] = Token(without | ({scope: "read"} if level == "write" else {}))
    with pytest.raises(ApiError) as caught:
        call(client_to(server, "lacks"))
    assert caught.value.status == 403
    assert f"`{permission}`" in caught.value.page()


@pytest.mark.parametrize("call", [lambda c: c.access("ada"), lambda c: c.repository_document()])
def test_metadata_needs_no_permission(server: Server, call: Callable[[Client], object]) -> None:
    server.state.tokens["nothing"] = Token({})
    assert call(client_to(server, "nothing"))


# --- of a step


def step(environ: dict[str, str], token: str) -> Step:
    return Step("find-changed", environ, {"GPUCI_TOKEN": token})


def test_the_client_of_a_step(server: Server) -> None:
    environ = {"GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": "octo/shop"}
    assert client_of(step(environ, "tok")).pull_request(3)["number"] == 3
    assert server.requests[0].agent.endswith("(find-changed)")


def test_without_a_server_it_is_github_com() -> None:
    assert client_of(step({"GITHUB_REPOSITORY": "octo/shop"}, "tok")).url == "https://api.github.com"


def test_a_step_without_a_token_says_so() -> None:
    with pytest.raises(ConfigError, match="no token"):
        client_of(step({"GITHUB_REPOSITORY": "octo/shop"}, ""))


def test_a_step_without_a_repository_says_so() -> None:
    with pytest.raises(ConfigError, match="no repository"):
        client_of(step({}, "tok"))
