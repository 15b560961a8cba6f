"""A parsed document of what earlier runs measured -> checked values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuci.durations import needs
from gpuci.durations.needs import shown
from gpuci.errors import ConfigError
from gpuci.model import LearnedNeed
from gpuci_node.contract import SCHEMAS

LONGEST_SECONDS = 1e7  # 115 days: whatever is longer was not measured in seconds
SHOWN = 5


@dataclass(frozen=True)
class Durations:
    """What earlier runs measured: seconds by node id of an item, needs by function id or node id."""

    seconds: dict[str, float] = field(default_factory=dict)
    needs: dict[str, LearnedNeed] = field(default_factory=dict)


def parse(document: object, source: str) -> Durations:
    """Check a parsed document: a durations.json, a report.json, or a plain {node id: seconds}.

    Seconds are finite numbers from 0 to LONGEST_SECONDS. Raises ConfigError naming `source` and the
    keys with any other value (text, booleans, NaN, negative numbers).
    """
    schema = document.get("schema") if isinstance(document, dict) else None
    tests = _of_report(document, source) if schema == SCHEMAS["report"] else _tests(document, source)
    bad = [f"{nodeid!r}: {shown(value)}" for nodeid, value in tests.items() if not is_seconds(value)]
    if bad:
        more = [f"and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
        raise ConfigError(
            f"{source}: not a duration in seconds: {'; '.join(bad[:SHOWN] + more)}",
            why=f"a duration is a number from 0 to {LONGEST_SECONDS:.0f}",
            then="remove these entries; tests without a duration are estimated",
        )
    seconds = {nodeid: float(value) for nodeid, value in tests.items()}
    return Durations(seconds, {} if schema is None else _needs(document, source))


def is_seconds(value: object) -> bool:
    """Whether a value is a number of seconds that a test can have taken."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_SECONDS


def _tests(document: object, source: str) -> Mapping[str, Any]:
    tests = document
    if isinstance(document, dict) and "schema" in document:
        if document["schema"] != SCHEMAS["durations"]:
            raise ConfigError(
                f"{source}: schema is {shown(document['schema'])}, not {SCHEMAS['durations']!r}",
                then="give durations.json, the report.json of a run, or a plain map of node ids to seconds",
            )
        tests = document.get("tests")
    if not isinstance(tests, dict):
        raise ConfigError(
            f"{source} holds no map of node ids to seconds",
            then='the form is {"schema": "gpuci/durations/1", "tests": {"tests/test_a.py::test_b": 1.5}}',
        )
    return tests


def _of_report(document: Any, source: str) -> Mapping[str, Any]:
    """What a run measured. A test that took no time was not measured: it never ran, or died."""
    rows = document.get("tests")
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise ConfigError(
            f"{source} holds no list of tests with their node ids and seconds",
            why="the file was cut off, edited, or written by another version",
            then="give the report.json of a run as it is",
        )
    return {row["nodeid"]: row["seconds"] for row in rows if row["seconds"] != 0}


def _is_row(row: object) -> bool:
    return isinstance(row, dict) and isinstance(row.get("nodeid"), str) and "seconds" in row


def _needs(document: Any, source: str) -> dict[str, LearnedNeed]:
    try:
        return needs.from_document(document.get("needs", {}))
    except ValueError as error:
        raise ConfigError(
            f"{source}: {error}", then="remove the entry; a need that is not known is learned on the node"
        ) from None
