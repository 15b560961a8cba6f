"""TOML text -> values. Pure."""

from __future__ import annotations

from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: what needs it is unknown there, and unknown means everything
    tomllib = None  # type: ignore[assignment]

READABLE = tomllib is not None


def document(data: bytes) -> dict[str, Any] | None:
    """The document; None for text that is no TOML, and with a Python that can't read it."""
    if tomllib is None:
        return None
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def table(document: Any, *keys: str) -> dict[str, Any]:
    """The table at a path of keys, empty where there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}
