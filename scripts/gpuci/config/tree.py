"""A configuration as read: values with their places, and overlays of them. Pure, standard library only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuci.errors import ConfigError

_SHOWN_PROBLEMS = 100


@dataclass(frozen=True, order=True)
class Place:
    """Where something stands; lines and columns count from 1, 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        name = printable(self.file)
        return f"{name}:{self.line}:{self.column}" if self.line else name


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong, in words that a person can act on."""

    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Scalar:
    """A single value: `value` by YAML 1.2's core schema, `text` as it was written."""

    place: Place
    value: bool | int | float | str | None
    text: str


@dataclass(frozen=True)
class Sequence:
    """A list."""

    place: Place
    items: tuple[Tree, ...]


@dataclass(frozen=True)
class Branch:
    """A mapping; `keys` are the places of its keys."""

    place: Place
    entries: Mapping[str, Tree]
    keys: Mapping[str, Place]


Tree = Scalar | Sequence | Branch
Path = tuple[str | int, ...]


class ProblemsFound(Exception):
    """Carries problems out of a reading that can't go on."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        super().__init__()
        self.problems = tuple(problems)


def overlay(base: Tree, over: Tree) -> Tree:
    """Lay one tree over another: mappings merge, everything else is replaced.

    An empty value (null) in `over` stays as an empty value, which later stages take as "not set".
    """
    if not (isinstance(base, Branch) and isinstance(over, Branch)):
        return over
    entries = dict(base.entries)
    for key, value in over.entries.items():
        entries[key] = overlay(entries[key], value) if key in entries else value
    return Branch(over.place, entries, {**base.keys, **over.keys})


def place_of(tree: Tree, path: Path) -> Place:
    """Where the value at `path` stands; for a path that leads nowhere, the last value on the way."""
    for step in path:
        if isinstance(tree, Branch) and step in tree.entries:
            tree = tree.entries[str(step)]
        elif isinstance(tree, Sequence) and isinstance(step, int) and step < len(tree.items):
            tree = tree.items[step]
        else:
            break
    return tree.place


def key_place(tree: Tree, path: Path) -> Place:
    """Where the key that ends `path` stands."""
    for step in path[:-1]:
        if isinstance(tree, Branch):
            tree = tree.entries[str(step)]
    return tree.keys[str(path[-1])] if isinstance(tree, Branch) else tree.place


def printable(text: str) -> str:
    """The text with everything that a terminal could act on, or nobody could see, as an escape."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def quoted(text: str, limit: int = 60) -> str:
    """A value as a message shows it: on one line, in quotes, cut at `limit` characters."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return '"' + printable(cut).replace('"', '\\"') + '"'


def error_of(problems: Iterable[Problem]) -> ConfigError:
    """One error for all problems, in the order of their places."""
    lines = [str(problem) for problem in sorted(set(problems))]
    rest = len(lines) - _SHOWN_PROBLEMS
    shown = [*lines[:_SHOWN_PROBLEMS], f"… and {rest} more"] if rest > 0 else lines
    noun = "problem" if len(lines) == 1 else "problems"
    return ConfigError(
        "\n".join([f"{len(lines)} {noun} in the configuration", *(f"  {line}" for line in shown)]),
        then="correct the lines named; docs/configuration.md lists every setting",
    )
