"""The fake GitHub refuses what GitHub would, and serves git."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Pull, Repository, State, Token, from_document

SHA = "a" * 40
ROOT = Path(__file__).resolve().parents[3]
STATE = State(
    [
        Repository("octo/shop", pulls={3: Pull(3, SHA)}, environments={"gpu": {"protection_rules": []}}),
        Repository("octo/open", private=False, commits=[SHA]),
    ],
    {
        "all": Token(),
        "none": Token({}),
        "elsewhere": Token(repositories=["octo/open"]),
        "ada": Token(login="ada"),
    },
)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(from_document(json.loads(json.dumps(STATE.to_document())))) as fake:
        yield fake


def ask(
    server: Server,
    path: str,
    *,
    token: str = "all",
    method: str = "GET",
    body: Any = None,
    agent: str = "test/1",
) -> tuple[int, Any, dict[str, str]]:
    """Status, document and headers; `body` is sent as JSON, bytes as they are."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data=data, method=method)
    request.add_header("User-Agent", agent)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
            return response.status, json.loads(text) if text else None, dict(response.headers)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), dict(error.headers)


SHOP, OPEN = "/repos/octo/shop", "/repos/octo/open"


@pytest.mark.parametrize(
    ("path", "more", "status", "message"),
    [
        (f"{SHOP}/pulls/3", {"token": "bad"}, 401, "Bad credentials"),
        (f"{SHOP}/pulls/3", {"token": ""}, 404, "Not Found"),
        (f"{SHOP}/pulls/3", {"token": "elsewhere"}, 404, "Not Found"),
        (f"{SHOP}/pulls/3", {"token": "none"}, 403, "Resource not accessible by integration"),
        (f"{SHOP}/pulls/4", {}, 404, "Not Found"),
        ("/repos/octo/none/pulls/3", {}, 404, "Not Found"),
        (f"{SHOP}/unknown", {}, 404, "Not Found"),
        (f"{SHOP}/pulls/3", {"agent": ""}, 403, "Request forbidden by administrative rules."),
        (
            f"{OPEN}/statuses/{SHA}",
            {"token": "", "method": "POST", "body": {}},
            401,
            "Requires authentication",
        ),
        (f"{OPEN}/statuses/{SHA}", {"method": "POST", "body": b"{"}, 400, "Problems parsing JSON"),
        (f"{OPEN}/statuses/{SHA}", {"method": "POST", "body": b"[]"}, 400, "Problems parsing JSON"),
        (f"{SHOP}/issues/3/comments", {"method": "POST", "body": {"body": " "}}, 422, "Validation Failed"),
        (f"{SHOP}/issues/3/labels/none", {"method": "DELETE"}, 404, "Label does not exist"),
        ("/user", {}, 403, "Resource not accessible by integration"),
    ],
)
def test_refusals(server: Server, path: str, more: dict[str, Any], status: int, message: str) -> None:
    found, document, _ = ask(server, path, **more)
    assert (found, document["message"]) == (status, message)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"state": "passed"}, "state"),
        ({"state": "success", "description": "x" * 141}, "description"),
        ({"state": "success", "target_url": "javascript:x"}, "target_url"),
    ],
)
def test_a_status_that_is_invalid(server: Server, body: dict[str, str], field: str) -> None:
    status, document, _ = ask(server, f"{OPEN}/statuses/{SHA}", method="POST", body=body)
    assert (status, document["errors"][0]["field"]) == (422, field)
    assert server.state.repositories[1].statuses == {}


def test_a_refusal_names_the_permission(server: Server) -> None:
    _, _, headers = ask(server, f"{SHOP}/issues/3/comments", token="none", method="POST", body={"body": "x"})
    assert headers["x-accepted-github-permissions"] == "pull_requests=write"


def test_a_person_needs_push_access_to_ask_for_permissions(server: Server) -> None:
    path = f"{SHOP}/collaborators/bob/permission"
    status, document, _ = ask(server, path, token="ada")
    assert (status, document["message"]) == (403, "Must have push access to view collaborator permission.")
    server.state.repositories[0].collaborators["ada"] = "write"
    assert ask(server, path, token="ada")[0] == 200


def test_requests_are_seen(server: Server) -> None:
    ask(server, f"{SHOP}/environments/gpu", agent="gpuci/1 (x)")
    ask(server, f"{SHOP}/environments/none?x=1", token="none")
    first, second = ask(server, "/_fake/requests")[1]
    assert first == {
        "method": "GET",
        "path": f"{SHOP}/environments/gpu",
        "query": "",
        "permissions": ["actions: read"],
        "agent": "gpuci/1 (x)",
        "token": "all",
        "status": 200,
    }
    assert (second["status"], second["token"], second["query"]) == (403, "none", "x=1")


def test_faults_can_be_set_from_elsewhere(server: Server) -> None:
    faults = [{"path": ".*/pulls/3", "status": 503, "skip": 1}]
    assert ask(server, "/_fake/faults", method="PUT", body=faults)[0] == 204
    assert [ask(server, f"{SHOP}/pulls/3")[0] for _ in range(3)] == [200, 503, 200]


def test_the_state_can_be_read_and_set(server: Server) -> None:
    document = ask(server, "/_fake/state")[1]
    assert from_document(document).repositories == STATE.repositories
    document["repositories"][0]["pulls"]["3"]["state"] = "closed"
    assert ask(server, "/_fake/state", method="PUT", body=document)[0] == 204
    assert ask(server, f"{SHOP}/pulls/3")[1]["state"] == "closed"


def test_a_mistyped_state_is_an_error() -> None:
    with pytest.raises(TypeError, match="colaborators"):
        from_document({"repositories": [{"name": "a/b", "colaborators": {}}]})


# --- git


def git(*arguments: str, token: str = "", cwd: Path) -> subprocess.CompletedProcess[str]:
    """git without anything of this machine's; the token as actions/checkout sends it."""
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    environ = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(cwd),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1" if token else "0",
        "GIT_CONFIG_KEY_0": "http.extraheader",
        "GIT_CONFIG_VALUE_0": f"Authorization: basic {basic}",
    }
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *names, *arguments], cwd=cwd, env=environ, capture_output=True, text=True)


@pytest.fixture
def middle(server: Server, tmp_path: Path) -> str:
    """The SHA of the second of three commits of octo/shop, which no ref names."""
    work, bare = tmp_path / "work", tmp_path / "bare.git"
    git("init", "-q", "-b", "main", str(work), cwd=tmp_path)
    for text in ("one", "two", "three"):
        (work / "file").write_text(text)
        git("add", "file", cwd=work)
        git("commit", "-q", "-m", text, cwd=work)
    git("clone", "-q", "--bare", str(work), str(bare), cwd=tmp_path)
    server.state.repositories[0].git = str(bare)
    return git("rev-parse", "HEAD~1", cwd=work).stdout.strip()


def fetch(
    server: Server, tmp_path: Path, what: str, token: str, *more: str
) -> subprocess.CompletedProcess[str]:
    git("init", "-q", "--bare", "here.git", cwd=tmp_path)
    url = f"{server.url}/octo/shop"
    return git("-C", "here.git", "fetch", "-q", *more, url, what, token=token, cwd=tmp_path)


@pytest.mark.parametrize(
    "more", [("--depth=1",), ("--filter=blob:none", "--depth=1"), ()], ids=["depth", "filter", "all"]
)
def test_any_commit_can_be_fetched_by_its_sha(
    server: Server, tmp_path: Path, middle: str, more: tuple[str, ...]
) -> None:
    assert fetch(server, tmp_path, middle, "all", *more).returncode == 0
    assert git("-C", "here.git", "log", "-1", "--format=%s", "FETCH_HEAD", cwd=tmp_path).stdout == "two\n"
    assert {one.permissions for one in server.requests} == {("contents: read",)}


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("", "could not read Username"),
        ("bad", "could not read Username"),
        ("none", "403"),
        ("elsewhere", "not found"),
    ],
    ids=["no token", "bad token", "no permission", "another repository's"],
)
def test_git_is_refused(server: Server, tmp_path: Path, middle: str, token: str, words: str) -> None:
    done = fetch(server, tmp_path, middle, token)
    assert done.returncode != 0
    assert words in done.stderr


def test_nothing_can_be_pushed(server: Server, tmp_path: Path, middle: str) -> None:
    url = f"{server.url}/octo/shop.git"
    done = git("-C", "work", "push", "-q", url, "main:other", token="all", cwd=tmp_path)
    assert done.returncode != 0
    assert "other" not in git("-C", "bare.git", "branch", cwd=tmp_path).stdout


# --- as a program


def test_the_program(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps(STATE.to_document()))
    command = [sys.executable, "-m", "tests.fakes.github", "--state", str(tmp_path / "state.json")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        request = urllib.request.Request(f"{url}{SHOP}/pulls/3", headers={"Authorization": "Bearer all"})
        with urllib.request.urlopen(request, timeout=30) as response:
            assert json.load(response)["number"] == 3
        process.terminate()
        assert process.wait() == 0
