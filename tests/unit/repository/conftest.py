"""A server's repository, and how commits get into it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gpuci.repository.fetch import Repository


class Origin:
    """A repository as a server has it: any commit may be asked for, and objects may be left out."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = f"file://{directory}"
        directory.mkdir()
        self.git("init", "-q", "-b", "main")
        for name, value in (
            ("uploadpack.allowFilter", "true"),
            ("uploadpack.allowAnySHA1InWant", "true"),
            ("user.name", "U"),
            ("user.email", "u@x"),
            ("protocol.file.allow", "always"),
        ):
            self.git("config", name, value)

    def git(self, *args: str, stdin: bytes = b"", **environ: str) -> str:
        """Run git there; a failure is one of the test."""
        done = subprocess.run(
            ["git", *args],
            cwd=self.directory,
            input=stdin,
            capture_output=True,
            env={**os.environ, **environ},
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, bytes | str | None], message: str = "change") -> str:
        """Write files (None: remove) and commit all; returns the id."""
        for name, data in files.items():
            path = self.directory / name
            if data is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def tree(self, entries: Mapping[str, tuple[str, bytes]]) -> str:
        """Commit a tree of one level, made by hand: name -> (mode, content); returns the commit's id."""
        lines = b"".join(
            f"{mode} {'tree' if mode == '040000' else 'blob'} ".encode()
            + (
                content
                if mode == "040000"
                else self.git("hash-object", "-w", "--stdin", stdin=content).encode()
            )
            + b"\t"
            + name.encode("utf-8", "surrogateescape")
            + b"\0"
            for name, (mode, content) in sorted(entries.items())
        )
        made = self.git("mktree", "-z", "--missing", stdin=lines)
        return self.git("commit-tree", made, "-m", "by hand")


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the user who runs the tests."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "origin")


@pytest.fixture
def fetched(origin: Origin, tmp_path: Path) -> Callable[[str], Repository]:
    """A repository of ours that has a commit of `origin`."""

    def make(sha: str) -> Repository:
        repository = Repository(tmp_path / f"ours-{sha[:8]}")
        repository.fetch(origin.url, "", [sha])
        return repository

    return make
