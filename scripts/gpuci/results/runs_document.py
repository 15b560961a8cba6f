"""The tries of shards <-> runs.json (schemas/runs.schema.json). Pure; checked by hand, as journals are big.

What one job knows of its shards, for the job that puts all of them together. Its records are what tests had
a part in, so that each is checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuci.errors import ConfigError
from gpuci.model import ShardRun
from gpuci.results.journal import is_number, is_record
from gpuci_node.contract import SCHEMAS, VERDICTS

_FIELDS = (
    "index", "attempt", "verdict", "wall_seconds", "queue_seconds", "problem", "node", "fate", "reason",
)  # fmt: skip


@dataclass(frozen=True)
class Runs:
    """All tries of some shards; `sha` is the commit that they tested, None for a tree that was no commit."""

    sha: str | None
    runs: tuple[ShardRun, ...]


def to_document(sha: str | None, runs: Iterable[ShardRun]) -> dict[str, Any]:
    """The JSON form, gpuci/runs/1."""
    return {"schema": SCHEMAS["runs"], "sha": sha, "runs": [_run_document(run) for run in runs]}


def from_document(document: Any) -> Runs:
    """The inverse of `to_document`; raises ConfigError that names the place of the first fault."""
    top = _mapping(document, "runs.json")
    if top.get("schema") != SCHEMAS["runs"]:
        raise _fault("schema", f"should be {SCHEMAS['runs']!r}")
    sha = top.get("sha")
    if not (sha is None or isinstance(sha, str)):
        raise _fault("sha", "should be a text or null")
    rows = top.get("runs")
    if not isinstance(rows, list):
        raise _fault("runs", "should be a list")
    return Runs(sha, tuple(_run(row, f"runs[{number}]") for number, row in enumerate(rows)))


def _run_document(run: ShardRun) -> dict[str, Any]:
    return {**{name: getattr(run, name) for name in _FIELDS}, "records": list(run.records)}


def _run(value: Any, place: str) -> ShardRun:
    row = _mapping(value, place)
    for name, (fits, words) in _CHECKS.items():
        if name not in row:
            raise _fault(f"{place}.{name}", "is missing")
        if not fits(row[name]):
            raise _fault(f"{place}.{name}", f"should be {words}")
    for number, record in enumerate(row["records"]):
        if not is_record(record):
            raise _fault(f"{place}.records[{number}]", "is no record of a journal")
    return ShardRun(**{name: row[name] for name in _FIELDS}, records=tuple(row["records"]))


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _fault(place, "should be an object")
    return value


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and is_number(value)


def _is_attempt(value: Any) -> bool:
    return _is_index(value) and value >= 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_verdict(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_fate(value: Any) -> bool:
    return value == "" or value in VERDICTS


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "index": (_is_index, "a whole number from 0 on"),
    "attempt": (_is_attempt, "a whole number from 1 on"),
    "verdict": (_is_verdict, "an object or null"),
    "wall_seconds": (is_number, "a number of seconds"),
    "queue_seconds": (is_number, "a number of seconds"),
    "problem": (_is_text, "a text"),
    "node": (_is_text, "a text"),
    "fate": (_is_fate, f"empty or one of {', '.join(VERDICTS)}"),
    "reason": (_is_text, "a text"),
    "records": (_is_list, "a list"),
}


def _fault(place: str, what: str) -> ConfigError:
    return ConfigError(
        f"runs.json: {place} {what}",
        why="the file was cut off, edited, or written by another version",
        then="run the shard again",
    )
