"""`modes` of the configuration -> the mode of a path or node id. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache


class PathModes:
    """The entries of `modes`, looked up by parts: the longest one that is an id or lies above it counts."""

    def __init__(self, entries: Sequence[tuple[str, str]]) -> None:
        self._entries = {path_parts(path): (path, mode) for path, mode in entries}

    def of(self, nodeid: str) -> tuple[str, str] | None:
        """The entry that counts, as it is written, and its mode."""
        parts = path_parts(nodeid)
        above = (parts[:length] for length in range(len(parts), -1, -1))
        return next((self._entries[prefix] for prefix in above if prefix in self._entries), None)

    def mode(self, nodeid: str) -> str:
        """The mode, `normal` where no entry says otherwise."""
        found = self.of(nodeid)
        return "normal" if found is None else found[1]

    def exceptions(self, path: str) -> list[str]:
        """The ids in a file that are skipped where the file is not, or run where it is skipped.

        Without those that have an exception of their own below them.
        """
        parts = path_parts(path)
        skipped = self.mode(path) == "skip"
        inside = [
            ("::".join((path, *entry[len(parts) :])), mode == "skip")
            for entry, (_, mode) in self._entries.items()
            if len(entry) > len(parts) and entry[: len(parts)] == parts
        ]
        usual = [nodeid for nodeid, skip in inside if skip == skipped]
        return [
            nodeid
            for nodeid, skip in inside
            if skip != skipped and not any(other.startswith(f"{nodeid}::") for other in usual)
        ]


@lru_cache(maxsize=16)
def path_modes(entries: tuple[tuple[str, str], ...]) -> PathModes:
    """The PathModes of a configuration, made once."""
    return PathModes(entries)


@lru_cache(maxsize=4096)
def _slashed(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))


def path_parts(nodeid: str) -> tuple[str, ...]:
    """`a/b.py::C::d` -> (a, b.py, C, d)."""
    path, _, rest = nodeid.partition("::")
    return (*_slashed(path), *rest.split("::")) if rest else _slashed(path)
