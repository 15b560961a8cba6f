"""A parsed durations document -> a checked dict. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gpuci.errors import ConfigError
from gpuci_node.contract import SCHEMAS

LONGEST_SECONDS = 1e7  # 115 days: whatever is longer was not measured in seconds
SHOWN = 5


def parse(document: object, source: str) -> dict[str, float]:
    """Check a parsed document: {"schema", "tests": {node id: seconds}} or {node id: seconds}.

    Seconds are finite numbers from 0 to LONGEST_SECONDS. Raises ConfigError naming `source` and the
    keys with any other value (text, booleans, NaN, negative numbers).
    """
    tests = _tests(document, source)
    bad = [f"{nodeid!r}: {_shorten(value)}" for nodeid, value in tests.items() if not is_seconds(value)]
    if bad:
        more = [f"and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
        raise ConfigError(
            f"{source}: not a duration in seconds: {'; '.join(bad[:SHOWN] + more)}",
            why=f"a duration is a number from 0 to {LONGEST_SECONDS:.0f}",
            then="remove these entries; tests without a duration are estimated",
        )
    return {nodeid: float(value) for nodeid, value in tests.items()}  # type: ignore[arg-type]


def is_seconds(value: object) -> bool:
    """Whether a value is a number of seconds that a test can have taken."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_SECONDS


def _tests(document: object, source: str) -> Mapping[str, object]:
    tests = document
    if isinstance(document, dict) and "schema" in document:
        if document["schema"] != SCHEMAS["durations"]:
            raise ConfigError(
                f"{source}: schema is {_shorten(document['schema'])}, not {SCHEMAS['durations']!r}",
                then="give durations.json, or a plain map of node ids to seconds",
            )
        tests = document.get("tests")
    if not isinstance(tests, dict):
        raise ConfigError(
            f"{source} holds no map of node ids to seconds",
            then='the form is {"schema": "gpuci/durations/1", "tests": {"tests/test_a.py::test_b": 1.5}}',
        )
    return tests


def _shorten(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."
