"""A snapshot -> one tar file, equal bytes for equal trees. I/O."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuci.errors import GpuciError
from gpuci.execution.delivery.snapshot import Snapshot
from gpuci.execution.directories import cannot_write
from gpuci.repository.git import Git, GitFailed, bare_repository

CHUNK = 1 << 20
# `git archive` of a tree dates its files now; of a commit, as the commit. So the tree gets a commit that is
# always the same. 2000, since a zip (a wheel that a test builds) can't hold a date before 1980.
_PERSON = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "gpuci"), ("EMAIL", "gpuci"), ("DATE", "946684800 +0000"))
}


@dataclass(frozen=True)
class Archive:
    """A tar file (not compressed); `sha256` and `size` (bytes) of it. `missing`: warnings for a person."""

    path: Path
    sha256: str
    size: int
    tree: str
    missing: tuple[str, ...] = ()


def archive(snapshot: Snapshot, path: Path) -> Archive:
    """Write the tar file, whole or not at all; nothing in the tree makes git run a command or drop a file.

    Files are 0644 or 0755. Attributes of directories above ROOT (`eol`) don't count.
    Raises GpuciError if the disk is full or objects are missing.
    """
    with tempfile.TemporaryDirectory(prefix="gpuci-git-") as directory:
        git = bare_repository(Path(directory) / "git", snapshot.objects, len(snapshot.tree))
        git = Git(git.directory, {**git.environment, **_PERSON}, (*git.options, "-c", "tar.umask=0022"))
        try:
            commit = git.line("commit-tree", snapshot.tree, "-m", "gpuci")
            sha256, size = _write(git, commit, path)
        except GitFailed as error:
            raise _cannot_pack(error) from error
    return Archive(path, sha256, size, snapshot.tree, snapshot.missing)


def _write(git: Git, commit: str, path: Path) -> tuple[str, int]:
    partial = path.with_name(path.name + ".partial")
    digest, size = hashlib.sha256(), 0
    try:
        with partial.open("wb") as file:
            for chunk in _output(git, "archive", "--format=tar", commit):
                digest.update(chunk)
                size += len(chunk)
                file.write(chunk)
        os.replace(partial, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        partial.unlink(missing_ok=True)
    return digest.hexdigest(), size


def _output(git: Git, *args: str) -> Iterator[bytes]:
    """What a command prints, in pieces; its errors wait in a file, so that no pipe can fill up."""
    with tempfile.TemporaryFile() as errors, git.start(*args, stderr=errors) as process:
        assert process.stdout is not None
        try:
            while chunk := process.stdout.read(CHUNK):
                yield chunk
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            raise GitFailed(args[0], errors.read().decode("utf-8", "replace"))


def _cannot_pack(error: GitFailed) -> GpuciError:
    return GpuciError(
        f"the tree can't be packed: {error.what}",
        why="a partial clone (`--filter`) has not all files, or the repository is damaged",
        then="fetch what is missing (git fetch --refetch --no-filter), and look at `git fsck`",
    )
