"""Commits come here by their ids; the token stays in the environment of git alone."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuci.errors import ConfigError, GpuciError
from gpuci.repository import git, messages
from gpuci.repository.fetch import Repository, network_environment
from gpuci.repository.git import Git, GitFailed
from gpuci.repository.messages import CommitMissing

TOKEN = "ghs_secret"


@pytest.fixture
def ours(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "ours")


def test_a_commit_comes_with_its_files_and_without_its_history(origin: Any, ours: Repository) -> None:
    first = origin.commit({"a": "1"})
    second = origin.commit({"b/c": "2"})
    assert ours.fetch(origin.url, "", [second]) == (second,)
    assert (ours.has(second), ours.has(first)) == (True, False)
    assert [entry.path for entry in ours.entries(second)] == ["a", "b/c"]
    assert [entry.path for entry in ours.entries(second, "b/")] == ["c"]


def test_a_branch_is_told_by_its_commit(origin: Any, ours: Repository) -> None:
    first = origin.commit({"a": "1"})
    origin.git("branch", "topic")
    second = origin.commit({"a": "2"})
    assert ours.fetch(origin.url, "", ["refs/heads/topic", "refs/heads/main"]) == (first, second)


def test_a_branch_that_moved_back_is_followed(origin: Any, ours: Repository) -> None:
    first = origin.commit({"a": "1"})
    origin.commit({"a": "2"})
    ours.fetch(origin.url, "", ["refs/heads/main"])
    origin.git("reset", "-q", "--hard", first)
    assert ours.fetch(origin.url, "", ["refs/heads/main"]) == (first,)


def test_history_deepens_to_its_end(origin: Any, ours: Repository) -> None:
    shas = [origin.commit({"a": str(number)}) for number in range(6)]
    for depth, expected in ((1, 1), (3, 3), (0, 6), (0, 6)):
        ours.fetch(origin.url, "", [shas[-1]], depth=depth)
        assert sum(ours.has(sha) for sha in shas) == expected


def test_a_filter_leaves_files_out_until_they_are_brought(origin: Any, ours: Repository) -> None:
    sha = origin.commit({"a": "1", "b": "2"})
    ours.fetch(origin.url, "", [sha], filter_="blob:none")
    found = {entry.path: entry.object_id for entry in ours.entries(sha)}
    assert _held(ours, *found.values()) == [False, False]
    ours.bring(origin.url, "", [found["a"]])
    assert _held(ours, found["a"], found["b"]) == [True, False]
    assert ours.blob(sha, "a") == b"1"


def test_a_filter_leaves_trees_out_until_they_are_brought(origin: Any, ours: Repository) -> None:
    first = origin.commit({"d/a": "1"})
    last = origin.commit({"d/b": "2"})
    ours.fetch(origin.url, "", [last], depth=2, filter_="tree:0")
    tree = origin.git("rev-parse", f"{first}^{{tree}}")
    assert (ours.has(first), _held(ours, tree)) == (True, [False])
    ours.bring(origin.url, "", [tree])
    assert [entry.path for entry in ours.entries(first)] == ["d/a"]


def _held(ours: Repository, *object_ids: str) -> list[bool]:
    """Whether objects are in the packs here; nothing is fetched by asking."""
    known = ours.git.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode().split()
    return [object_id in known for object_id in object_ids]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a", b"1"),
        ("d/b", b"\xff\0\n"),
        ("d", None),
        ("none", None),
        ("*", None),
        ("link", None),
        ("", None),
        ("../a", None),
        ("d/", None),
        (":(glob)a", None),
    ],
)
def test_a_file_of_a_commit(origin: Any, ours: Repository, path: str, content: bytes | None) -> None:
    (origin.directory / "link").symlink_to("a")
    sha = origin.commit({"a": "1", "d/b": b"\xff\0\n"})
    ours.fetch(origin.url, "", [sha])
    assert ours.blob(sha, path) == content


@pytest.mark.parametrize("wanted", ["f" * 40, "refs/heads/gone"])
def test_what_the_server_has_not_is_told_at_once(origin: Any, tmp_path: Path, wanted: str) -> None:
    origin.commit({"a": "1"})
    waits: list[float] = []
    ours = Repository(tmp_path / "ours", sleep=waits.append)
    with pytest.raises(CommitMissing, match=wanted):
        ours.fetch(origin.url, "", [wanted])
    assert waits == []


@pytest.mark.parametrize(
    "wanted", ["", "main", "--upload-pack=x", "abc123", "refs/heads/a:b", "refs/heads/*"]
)
def test_only_ids_and_refs_are_asked_for(origin: Any, ours: Repository, wanted: str) -> None:
    with pytest.raises(ConfigError, match="neither"):
        ours.fetch(origin.url, "", [wanted])


def test_a_failure_of_the_network_is_tried_three_times(tmp_path: Path) -> None:
    waits: list[float] = []
    said: list[str] = []
    ours = Repository(tmp_path / "ours", sleep=waits.append, say=said.append)
    with pytest.raises(GpuciError) as caught:
        ours.fetch("http://127.0.0.1:9/org/repo", TOKEN, ["f" * 40])
    assert caught.value.verdict == "infra"
    assert (waits, len(said)) == ([2.0, 8.0], 2)
    assert TOKEN not in caught.value.page() + "".join(said)


def test_a_missing_directory_is_a_page(origin: Any, ours: Repository) -> None:
    sha = origin.commit({"a": "1"})
    ours.fetch(origin.url, "", [sha])
    for root in ("b", "a", "../x"):
        with pytest.raises(ConfigError, match="no directory"):
            ours.entries(sha, root)


def test_a_few_objects_that_make_billions_of_files_are_refused(
    origin: Any, ours: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree of 20 names, each of the tree of 20 names, and so on: 30 kB are 25 billion files."""
    monkeypatch.setattr(git, "LISTING_BYTES", 1_000_000)
    kind, last = "100644 blob", origin.git("hash-object", "-w", "--stdin")
    for _ in range(8):
        last = origin.git("mktree", stdin="".join(f"{kind} {last}\tf{n:02}\n" for n in range(20)).encode())
        kind = "040000 tree"
    sha = origin.git("commit-tree", "-m", "x", last)
    ours.fetch(origin.url, "", [sha], filter_="blob:none")
    with pytest.raises(ConfigError, match="more than 1,000,000 bytes"):
        ours.entries(sha)


def test_no_setting_of_anybody_counts(origin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a user's configuration nor an environment that points at another repository."""
    (tmp_path / ".gitconfig").write_text(f'[url "file:///nowhere/"]\n\tinsteadOf = {origin.url}\n')
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "never")
    monkeypatch.delenv("GIT_CONFIG_COUNT")  # for the commit
    monkeypatch.delenv("GIT_DIR")
    sha = origin.commit({"a": "1"})
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert Repository(tmp_path / "ours").fetch(origin.url, "", [sha]) == (sha,)


def test_the_token_reaches_git_by_its_environment_only(
    origin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = origin.commit({"a": "1"})
    seen: list[tuple[tuple[str, ...], bytes, dict[str, str]]] = []
    run = Git.run

    def watched(self: Any, *args: str, stdin: bytes = b"") -> bytes:
        seen.append((args, stdin, dict(self.environment)))
        return run(self, *args, stdin=stdin)

    monkeypatch.setattr(Git, "run", watched)
    ours = Repository(tmp_path / "ours")
    ours.fetch(origin.url, TOKEN, [sha])
    ours.entries(sha)
    header = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    assert [args[0] for args, _, environ in seen if header in str(environ)] == ["fetch"]
    assert all(
        TOKEN not in f"{args}{stdin!r}" and header not in f"{args}{stdin!r}" for args, stdin, _ in seen
    )
    held = b"".join(path.read_bytes() for path in (tmp_path / "ours").rglob("*") if path.is_file())
    assert TOKEN.encode() not in held
    assert header.encode() not in held


def _settings(environment: dict[str, str]) -> dict[str, str]:
    count = int(environment["GIT_CONFIG_COUNT"])
    return {environment[f"GIT_CONFIG_KEY_{n}"]: environment[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)}


def test_the_network_s_environment() -> None:
    environ = {"https_proxy": "http://proxy:1", "GPUCI_TOKEN": "x", "GIT_TRACE": "1", "PATH": "/bin"}
    made = network_environment("https://github.com/o/r", TOKEN, environ)
    assert {name for name in made if not name.startswith("GIT_CONFIG_")} == {
        "https_proxy",
        "GIT_ALLOW_PROTOCOL",
    }
    settings = _settings(made)
    assert settings["http.followRedirects"] == "false"
    assert [name for name in settings if name.endswith("extraheader")] == [
        "http.https://github.com/o/r.extraheader"
    ]
    assert "extraheader" not in str(network_environment("https://github.com/o/r", "", environ))


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("fatal: remote error: upload-pack: not our ref 1234", "has no"),
        ("fatal: couldn't find remote ref refs/heads/x", "has no"),
        ("error: Server does not allow request for unadvertised object 12", "has no"),
        ("fatal: Authentication failed for 'https://github.com/o/r/'", "refuses"),
        ("fatal: could not read Username for 'https://github.com': terminal prompts disabled", "refuses"),
        ("fatal: unable to access 'x': The requested URL returned error: 403", "refuses"),
        (
            "remote: Repository not found.\nfatal: repository 'https://github.com/o/r/' not found",
            "no repository",
        ),
        ("fatal: unable to access 'x': The requested URL returned error: 404", "no repository"),
        ("fatal: unable to access 'x': The requested URL returned error: 301", "another address"),
        ("error: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output", "disk"),
        ("fatal: unable to access 'x': Could not resolve host: github.com", None),
        ("fatal: unable to access 'x': The requested URL returned error: 502", None),
        ("fatal: early EOF", None),
        ("", None),
    ],
)
def test_what_git_says_is_explained(said: str, what: str | None) -> None:
    found = messages.explained(said, "https://github.com/o/r", "1234")
    if what is None:
        assert found is None
    else:
        assert found is not None
        assert what in found.what
        assert found.then


def test_git_s_words_are_made_safe() -> None:
    assert messages.last_line("a\n\x1b[31mfatal: x\x07\n") == "?[31mfatal: x?"
    assert "\x1b" not in messages.unreachable("\x1b[2J", "u").page()


def test_a_failed_read_is_one_of_git(origin: Any, fetched: Callable[[str], Repository]) -> None:
    repository = fetched(origin.commit({"a": "1"}))
    with pytest.raises(GitFailed):
        repository.blob("f" * 40, "a")
