"""What git prints of trees, as values. Names are UTF-8 with surrogate escapes, as Python has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GITLINK = "160000"
LINK = "120000"
FILES = frozenset({"100644", "100755", "100664"})  # the last one by old versions of git
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: a pointer has less than 1024 bytes, this first.
POINTER = b"version https://git-lfs.github.com/spec/v1\n"
POINTER_SIZES = range(len(POINTER), 1024)
# What a checkout would never write, and an archive should not either.
_FORBIDDEN = re.compile(r"(?:^|/)(?:\.{0,2}|\.git)(?:/|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Entry:
    """A file, a symbolic link or a submodule of a tree; `path` is relative to the tree."""

    mode: str
    object_id: str
    path: str


@dataclass(frozen=True)
class Change:
    """A path in which two trees differ; `kind` is git's letter (A, M, D, T), `old` the object before."""

    kind: str
    old: str
    path: str


def decode(name: bytes) -> str:
    """A path as git prints it."""
    return name.decode("utf-8", "surrogateescape")


def encode(name: str) -> bytes:
    """A path as git reads it."""
    return name.encode("utf-8", "surrogateescape")


def parts(output: bytes) -> list[str]:
    """The names in a list that ends each with a NUL."""
    return [decode(name) for name in output.split(b"\0")[:-1]]


def entries(output: bytes) -> tuple[Entry, ...]:
    """`git ls-tree -r -z`, or `git ls-files -s -z`: both have mode first, then the name behind a tab."""
    found = []
    for line in parts(output):
        facts, _, path = line.partition("\t")
        mode, *rest = facts.split(" ")
        found.append(Entry(mode, next(word for word in rest if len(word) >= 40), path))
    return tuple(found)


def changes(output: bytes) -> tuple[Change, ...]:
    """`git diff-tree -r -z --raw --no-renames`, or `git diff-files` in the same form."""
    words = iter(parts(output))
    return tuple(Change(facts.split(" ")[4][0], facts.split(" ")[2], next(words)) for facts in words)


def index_lines(found: Iterable[Entry]) -> bytes:
    """The input of `git update-index -z --index-info`; mode 0 removes a path."""
    return b"".join(encode(f"{entry.mode} {entry.object_id}\t{entry.path}") + b"\0" for entry in found)


def removals(paths: Iterable[str], hash_length: int) -> bytes:
    """The same, for paths that are to go."""
    return index_lines(Entry("0", "0" * hash_length, path) for path in paths)


def small_objects(output: bytes) -> list[str]:
    """Ids that `git cat-file --batch-check` gives a size which a Git LFS pointer can have."""
    rows = (line.split(" ") for line in output.decode().splitlines())
    return [row[0] for row in rows if len(row) == 3 and row[1] == "blob" and int(row[2]) in POINTER_SIZES]


def pointer_objects(output: bytes) -> Iterator[str]:
    """Ids of the Git LFS pointers among what `git cat-file --batch` prints."""
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        object_id, _, size = output[at:end].decode().split(" ")
        if output.startswith(POINTER, end + 1):
            yield object_id
        at = end + 1 + int(size) + 1


def forbidden_path(paths: Iterable[str]) -> str | None:
    """A path that no checkout can have: `..` or `.git` in it, or a file that is a directory too."""
    files = set()
    for path in paths:
        if _FORBIDDEN.search(path) or path in files:
            return path
        files.add(path)
    for path in files:
        above = path.rpartition("/")[0]
        while above:
            if above in files:
                return above
            above = above.rpartition("/")[0]
    return None
