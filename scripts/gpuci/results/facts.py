"""The records of all shards and tries, gathered by test and by unit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuci.model import ShardRun
from gpuci.results.journal import Record
from gpuci.results.ownership import Ownership
from gpuci.results.tries import is_death, node_of, read_try, verdict_of
from gpuci_node.contract import OUTCOMES


class Entry(NamedTuple):
    """A record and the job that wrote it."""

    record: Record
    shard: int
    attempt: int

    @property
    def unit(self) -> str:
        """The id of the unit that the record belongs to."""
        return str(self.record["unit"])


@dataclass
class Facts:
    """What the journals say. Dictionaries keep the order in which the node collected.

    `collected`, `started` and `ended` (the record that counts) are by node id; `deselected` too;
    `listed` are the units that said what they collected; `settled` the units with one record for their
    file as a whole; `attempts` is the last try of each shard; `foreign` counts, by shard, the records
    about tests that are not its own. `flights` are the nodes that died while a test ran on them, by node id;
    `first` is the try from which a test's first result came. `verdicts` are what the tries came to, by shard
    and attempt; `begun` the shards of which any try had a node or a record.
    """

    collected: dict[str, Entry] = field(default_factory=dict)
    started: dict[str, Entry] = field(default_factory=dict)
    ended: dict[str, Entry] = field(default_factory=dict)
    deselected: dict[str, Entry] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    attempts: dict[int, int] = field(default_factory=dict)
    foreign: dict[int, int] = field(default_factory=dict)
    flights: dict[str, list[str]] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    verdicts: dict[tuple[int, int], str] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)


def gather(ownership: Ownership, runs: Sequence[ShardRun]) -> Facts:
    """Sort the records of all tries into facts; the order of `runs` does not matter."""
    facts = Facts()
    add = {"collected": _add_collected, "start": _add_start, "end": _add_end}
    for run in sorted(runs, key=lambda run: (run.index, run.attempt)):
        facts.attempts[run.index] = run.attempt
        facts.verdicts[run.index, run.attempt] = verdict_of(run).verdict
        if run.records or node_of(run):
            facts.begun.add(run.index)
        for record in run.records:
            handler = add.get(record["kind"])
            if handler is not None:
                handler(facts, ownership, Entry(record, run.index, run.attempt))
        if is_death(run):
            _add_flights(facts, ownership, run)
    return facts


def _add_collected(facts: Facts, ownership: Ownership, entry: Entry) -> None:
    if ownership.shards.get(entry.unit) != entry.shard:
        _count_foreign(facts, entry)
        return
    facts.listed.add(entry.unit)
    for nodeid in entry.record["ids"]:
        facts.collected.setdefault(nodeid, entry)
    for nodeid in entry.record.get("deselected", ()):
        if ownership.may_report(entry.shard, entry.unit, nodeid):
            facts.deselected.setdefault(nodeid, entry)


def _add_start(facts: Facts, ownership: Ownership, entry: Entry) -> None:
    nodeid = entry.record["nodeid"]
    if ownership.may_report(entry.shard, entry.unit, nodeid):
        facts.started[nodeid] = entry
    else:
        _count_foreign(facts, entry)


def _add_end(facts: Facts, ownership: Ownership, entry: Entry) -> None:
    nodeid = entry.record["nodeid"]
    if not ownership.may_report(entry.shard, entry.unit, nodeid):
        _count_foreign(facts, entry)
        return
    before = facts.ended.get(nodeid)
    if before is None or _rank(entry) < _rank(before):
        facts.ended[nodeid] = entry
    if "::" not in nodeid:
        facts.settled.add(entry.unit)
    if entry.record["outcome"] != "not_finished":
        facts.first.setdefault(nodeid, entry.attempt)


def _add_flights(facts: Facts, ownership: Ownership, run: ShardRun) -> None:
    node = node_of(run) or f"try {run.attempt}"
    for nodeid, record in read_try(run.records, ownership.shards).flying.items():
        if ownership.may_report(run.index, record["unit"], nodeid):
            facts.flights.setdefault(nodeid, []).append(node)


def _rank(entry: Entry) -> tuple[bool, int, int]:
    """Sort key: the worst outcome first, but a result beats `not_finished`; among equals the later try."""
    outcome = entry.record["outcome"]
    return outcome == "not_finished", OUTCOMES.index(outcome), -entry.attempt


def _count_foreign(facts: Facts, entry: Entry) -> None:
    facts.foreign[entry.shard] = facts.foreign.get(entry.shard, 0) + 1
