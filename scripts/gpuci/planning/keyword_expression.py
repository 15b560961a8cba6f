"""Whether pytest can read an expression of `-k`: told where it is given, before any node runs. Pure.

The grammar is that of pytest's src/_pytest/mark/expression.py from 7.0 to 9.x, and what one of them takes
passes. Later ones read `name(key=value)` too, which `-k` then refuses: that is for `-m` alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(r"(?P<name>[\w:+\-.\[\]\\/]+)|[^ \t]")
_OPERAND = "a name, `not` or `(` must come here"
_OPERATOR = "only `and`, `or`, `)` or the end can come here"
_NO_NAME = r"names have letters, digits and _ : + - . [ ] \ / only"
_EXCERPT = 30  # characters


class _Fault(NamedTuple):
    """A place in the expression, from 0, and what is wrong there."""

    at: int
    what: str


def expression_fault(text: str) -> str | None:
    """Why pytest can't read this as `-k`, with the place; None if it can. An empty one selects all."""
    start = len(text) - len(text.lstrip())
    fault = _first_fault(text[start:])
    if fault is None or any(_first_fault(reading) is None for reading in _old_readings(text[start:])):
        return None
    at = start + fault.at
    return f"column {at + 1}, {_shown(text, at)}: {fault.what}"


def _old_readings(text: str) -> Iterator[str]:
    """As pytest 7.0 reads it: a `-` before it all is `not`, a `:` behind it no part of it."""
    yield text.removeprefix("-")
    yield text.removesuffix(":")
    yield text.removeprefix("-").removesuffix(":")


def _first_fault(text: str) -> _Fault | None:
    """No recursion: brackets may be as many as there is room for."""
    opened: list[int] = []
    operand_due = True
    tokens = list(_TOKEN.finditer(text))
    for token in tokens:
        word, at = token[0], token.start()
        if token["name"] is None and word not in "()":
            return _Fault(at, _NO_NAME)
        if operand_due:
            if word in ("and", "or", ")"):
                return _Fault(at, _OPERAND)
            if word == "(":
                opened.append(at)
            operand_due = word in ("not", "(")
        elif word == ")" and opened:
            opened.pop()
        elif word in ("and", "or"):
            operand_due = True
        else:
            return _Fault(at, "no `(` is open" if word == ")" else _OPERATOR)
    if tokens and operand_due:
        return _Fault(len(text), _OPERAND)
    return _Fault(opened[-1], "this `(` is not closed") if opened else None


def _shown(text: str, at: int) -> str:
    """The text from a place on, or that before it where nothing follows; no control character."""
    if at < len(text):
        return f"at {text[at : at + _EXCERPT]!a}"
    return f"after {text[-_EXCERPT:]!a}"
