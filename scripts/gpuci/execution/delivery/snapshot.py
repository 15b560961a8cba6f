"""A directory or a commit -> a git tree of what is to be delivered. I/O."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from gpuci.errors import ConfigError
from gpuci.execution.delivery import notes
from gpuci.execution.delivery.notes import Dirty
from gpuci.execution.delivery.objects import pointer_ids
from gpuci.execution.delivery.repository import locate
from gpuci.execution.delivery.working_tree import Taken, take
from gpuci.repository import listing
from gpuci.repository.git import Git, GitFailed, bare_repository

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class Snapshot:
    """A git tree, and the object directories that hold it (one of them can be in the scratch of `snapshot`).

    `files`: its paths. `notes` tell what differs from the commit, `missing` what the tree lacks.
    """

    tree: str
    objects: tuple[Path, ...]
    commit: str | None
    files: frozenset[str] = field(repr=False)
    dirty: Dirty = field(default_factory=Dirty)
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def snapshot(root: Path, scratch: Path) -> Snapshot:
    """The tree at and below `root` as it lies there: also what is not committed, without what git ignores.

    Nothing is written outside of `scratch`, which has to live until the archive is made. Submodules and
    files of Git LFS go along with their content if it is here. Raises ConfigError if git can't tell what
    belongs to the tree.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    repository = locate(root, scratch)
    taken = take(repository)
    if not taken.files:
        raise ConfigError(
            f"{root} holds no file that git would take",
            why=f"all its files are ignored in the repository {repository.top}",
            then="make it a repository of its own (`git init`), or change .gitignore",
        )
    return Snapshot(
        tree=taken.tree,
        objects=taken.objects,
        commit=taken.commit,
        files=taken.files,
        dirty=taken.dirty,
        notes=_notes(taken),
        missing=notes.missing_warnings(taken.submodules, taken.pointers),
    )


def _notes(taken: Taken) -> tuple[str, ...]:
    uncommitted = notes.dirty_note(taken.dirty)
    if taken.commit is None:
        uncommitted = (f"nothing is committed here yet: all {len(taken.files)} files are delivered as here",)
    return (
        *uncommitted,
        *notes.contents_note(len(taken.contents)),
        *notes.sparse_note(len(taken.left_out)),
        *notes.nested_note(taken.nested),
    )


def committed(git_dir: Path, sha: str, subdirectory: str) -> Snapshot:
    """The tree of a commit (its full SHA) in the repository `git_dir`, at and below `subdirectory`.

    Nothing but objects is read of the repository: no configuration, no hooks.
    Raises ConfigError for a commit or directory that isn't there, or a tree that no checkout can have.
    """
    if _SHA.fullmatch(sha) is None:
        raise ConfigError(f"{sha!a} is no full commit SHA", then="name all of its 40 digits")
    objects = (git_dir.absolute() / "objects",)
    if not objects[0].is_dir():
        raise ConfigError(f"{git_dir} is no bare git repository", why="it has no folder `objects`")
    with tempfile.TemporaryDirectory(prefix="gpuci-git-") as directory:
        git = bare_repository(Path(directory) / "git", objects, len(sha))
        tree = _tree_of(git, sha, subdirectory)
        found = listing.entries(git.listing(tree))
        pointers = pointer_ids(git, [entry.object_id for entry in found])
    _refuse(found, sha)
    return Snapshot(
        tree=tree,
        objects=objects,
        commit=sha,
        files=frozenset(entry.path for entry in found if entry.mode != listing.GITLINK),
        missing=notes.missing_warnings(
            [entry.path for entry in found if entry.mode == listing.GITLINK],
            [entry.path for entry in found if entry.object_id in pointers],
        ),
    )


def _tree_of(git: Git, sha: str, subdirectory: str) -> str:
    """The id of a commit's tree at a directory."""
    path = "" if subdirectory in ("", ".") else subdirectory.strip("/")
    try:
        tree = git.line("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}:{path}")
        kind = git.line("cat-file", "-t", tree)
    except GitFailed:
        kind = ""
    if kind != "tree":
        raise ConfigError(
            f"commit {sha} has no directory {subdirectory!a}",
            why="the commit was not fetched, or the directory is not in it",
            then="fetch the commit with all its files (no `--filter`), and check the path",
        )
    return tree


def _refuse(found: tuple[listing.Entry, ...], sha: str) -> None:
    if not found:
        raise ConfigError(f"commit {sha} holds no file there")
    forbidden = listing.forbidden_path([entry.path for entry in found])
    if forbidden is not None:
        raise ConfigError(
            f"commit {sha} holds the path {forbidden!a}, which no checkout can have",
            why="it was made by hand, to write outside of the tree where it is unpacked",
        )
