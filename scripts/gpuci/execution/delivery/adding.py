"""Brings our copy of an index to what lies in the working tree. I/O.

Plumbing, not `git add --all`: that one stops at a repository inside without a commit, and tells nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from gpuci.errors import ConfigError
from gpuci.execution.delivery.repository import Repository
from gpuci.repository import listing
from gpuci.repository.git import GitFailed
from gpuci.repository.listing import Entry

OURS = ".gpuci"  # what runs leave below ROOT


def unhide(repository: Repository) -> list[str]:
    """Forget which files git was told not to look at; returns those that may be absent on purpose."""
    lines = listing.parts(repository.git.run("ls-files", "-v", "-z", *repository.inside))
    sparse = [line[2:] for line in lines if line[0] in "Ss"]
    assumed = [line[2:] for line in lines if line[0].islower()]
    for option, paths in (("--no-skip-worktree", sparse), ("--no-assume-unchanged", assumed)):
        if paths:
            repository.git.run("update-index", "-z", option, "--stdin", stdin=_names(paths))
    return sparse


def add_all(repository: Repository) -> list[str]:
    """Add, change and remove what differs; returns the repositories inside that are no submodules."""
    differing = _differing(repository)
    others = _listed(repository, "--others", "--exclude-standard")
    gone = {change.path for change in differing if change.kind == "D"}
    there = {change.path for change in differing} - gone | {path for path in others if not path.endswith("/")}
    own = {path for path in (*there, *_listed(repository)) if _is_own(repository, path)}
    drop(repository, {*gone, *own, *_conflicts_elsewhere(repository)})
    _add(repository, there - own)
    return [path.rstrip("/") for path in others if path.endswith("/") and not _is_own(repository, path)]


def indexed(repository: Repository) -> tuple[Entry, ...]:
    """All that the index holds at and below ROOT."""
    return listing.entries(repository.git.run("ls-files", "-s", "-z", *repository.inside))


def drop(repository: Repository, paths: Iterable[str]) -> None:
    """Remove paths from the index, whatever lies there now."""
    lines = listing.removals(sorted(paths), repository.hash_length)
    if lines:
        repository.git.run("update-index", "-z", "--index-info", stdin=lines)


def replace_entries(repository: Repository, entries: Iterable[Entry]) -> None:
    """Give paths another object."""
    repository.git.run("update-index", "-z", "--index-info", stdin=listing.index_lines(entries))


def _differing(repository: Repository) -> tuple[listing.Change, ...]:
    with contextlib.suppress(GitFailed):  # it tells of conflicts; adding the files resolves them
        repository.git.run("update-index", "-q", "--refresh")
    options = ("-z", "--raw", "--no-renames", "--ignore-submodules=dirty")
    return listing.changes(repository.git.run("diff-files", *options, *repository.inside))


def _add(repository: Repository, paths: set[str]) -> None:
    options = ("-z", "--add", "--remove", "--replace", "--stdin")
    try:
        repository.git.run("update-index", *options, stdin=_names(sorted(paths)))
    except GitFailed as error:
        raise ConfigError(
            f"a file of {repository.top} can't be taken: {error.what}",
            why="a file that can't be read here would be missing on the cluster",
            then="make it readable, or have git ignore it",
        ) from error


def _conflicts_elsewhere(repository: Repository) -> set[str]:
    """Paths outside of ROOT that a merge left open: they would keep git from writing any tree."""
    found = listing.entries(repository.git.run("ls-files", "-u", "-z"))
    return {entry.path for entry in found if not entry.path.startswith(repository.prefix)}


def _listed(repository: Repository, *options: str) -> list[str]:
    return listing.parts(repository.git.run("ls-files", "-z", *options, *repository.inside))


def _is_own(repository: Repository, path: str) -> bool:
    own = repository.prefix + OURS
    return path == own or path.startswith(own + "/")


def _names(paths: Iterable[str]) -> bytes:
    return b"".join(listing.encode(path) + b"\0" for path in paths)
