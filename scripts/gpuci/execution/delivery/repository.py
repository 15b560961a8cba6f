"""A user's repository, seen through an index and an object directory of our own. I/O."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpuci.errors import ConfigError, GpuciError
from gpuci.repository.git import Git, GitFailed, quoted, user_environment

# What would write beside our index (hooks, a shared index, a watching daemon), refuse a file for its line
# ends, or make pointers again of the content of Git LFS that lies in the tree.
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.splitIndex=false",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.safecrlf=false",
    "core.compression=0",
    "filter.lfs.clean=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
)


@dataclass(frozen=True)
class Repository:
    """`git` runs in the top directory; `prefix` is the way from there to ROOT, "" or ending with a slash."""

    git: Git
    top: Path
    prefix: str
    objects: tuple[Path, ...]
    scratch: Path
    hash_length: int

    @property
    def inside(self) -> tuple[str, ...]:
        """Arguments that limit a command to ROOT."""
        return ("--", f":(literal){self.prefix}") if self.prefix else ()

    def borrowing(self, objects: Sequence[Path]) -> Git:
        """The same, seeing the objects of other repositories too."""
        alternates = ":".join(quoted(path) for path in dict.fromkeys((*self.objects, *objects)))
        environment = {**self.git.environment, "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternates}
        return replace(self.git, environment=environment)


def locate(root: Path, scratch: Path) -> Repository:
    """The repository around `root`; raises ConfigError that names the reason if git won't work there."""
    plain = Git(root, user_environment(os.environ))
    try:
        top = Path(plain.line("rev-parse", "--show-toplevel"))
        prefix = plain.line("rev-parse", "--show-prefix")
        index, objects = (
            root.absolute() / plain.line("rev-parse", "--git-path", n) for n in ("index", "objects")
        )
        hash_length = len(plain.line("hash-object", "--stdin"))
    except GitFailed as error:
        raise _cannot_use(root, error) from error
    own_objects = scratch / "objects"
    own_objects.mkdir(exist_ok=True)
    environment = user_environment(
        os.environ,
        GIT_INDEX_FILE=str(_copy(index, scratch)),
        GIT_OBJECT_DIRECTORY=str(own_objects),
        GIT_ALTERNATE_OBJECT_DIRECTORIES=quoted(objects),
    )
    options = tuple(word for option in _OPTIONS for word in ("-c", option))
    git = Git(top, environment, options)
    return Repository(git, top, prefix, (own_objects, objects), scratch, hash_length)


def _copy(index: Path, scratch: Path) -> Path:
    """Our copy of an index: of the same age, since git trusts no entry that is as young as the index."""
    copy = Path(tempfile.mkdtemp(prefix="index-", dir=scratch)) / "index"
    try:
        shutil.copy2(index, copy)
    except FileNotFoundError:  # nothing was ever added
        pass
    except OSError as error:
        raise GpuciError(f"{index} can't be read: {error.strerror}") from error
    return copy


def _cannot_use(root: Path, error: GitFailed) -> ConfigError:
    said = error.said
    if "dubious ownership" in said or "unsafe repository" in said:
        return ConfigError(
            f"git refuses the repository of {root}: it belongs to another user",
            why="the settings of a repository can run commands, so git asks whether you trust it",
            then="if you do: git config --global --add safe.directory DIRECTORY, with its top directory",
        )
    if "not a git repository" in said or "must be run in a work tree" in said:
        return ConfigError(
            f"{root} is not in the working tree of a git repository",
            why="delivered to a cluster is what git knows: tracked files, and new ones not ignored",
            then="git init, or run from a clone",
        )
    return ConfigError(error.what)
