"""Workflow commands and the files of a step as text. Pure.

Source: docs.github.com, "Workflow commands for GitHub Actions"; actions/toolkit escapes data and properties
so; actions/runner (ActionCommand.cs) takes `::name::` at the start of a line, behind white space too, and
`##[name]` anywhere in a line.
"""

from __future__ import annotations

import re

ANNOTATION_CHARACTERS = 4096
_OURS = re.compile(r"^(\s*)::", re.MULTILINE)


def escape_data(text: str) -> str:
    """The text behind `::name::` in one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """A property's value between `::name ` and `::`."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def command(name: str, text: str, **properties: str | int) -> str:
    """One line that the runner obeys; properties that are empty or 0 are left out."""
    told = ",".join(f"{key}={escape_property(str(value))}" for key, value in properties.items() if value)
    return f"::{name}{' ' if told else ''}{told}::{escape_data(break_commands(text))}"


def break_commands(text: str) -> str:
    """Text in which no line is a workflow command of either syntax; it reads the same to people."""
    return _OURS.sub("\\1: :", text.replace("##[", "## ["))


def key_value(name: str, value: str, delimiter: str) -> str:
    """An entry of GITHUB_OUTPUT or GITHUB_ENV; raises ValueError if a text holds the (random) delimiter."""
    if delimiter in value or delimiter in name:
        raise ValueError("the delimiter stands in the value")
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
