"""Paths as configurations name them: below ROOT, with slashes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def path_fault(path: str) -> str | None:
    """Why this is no path below ROOT, or None if it is one."""
    if not path:
        return "is empty"
    if _CONTROL.search(path):
        return "holds a control character"
    if "\\" in path:
        return "holds a backslash: write `/` between directories"
    if path.startswith("/") or tidy_path(path).startswith("~"):
        return "must be relative to ROOT"
    if ".." in path.split("/"):
        return "leaves ROOT by `..`"
    return None


def tidy_path(path: str) -> str:
    """The path without `./`, doubled slashes and a slash at the end; ROOT itself is `.`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(parts) or "."


def tidy_node_id(node_id: str) -> str:
    """The same for a node id, whose part after `::` stays as it is."""
    path, separator, rest = node_id.partition("::")
    return tidy_path(path) + separator + rest


def unique(items: Iterable[str]) -> tuple[str, ...]:
    """The items without repetition, in the order of their first appearance."""
    return tuple(dict.fromkeys(items))
