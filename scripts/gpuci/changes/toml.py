"""TOML text -> values. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: what needs it is unknown there, and unknown means everything
    tomllib = None  # type: ignore[assignment]

READABLE = tomllib is not None
MAX_BYTES = 20_000_000  # four times the longest lock files that are seen
DOTS = 1_000  # of a line: the time for a dotted key grows with the square of its parts
DEPTH = 50  # of tables and lists within each other; real files have less than ten


def document(data: bytes) -> dict[str, Any] | None:
    """The document; None for text that is no TOML, or that would take long to read, and with a Python that
    can't read it."""
    if tomllib is None or len(data) > MAX_BYTES or any(line.count(b".") > DOTS for line in data.splitlines()):
        return None
    try:
        found = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return found if _is_flat(found) else None


def _is_flat(document: dict[str, Any]) -> bool:
    """`[a.a.a.a.…]` nests without recursion of the parser; whoever walks through it would have one."""
    level: list[Any] = [document]
    for _ in range(DEPTH):
        level = [below for value in level for below in _inside(value)]
        if not level:
            return True
    return False


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def table(document: Any, *keys: str) -> dict[str, Any]:
    """The table at a path of keys, empty where there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}
