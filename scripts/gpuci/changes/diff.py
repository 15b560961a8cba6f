"""Two listings of trees -> the paths in which they differ. Pure.

No renames are looked for: a moved file counts under both of its names.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuci.changes.model import FileChange
from gpuci.repository.listing import FILES

Files = Mapping[str, tuple[str, str]]


def differing(base: Files, head: Files) -> tuple[FileChange, ...]:
    """The changed paths, sorted; a mode or a submodule's commit is a change too."""
    paths = sorted(path for path in {*base, *head} if base.get(path) != head.get(path))
    return tuple(FileChange(path, _kind(base.get(path), head.get(path))) for path in paths)


def _kind(before: tuple[str, str] | None, after: tuple[str, str] | None) -> str:
    if before is None:
        return "added"
    if after is None:
        return "deleted"
    return "modified" if _type(before[0]) == _type(after[0]) else "type"


def _type(mode: str) -> str:
    return "file" if mode in FILES else mode
