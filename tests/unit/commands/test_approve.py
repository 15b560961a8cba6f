"""`gpuci approve` against a GitHub over HTTP."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Pull, Repository, State, Token

from gpuci.cli import main

HEAD, OLD = "a" * 40, "c" * 40


@pytest.fixture
def repository() -> Repository:
    pull = Pull(12, HEAD, head_repository="eve/mono", author="eve", title="Faster\x1b[31m ##[group] kernels")
    return Repository("org/mono", pulls={12: pull}, workflows={"gpu.yml": ["pull-request", "sha"]})


@pytest.fixture
def server(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """GitHub, and a clone to stand in."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(
        ["git", "-C", tmp_path, "remote", "add", "origin", "git@github.com:org/mono.git"], check=True
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GH_TOKEN", "ada")
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    token = Token({"actions": "write", "pull-requests": "read"}, login="ada")
    with Server(State([repository], {"ada": token, "other": token})) as found:
        monkeypatch.setenv("GITHUB_API_URL", found.url)
        yield found


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_commit_that_is_named_is_started(server: Server, repository: Repository) -> None:
    assert main(["approve", "12", HEAD]) == 0
    assert repository.dispatches == [
        {"workflow": "gpu.yml", "ref": "main", "inputs": {"pull-request": "12", "sha": HEAD}}
    ]
    assert [f"{seen.method} {seen.path}" for seen in server.requests] == [
        "GET /repos/org/mono/pulls/12",
        "GET /repos/org/mono",
        "POST /repos/org/mono/actions/workflows/gpu.yml/dispatches",
    ]


@pytest.mark.parametrize(
    ("answer", "code", "started"), [("y\n", 0, 1), ("Yes\n", 0, 1), ("n\n", 2, 0), ("\n", 2, 0), ("", 2, 0)]
)
@pytest.mark.usefixtures("server")
def test_a_commit_that_is_not_named_is_shown_and_asked_for(
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    code: int,
    started: int,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert main(["approve", "#12"]) == code
    told = capsys.readouterr().err
    assert f"look at it: https://github.com/org/mono/pull/12/files/{HEAD} " in " ".join(told.split())
    assert HEAD in told
    assert "eve/mono, a fork" in told
    assert "##[" not in told
    assert "\x1b" not in told
    assert len(repository.dispatches) == started
    if started:
        assert repository.dispatches[0]["inputs"]["sha"] == HEAD


def test_without_a_terminal_the_commit_is_named(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    assert main(["approve", "12"]) == 2
    assert f"give its SHA: gpuci approve 12 {HEAD}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("server")
def test_a_wrong_token_is_told_as_on_a_laptop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GH_TOKEN", "mistyped")
    assert main(["approve", "12", HEAD]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "does not accept the token" in told
    assert "set GH_TOKEN to another; or unset it, and GITHUB_TOKEN, and run `gh auth login`" in told
    assert "action" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["12", OLD], "is not the head"),
        (["12", HEAD[:12]], "no full commit id"),
        (["twelve", HEAD], "no number"),
        (["13", HEAD], "finds no pull request 13"),
        (["12", HEAD, "--workflow", "other.yml"], "workflow_dispatch"),
        (["12", HEAD, "--repository", "nonsense"], "OWNER/NAME"),
    ],
    ids=["old", "short", "no-number", "no-pull", "no-workflow", "no-repository"],
)
@pytest.mark.usefixtures("server")
def test_what_can_not_be_started_says_why(
    repository: Repository, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["approve", *arguments]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert repository.dispatches == []


@pytest.mark.usefixtures("server")
def test_a_closed_pull_request_is_not_started(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.pulls[12].state = "closed"
    assert main(["approve", "12", HEAD]) == 2
    assert "not open" in capsys.readouterr().err


@pytest.mark.usefixtures("server")
def test_a_workflow_without_the_inputs_is_told(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.workflows["gpu.yml"] = []
    assert main(["approve", "12", HEAD]) == 2
    assert "docs/github.md" in capsys.readouterr().err


def test_a_token_goes_to_no_host_of_a_clone(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("GITHUB_API_URL")
    url = "https://evil.example/org/mono"
    subprocess.run(["git", "-C", tmp_path, "remote", "set-url", "origin", url], check=True)
    assert main(["approve", "12", HEAD]) == 2
    assert "evil.example" in capsys.readouterr().err
    assert server.requests == []


def test_upstream_goes_before_origin(server: Server, tmp_path: Path) -> None:
    subprocess.run(["git", "-C", tmp_path, "remote", "rename", "origin", "upstream"], check=True)
    subprocess.run(
        ["git", "-C", tmp_path, "remote", "add", "origin", "git@github.com:ada/mono.git"], check=True
    )
    assert main(["approve", "12", HEAD]) == 0


@pytest.mark.usefixtures("server")
def test_outside_of_a_clone_the_repository_is_named(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, repository: Repository
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert main(["approve", "12", HEAD]) == 2
    assert main(["approve", "12", HEAD, "--repository", "org/mono"]) == 0
    assert len(repository.dispatches) == 1


@pytest.mark.parametrize(
    ("text", "code"), [("echo other", 0), ("exit 1", 2), ("echo", 2)], ids=["gh", "logged-out", "empty"]
)
@pytest.mark.usefixtures("server")
def test_the_token_that_gh_has_for_this_host_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    program = tmp_path / "bin/gh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$*" = "auth token --hostname 127.0.0.1" ] || exit 9\n{text}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.delenv("GH_TOKEN")
    assert main(["approve", "12", HEAD]) == code
