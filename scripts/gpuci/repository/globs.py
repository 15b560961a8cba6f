"""Paths below ROOT and globs of them: `*`, `?`, `[…]` within a name, `**` across directories. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_PIECE = re.compile(r"\*+|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)


def above(path: str) -> Iterator[str]:
    """The path, the directories above it, and ROOT."""
    while path not in ("", "."):
        yield path
        path = path.rpartition("/")[0]
    yield "."


def holds(directory: str, path: str) -> bool:
    """Whether a directory (or file) is, or is above, a path."""
    return directory in (".", path) or path.startswith(directory + "/")


def matches(pattern: str, path: str) -> bool:
    """Whether a glob names a path, or a directory above it; `.` names everything."""
    return bool(_compiled(pattern)[0].match(path))


def names(pattern: str, path: str) -> bool:
    """Whether a glob names exactly this path; `**` stands for any number of directories, also none."""
    return bool(_compiled(pattern)[1].fullmatch(path))


def first_match(patterns: Sequence[str], path: str) -> str | None:
    """The first of the globs that names a path or a directory above it."""
    return next((pattern for pattern in patterns if matches(pattern, path)), None)


def literal(path: str) -> str:
    """The glob that names just this path, and what is below it."""
    return re.sub(r"[*?[]", r"[\g<0>]", path)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    parts = [part for index, part in enumerate(parts) if part != "**" or parts[index - 1 : index] != ["**"]]
    if not parts:
        return re.compile(""), re.compile(r"\.")
    text = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            # `a/**` is `a` and all below; elsewhere any number of directories with their slashes.
            text = (text.removesuffix("/") + "(?:/.*)?" if text else ".*") if last else text + "(?:.*/)?"
        else:
            text += "".join(_piece(piece) for piece in _PIECE.findall(part)) + ("" if last else "/")
    return re.compile(f"(?:{text})(?:/|\\Z)", re.DOTALL), re.compile(text, re.DOTALL)


def _piece(piece: str) -> str:
    if piece.startswith("*"):
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    return _brackets(piece) if len(piece) > 1 else re.escape(piece)


def _brackets(piece: str) -> str:
    """`[…]` as a set of characters, as in fnmatch; what makes no set (`[z-a]`) stands for itself."""
    negated = piece[1] == "!"
    inside = "".join(char if char == "-" else re.escape(char) for char in piece[1 + negated : -1])
    text = f"(?!/)[{'^' if negated else ''}{inside}]"
    try:
        re.compile(text)
    except re.error:
        return re.escape(piece)
    return text
