"""A tree of a git repository -> what a selection looks at. I/O: runs git.

`Source` reads the objects; with objects that are not here yet it can bring them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuci.changes import projects
from gpuci.changes.diff import differing
from gpuci.changes.locks import NAME as LOCK_NAME
from gpuci.changes.locks import compare
from gpuci.changes.model import FileChange, Lock, Side
from gpuci.errors import ConfigError
from gpuci.repository.blobs import contents
from gpuci.repository.git import Git
from gpuci.repository.links import destination
from gpuci.repository.listing import FILES, LINK, Entry, decode, entries

Files = Mapping[str, tuple[str, str]]
# Of the files of both trees that are read. A repository of 200 packages has less than one million.
MOST_BYTES = 64_000_000


@dataclass(frozen=True)
class Source:
    """Where objects are read from; `bring` is called before, with the ids of all that will be."""

    git: Git
    bring: Callable[[Sequence[str]], None] = lambda object_ids: None

    def files(self, tree: str) -> Files:
        """Path -> (mode, object id) of all that is in a tree."""
        return listed(entries(self.git.listing(tree)))

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        """The content of each object. Raises ConfigError for more than MOST_BYTES in all."""
        wanted = sorted(set(object_ids))
        self.bring(wanted)
        found: dict[str, bytes] = {}
        left = MOST_BYTES
        for object_id, data in zip(wanted, contents(self.git, wanted), strict=True):
            found[object_id] = data
            left -= len(data)
            if left < 0:
                raise _too_much()
        return found


def _too_much() -> ConfigError:
    return ConfigError(
        f"the files that say what packages need have more than {MOST_BYTES:,} bytes",
        why="they were made to exhaust who reads them, or are no project files",
        then="look at the pyproject.toml, setup.py, pytest.ini and uv.lock that the commit adds",
    )


def listed(found: Iterable[Entry]) -> Files:
    """The entries of a tree by path."""
    return {entry.path: (entry.mode, entry.object_id) for entry in found}


@dataclass(frozen=True)
class Compared:
    """Two trees, what differs, and the changed lock files (None: can't be compared)."""

    base: Side
    head: Side
    changed: tuple[FileChange, ...]
    locks: Mapping[str, Lock | None]


def compare_trees(source: Source, base: Files, head: Files) -> Compared:
    """Read all that a selection needs of two listings of `Source.files`."""
    changed = differing(base, head)
    locks = [path for path in (one.path for one in changed) if _name(path) == LOCK_NAME]
    wanted = {key: object_id for files in (base, head) for key, object_id in _described(files).items()}
    ids = {*wanted.values(), *(files[path][1] for files in (base, head) for path in locks if path in files)}
    data = source.contents(ids)
    return Compared(
        base=_side(base, data),
        head=_side(head, data),
        changed=changed,
        locks={path: _lock(path, base, head, data) for path in locks},
    )


def telling(files: Files) -> list[str]:
    """The ids of the objects that a selection reads of a tree."""
    return list(_described(files).values())


def _described(files: Files) -> dict[tuple[str, str], str]:
    """The objects that say something of a tree: files of projects, and links."""
    return {
        (path, object_id): object_id
        for path, (mode, object_id) in files.items()
        if mode == LINK or (mode in FILES and _name(path) in projects.READ)
    }


def _side(files: Files, data: Mapping[str, bytes]) -> Side:
    links = {path: decode(data[object_id]) for path, (mode, object_id) in files.items() if mode == LINK}
    described: dict[str, dict[str, bytes]] = {}
    left = MOST_BYTES  # once more, by path: one object can be the content of many
    for path, object_id in _described(files):
        if path not in links:
            left -= len(data[object_id])
            if left < 0:
                raise _too_much()
            described.setdefault(path.rpartition("/")[0] or ".", {})[_name(path)] = data[object_id]
    found = {
        directory: projects.project(directory, named)
        for directory, named in described.items()
        if any(marker in named for marker in projects.MARKERS)
    }
    return Side(files, found, {path: destination(path, links) for path in links})


def _lock(path: str, base: Files, head: Files, data: Mapping[str, bytes]) -> Lock | None:
    if path not in base or path not in head or not {base[path][0], head[path][0]} <= FILES:
        return None
    return compare(path.rpartition("/")[0] or ".", data[base[path][1]], data[head[path][1]])


def _name(path: str) -> str:
    return path.rpartition("/")[2]
