"""What a person should know beside the outcomes, one line per kind. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuci.model import ShardRun, TestResult
from gpuci.results.facts import Facts
from gpuci.results.journal import Record
from gpuci.results.needs import skips_again
from gpuci.results.ownership import Ownership
from gpuci.results.verdict import shard_name

EXAMPLES = 5


def find_warnings(
    own: Ownership, results: Sequence[TestResult], runs: Sequence[ShardRun], facts: Facts
) -> tuple[str, ...]:
    """The warnings of a run, without escaping: test ids and notes in them are untrusted text."""
    missing = [result.nodeid for result in results if result.outcome == "not_collected"]
    unplanned = [result.nodeid for result in results if result.unplanned]
    notes = [(run, record) for run in runs for record in run.records if record["kind"] == "note"]
    lines = [
        _counted(missing, "planned from source, but not collected by pytest"),
        _counted(unplanned, "not known at planning time, seen on the node only"),
        _counted(skips_again(own, facts, runs), "skipped for lack of GPUs, even with all of the node's"),
        *_note_lines(own, notes),
        *_foreign_lines(facts.foreign),
    ]
    return tuple(line for line in lines if line)


def _counted(names: Iterable[str], what: str) -> str:
    unique = list(dict.fromkeys(names))
    if not unique:
        return ""
    return f"{what} ({_plural(len(unique), 'test')}): {_examples(unique)}"


def _examples(names: Sequence[str]) -> str:
    more = f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else ""
    return ", ".join(names[:EXAMPLES]) + more


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _note_lines(own: Ownership, notes: Iterable[tuple[ShardRun, Record]]) -> list[str]:
    """Notes that warn, equal texts once, with the tests, files or else shards that they are about."""
    about: dict[str, dict[str, None]] = {}
    for run, record in notes:
        if record.get("level") in {"warning", "error"}:
            unit = own.units.get(record.get("unit", ""))
            name = record.get("nodeid") or (unit.file if unit else shard_name(run.index))
            about.setdefault(record["text"], {})[name] = None
    return [f"{text}: {_examples(list(names))}" for text, names in about.items()]


def _foreign_lines(foreign: Mapping[int, int]) -> list[str]:
    return [
        f"{shard_name(index)} reported tests that are not its own; {_plural(count, 'record')} ignored"
        for index, count in foreign.items()
    ]
