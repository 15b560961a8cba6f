"""Text of ini and TOML files -> the section that pytest reads. Pure.

The ini dialect is that of `iniconfig`, which pytest uses: comments are whole lines, a line that starts with
white space continues the value before it, names keep their case.
"""

from __future__ import annotations

import ast
import re
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = None  # type: ignore[assignment]

_HEADER = re.compile(r"^\[(?P<name>[^\]]*)\]\s*(?:[#;].*)?$")
_TABLE = re.compile(r"^\s*\[\s*(?P<name>[^\[\]]+?)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*(?P<key>[A-Za-z0-9_-]+|"[^"]*"|'[^']*')\s*=\s*(?P<value>.*)$""")


def ini_section(text: str, section: str) -> dict[str, str] | None:
    """The names and values of `[section]`, or None if there is no such section."""
    values: dict[str, str] | None = None
    inside = False
    last: str | None = None
    for line in text.lstrip("\ufeff").splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        header = _HEADER.match(line.rstrip())
        if header:
            inside, last = header["name"] == section, None
            values = values or {} if inside else values
        elif inside and values is not None:
            last = _ini_line(line, last, values)
    return values


def _ini_line(line: str, last: str | None, values: dict[str, str]) -> str | None:
    if line[0].isspace() and last is not None:
        values[last] = f"{values[last]}\n{line.strip()}"
        return last
    name, separator, value = line.partition("=")
    if not separator or ":" in name:
        name, separator, value = line.partition(":")
    if not separator:
        return last
    values[name.strip()] = value.strip()
    return name.strip()


def toml_document(text: str) -> dict[str, Any] | None:
    """A TOML document as nested mappings, or None if it isn't one."""
    if tomllib is None:
        return toml_subset(text)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def toml_subset(text: str) -> dict[str, Any]:
    """What pytest's tables need of TOML: strings, numbers, booleans and lists of them. For Python 3.10.

    Values it doesn't understand are left out.
    """
    document: dict[str, Any] = {}
    table = document
    lines = iter(text.lstrip("\ufeff").splitlines())
    for line in lines:
        header = _TABLE.match(line)
        if header:
            table = document
            for part in header["name"].split("."):
                table = table.setdefault(part.strip().strip("\"'"), {})
                if not isinstance(table, dict):
                    return document
            continue
        pair = _KEY.match(line)
        if pair:
            value = _toml_value(pair["value"], lines)
            if value is not None:
                table[pair["key"].strip("\"'")] = value
    return document


def _toml_value(text: str, more: Any) -> Any:
    while True:
        try:
            return ast.literal_eval(_python_literal(text))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
        opened = text.lstrip().startswith(("[", '"""', "'''"))
        following = next(more, None) if opened and len(text) < 100_000 else None
        if following is None:
            return None
        text = f"{text}\n{following}"


def _python_literal(text: str) -> str:
    """TOML's strings and lists are Python's, but for `true`, `false`, and a newline after `\"\"\"`."""
    text = re.sub(r"\btrue\b(?=\s*(?:[,\]#]|$))", "True", text.strip())
    text = re.sub(r"\bfalse\b(?=\s*(?:[,\]#]|$))", "False", text)
    text = re.sub(r"^('''|\"\"\")\n", r"\1", text)
    return re.sub(r"^'(?!'')", "r'", text)
