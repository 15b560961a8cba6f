"""One try of a shard: its node, what it came to, and what its journal says of the tests. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuci.model import ShardRun
from gpuci.results.journal import Record
from gpuci_node.contract import VERDICTS

DEATHS = 2  # nodes that die under a test until it is to blame
# What a node says of itself even over a broken channel: it is no success, and says more than `infra`.
_STANDING = frozenset({"config_error", "unauthorized", "cancelled", "timeout", "infra"})


class TryVerdict(NamedTuple):
    """A verdict of the contract and one line that says why, which may be empty."""

    verdict: str
    reason: str


def verdict_of(run: ShardRun) -> TryVerdict:
    """What one try came to: as its backend knows, else as its node says; absence is not success."""
    if run.fate:
        return TryVerdict(run.fate, _joined(run.reason, run.problem))
    said = None if run.verdict is None else run.verdict.get("verdict")
    if said not in VERDICTS:
        return TryVerdict("infra", run.problem or "it left no verdict")
    reason = run.verdict.get("reason") if run.verdict else ""
    verdict = "infra" if run.problem and said not in _STANDING else str(said)
    return TryVerdict(verdict, _joined(reason if isinstance(reason, str) else "", run.problem))


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def is_death(run: ShardRun) -> bool:
    """Whether a node died under its tests. One that was taken away (preempted, cancelled) did not."""
    return verdict_of(run).verdict == "infra"


def job_record(run: ShardRun) -> Record:
    """The head of the journal, or an empty one."""
    return next((record for record in run.records if record["kind"] == "job"), {})


def node_of(run: ShardRun) -> str:
    """The name of the node, as far as anybody knows it, else empty."""
    said = run.verdict.get("node") if run.verdict else None
    names = (run.node, said, job_record(run).get("node"))
    return next((name for name in names if isinstance(name, str) and name), "")


@dataclass
class Told:
    """What a journal says of some units. Ids are as written: tests can forge them.

    `listed` are the collected node ids by unit, `settled` the units with an end for their file as a whole,
    `ended` the tests that had their run, `begun` those that began one, and `flying` are the start records of
    those that were in it when the journal stops.
    """

    listed: dict[str, dict[str, None]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    flying: dict[str, Record] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take the next record of the units."""
        kind, nodeid = record["kind"], record.get("nodeid", "")
        if kind == "collected":
            self.listed.setdefault(record["unit"], {}).update(dict.fromkeys(record["ids"]))
        elif kind == "start":
            self.begun.add(nodeid)
            self.flying[nodeid] = record
        elif kind == "end":
            self.flying.pop(nodeid, None)
            self._end(record["unit"], nodeid, record["outcome"])
        elif kind == "note" and record.get("topic") == "gpu_skip":
            # It skipped, and waits for more GPUs: neither in flight nor ended.
            self.flying.pop(nodeid, None)
            self.begun.discard(nodeid)

    def _end(self, unit: str, nodeid: str, outcome: str) -> None:
        """A test that began and was given up had its run: to repeat it would be to try it twice.

        One that never began (no process could be started for it) lacks its run.
        """
        if "::" not in nodeid:
            self.settled.add(unit)
        elif outcome != "not_finished" or nodeid in self.begun:
            self.ended.add(nodeid)


_KINDS = frozenset({"collected", "start", "end", "note"})


def read_try(records: Iterable[Record], units: Container[str]) -> Told:
    """Read the records of one try that are about `units`, in the order in which they were written."""
    told = Told()
    for record in records:
        if record["kind"] in _KINDS and record.get("unit", "") in units:
            told.add(record)
    return told
