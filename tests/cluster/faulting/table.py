"""Results -> a table of at most 80 columns, and what is not as expected. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COLUMNS = ("verdict", "exit", "tests", "tries", "log")


def differences(result: Mapping[str, Any], expected: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """How a result differs from the expected column; a list there means one of these."""
    name = label(result)
    if name not in expected:
        return [f"no expected column for {name}", *result["problems"]]
    found = []
    for column, wanted in expected[name].items():
        got = result["observed"].get(column)
        if got not in (wanted if isinstance(wanted, list) else [wanted]):
            found.append(f"{column} {got}, expected {_words(wanted)}")
    return [*found, *result["problems"]]


def label(result: Mapping[str, Any]) -> str:
    """`row` or `row:variant`."""
    return f"{result['row']}:{result['variant']}" if result["variant"] else str(result["row"])


def render(results: Sequence[Mapping[str, Any]], expected: Mapping[str, Mapping[str, Any]]) -> str:
    """The table: a line a row and variant, then the runs that are not as expected."""
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        by_label.setdefault(label(result), []).append(result)
    lines = [f"{'fault':34}{'runs':>5}{'good':>5}{'median s':>9}  expected", "-" * 78]
    bad = []
    for name, group in by_label.items():
        red = [(result, found) for result in group if (found := differences(result, expected))]
        seconds = statistics.median(result["seconds"] for result in group)
        wanted = _expectation(expected.get(name, {}))
        lines.append(f"{name[:33]:34}{len(group):5}{len(group) - len(red):5}{seconds:9.1f}  {wanted}"[:80])
        bad += red
    runs = f"{len(results)} runs, {len(results) - len(bad)} as expected"
    return "\n".join([*lines, "-" * 78, runs, *_red(bad), ""])


def _expectation(wanted: Mapping[str, Any]) -> str:
    return f"{_words(wanted.get('verdict', '?'))}, {_words(wanted.get('tests', '?'))}"


def _words(wanted: Any) -> str:
    return "|".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted or "none")


def _red(bad: Iterable[tuple[Mapping[str, Any], Sequence[str]]]) -> list[str]:
    lines = []
    for result, found in bad:
        lines.append(f"\n{label(result)} seed {result['seed']}: {result['planted']}")
        lines += [f"  {text}" for text in found]
    return lines
