"""A working tree as it lies there -> a git tree, submodules and content of Git LFS included. I/O.

`git stash create` would leave new files out. So the files are added to a copy of the index, and the objects
that this makes are written to our own directory: the user's repository stays as it is.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuci.execution.delivery.adding import add_all, drop, indexed, replace_entries, unhide
from gpuci.execution.delivery.notes import Dirty
from gpuci.execution.delivery.objects import pointer_ids
from gpuci.execution.delivery.repository import Repository, locate
from gpuci.repository import listing
from gpuci.repository.git import GitFailed
from gpuci.repository.listing import Change, Entry


@dataclass(frozen=True)
class Taken:
    """What was taken of a working tree; all paths are relative to ROOT.

    `contents`: files of Git LFS with their content, `pointers` those without, `submodules` those without,
    `nested` repositories that are no submodules, `left_out` files outside of a sparse checkout.
    """

    tree: str
    objects: tuple[Path, ...]
    commit: str | None
    files: frozenset[str]
    dirty: Dirty = field(default_factory=Dirty)
    contents: frozenset[str] = frozenset()
    pointers: frozenset[str] = frozenset()
    submodules: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()


def take(repository: Repository) -> Taken:
    """Take what lies at and below ROOT; where git would take no file, `tree` is empty."""
    hidden = unhide(repository)
    nested = add_all(repository)
    found = indexed(repository)
    pointers = pointer_ids(repository.git, [entry.object_id for entry in found])
    pointing = [entry for entry in found if entry.object_id in pointers]
    left_out = set(hidden) - {entry.path for entry in found}
    differing = _differing(repository, left_out)
    contents = _take_contents(repository, pointing) | _had_pointers(repository, differing, pointing)
    inner = {entry.path: _submodule(repository, entry) for entry in found if entry.mode == listing.GITLINK}
    taken = Taken(
        tree="",
        objects=repository.objects,
        commit=_commit(repository),
        files=_below(repository, (entry.path for entry in found if entry.mode != listing.GITLINK)),
        dirty=_dirty(repository, differing, contents),
        contents=_below(repository, contents),
        pointers=_below(repository, {entry.path for entry in pointing} - contents),
        submodules=_below(repository, (path for path, there in inner.items() if there is None)),
        nested=_below(repository, nested),
        left_out=_below(repository, left_out),
    )
    for path, there in inner.items():
        taken = taken if there is None else _with_submodule(repository, taken, path, there)
    return replace(taken, tree=_write(repository)) if taken.files else taken


def _commit(repository: Repository) -> str | None:
    try:
        return repository.git.line("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    except GitFailed:
        return None


def _differing(repository: Repository, left_out: Collection[str]) -> list[Change]:
    """Where the index differs from the commit; nothing differs from no commit."""
    try:
        lines = repository.git.run(
            "diff-index", "--cached", "-z", "--raw", "--no-renames", "HEAD", *repository.inside
        )
    except GitFailed:
        return []
    return [change for change in listing.changes(lines) if change.path not in left_out]


def _dirty(repository: Repository, differing: Iterable[Change], contents: Collection[str]) -> Dirty:
    def of(kinds: str) -> tuple[str, ...]:
        return tuple(
            change.path.removeprefix(repository.prefix)
            for change in differing
            if change.kind in kinds and not (change.kind == "M" and change.path in contents)
        )

    return Dirty(changed=of("MT"), new=of("A"), removed=of("D"))


def _take_contents(repository: Repository, pointing: Iterable[Entry]) -> set[str]:
    """Put the content of Git LFS into the index where it lies in the tree; returns those paths."""
    here = [entry for entry in pointing if _has_content(repository.top / entry.path)]
    if not here:
        return set()
    names = b"".join(listing.encode(entry.path) + b"\n" for entry in here)
    ids = (
        repository.git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names).decode().split()
    )
    new = (replace(entry, object_id=object_id) for entry, object_id in zip(here, ids, strict=True))
    replace_entries(repository, new)
    return {entry.path for entry in here}


def _has_content(path: Path) -> bool:
    """Whether a file is there that is no pointer. (A name with a newline can't be told to `hash-object`.)"""
    try:
        if "\n" in str(path) or not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return file.read(len(listing.POINTER)) != listing.POINTER
    except OSError:
        return False


def _had_pointers(repository: Repository, differing: Iterable[Change], pointing: Iterable[Entry]) -> set[str]:
    """Changed files whose commit has a pointer, and the index the content: it took them by their dates."""
    now = {entry.path for entry in pointing}
    changed = [change for change in differing if change.kind == "M" and change.path not in now]
    pointers = pointer_ids(repository.git, [change.old for change in changed])
    return {change.path for change in changed if change.old in pointers}


def _submodule(repository: Repository, entry: Entry) -> Taken | None:
    """What lies in a submodule, None if it is not checked out."""
    directory = repository.top / entry.path
    if not (directory / ".git").exists():
        return None
    return take(locate(directory, repository.scratch))


def _with_submodule(repository: Repository, taken: Taken, path: str, inner: Taken) -> Taken:
    """The same with a submodule's tree in the place of its commit."""
    drop(repository, [path])
    if inner.tree:
        git = repository.borrowing(inner.objects)
        git.run("read-tree", f"--prefix={path}/", inner.tree)
    place = path.removeprefix(repository.prefix) + "/"

    def joined(outer: Iterable[str], more: Iterable[str]) -> frozenset[str]:
        return frozenset((*outer, *(place + name for name in more)))

    old, new = taken.dirty, inner.dirty
    return replace(
        taken,
        objects=tuple(dict.fromkeys((*taken.objects, *inner.objects))),
        files=joined(taken.files, inner.files),
        dirty=Dirty(
            (*old.changed, *(place + name for name in new.changed)),
            (*old.new, *(place + name for name in new.new)),
            (*old.removed, *(place + name for name in new.removed)),
        ),
        contents=joined(taken.contents, inner.contents),
        pointers=joined(taken.pointers, inner.pointers),
        submodules=joined(taken.submodules, inner.submodules),
        nested=joined(taken.nested, inner.nested),
        left_out=joined(taken.left_out, inner.left_out),
    )


def _write(repository: Repository) -> str:
    """The tree of the index at ROOT; objects of submodules, or a partial clone, may be out of its reach."""
    place = (f"--prefix={repository.prefix}",) if repository.prefix else ()
    return repository.git.line("write-tree", "--missing-ok", *place)


def _below(repository: Repository, paths: Iterable[str]) -> frozenset[str]:
    return frozenset(path.removeprefix(repository.prefix) for path in paths)
