"""Repositories of a made-up user, and a login node that is a shell here."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from gpuci.execution.delivery.archive import archive
from gpuci.execution.delivery.snapshot import Snapshot, snapshot
from gpuci.execution.transport.connection import Answer

Files = Mapping[str, bytes | str]
Run = Callable[..., str]


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with nobody's settings in it."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (home / ".gitconfig").write_text(
        '[user]\nname = U\nemail = u@x\n[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n'
    )
    return home


@pytest.fixture
def git() -> Run:
    """`git(directory, *args)` as the user: its output; a failure is one of the test."""

    def run(directory: Path, *args: str, stdin: bytes = b"") -> str:
        done = subprocess.run(["git", *args], cwd=directory, input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    return run


@pytest.fixture
def write() -> Callable[[Path, Files], None]:
    """Write files below a directory."""

    def files(directory: Path, content: Files) -> None:
        for name, data in content.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)

    return files


@pytest.fixture
def repository(tmp_path: Path, git: Run, write: Callable[[Path, Files], None]) -> Callable[..., Path]:
    """Make a repository with one commit of these files; returns its directory."""

    def make(content: Files, name: str = "work", *init: str) -> Path:
        directory = tmp_path / name
        directory.mkdir(parents=True)
        git(directory, "init", "-q", *init)
        write(directory, content)
        git(directory, "add", "-A")
        git(directory, "commit", "-q", "-m", "one")
        return directory

    return make


@pytest.fixture
def take(tmp_path: Path) -> Callable[[Path], Snapshot]:
    """The snapshot of a directory, with a scratch of its own."""

    def taken(root: Path) -> Snapshot:
        return snapshot(root, tmp_path / "scratch")

    return taken


@pytest.fixture
def packed(tmp_path: Path) -> Callable[[Snapshot], dict[str, bytes | str]]:
    """What the archive of a snapshot holds: {path: content, or "-> target"}; directories end with /."""

    def content(taken: Snapshot) -> dict[str, bytes | str]:
        made = archive(taken, tmp_path / "tree.tar")
        held: dict[str, bytes | str] = {}
        with tarfile.open(fileobj=io.BytesIO(made.path.read_bytes()), errors="surrogateescape") as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isreg() else None
                if file is not None:
                    held[member.name] = file.read()
                elif member.issym():
                    held[member.name] = f"-> {member.linkname}"
                else:
                    held[f"{member.name}/"] = ""
        return held

    return content


class LoginNode:
    """Runs texts in a shell here; `faults` (one each call) come before, and may raise or return an Answer."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = os.environ["PATH"]
        self.shell = ["sh"]
        self.faults: list[Callable[[str], Answer | None]] = []
        self.texts: list[str] = []

    def run(self, text: str, *args: str, stdin: bytes | IO[bytes] = b"", timeout: float = 60.0) -> Answer:
        self.texts.append(text.splitlines()[1].split()[1])
        fault = self.faults.pop(0) if self.faults else None
        answer = fault(text) if fault else None
        return answer or self.really(text, args, stdin)

    def really(self, text: str, args: tuple[str, ...], stdin: bytes | IO[bytes] = b"") -> Answer:
        """Run it, whatever is planned."""
        given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        done = subprocess.run(
            [*self.shell, "-c", text, "gpuci", *args],
            capture_output=True,
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": self.path},
            check=False,
            **given,
        )
        return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


@pytest.fixture
def login(tmp_path: Path) -> LoginNode:
    home = tmp_path / "login"
    home.mkdir()
    return LoginNode(home)


@pytest.fixture
def busybox(tmp_path: Path) -> Path:
    """A folder with nothing but busybox in it, under all of its names."""
    found = shutil.which("busybox")
    if found is None:
        pytest.skip("no busybox here")
    folder = tmp_path / "busybox"
    folder.mkdir()
    names = subprocess.run([found, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        (folder / name).symlink_to(found)
    return folder
