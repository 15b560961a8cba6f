"""Runs git. I/O. Two surroundings: a user's repository as it is set up, and a bare one of our own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpuci.errors import ConfigError, GpuciError

# Of git's own variables only these say how git is installed; the others (a hook has GIT_DIR and
# GIT_INDEX_FILE) would point our commands at another repository.
_KEPT = ("GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM")
_ALWAYS = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
LISTING_BYTES = 100_000_000  # about a million files
# In our own repository nobody's configuration counts: not the user's, not the machine's.
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}


class GitFailed(GpuciError):
    """A git command ended with an error; `said` is what it printed of it."""

    def __init__(self, command: str, said: str) -> None:
        lines = said.strip().splitlines() or ["no message"]
        super().__init__(f"git {command} failed: {_printable(lines[-1])}")
        self.said = said


@dataclass(frozen=True)
class Git:
    """Where a git command runs, and with what; `options` stand before the command."""

    directory: Path
    environment: Mapping[str, str]
    options: tuple[str, ...] = ()

    def run(self, *args: str, stdin: bytes = b"") -> bytes:
        """Standard output; raises GitFailed, and ConfigError without git."""
        with self.start(*args) as process:
            out, err = process.communicate(stdin)
        if process.returncode != 0:
            raise GitFailed(args[0], err.decode("utf-8", "replace"))
        return out

    def listing(self, tree: str) -> bytes:
        """All of a tree by `git ls-tree -r -z`. Raises GitFailed, ConfigError for too much of it.

        A handful of objects can make billions of files: trees that hold another one many times.
        """
        with self.start("ls-tree", "-r", "-z", tree) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            out = process.stdout.read(LISTING_BYTES + 1)
            if len(out) > LISTING_BYTES:
                process.kill()
                raise ConfigError(
                    f"the list of the commit's files has more than {LISTING_BYTES:,} bytes",
                    why="it was made to exhaust who reads it, or holds more files than a repository should",
                    then="look at what the commit adds",
                )
            err = process.stderr.read()
        if process.returncode != 0:
            raise GitFailed("ls-tree", err.decode("utf-8", "replace"))
        return out

    def line(self, *args: str) -> str:
        """The one line of output, which may be a path with anything in it but a NUL."""
        return os.fsdecode(self.run(*args).removesuffix(b"\n"))

    def start(
        self, *args: str, stdin: IO[bytes] | int = subprocess.PIPE, stderr: IO[bytes] | int = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        """The running command, its streams piped where no other is given."""
        try:
            return subprocess.Popen(
                ["git", *self.options, *args],
                cwd=self.directory,
                env=dict(self.environment),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        except OSError as error:
            raise ConfigError(
                f"git can't be run: {error.strerror}",
                why="what is delivered to a cluster is a git tree",
                then="install git, or put it on PATH",
            ) from error


def user_environment(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    """The user's environment without variables that name another repository."""
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    own = {name: value for name, value in environ.items() if name.startswith(_KEPT)}
    return {**kept, **own, **_ALWAYS, **more}


def bare_repository(directory: Path, objects: Sequence[Path], hash_length: int) -> Git:
    """Make a bare repository that borrows the objects of others, and reads nobody's configuration.

    Its `info/attributes` outrank those of a tree: `export-ignore` and `export-subst` have no effect.
    """
    environment = {
        name: os.environ[name] for name in ("PATH", "TMPDIR", "GIT_EXEC_PATH") if name in os.environ
    }
    home = {"HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    directory.mkdir(parents=True)
    git = Git(directory, {**environment, **home, **_ALWAYS, **_ALONE}, ("--git-dir=.",))
    object_format = ("--object-format=sha256",) if hash_length == 64 else ()
    git.run("init", "-q", "--bare", "--template=", *object_format)
    for folder in ("info", "objects/info"):
        (directory / folder).mkdir(exist_ok=True)
    (directory / "info/attributes").write_text("* -export-ignore -export-subst\n")
    lines = b"".join(os.fsencode(quoted(path)) + b"\n" for path in objects)
    (directory / "objects/info/alternates").write_bytes(lines)
    return git


def quoted(path: Path) -> str:
    """A path for git's lists of object directories, which are split at newlines or colons (git >= 2.11.1)."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)[:300]
