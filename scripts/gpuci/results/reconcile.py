"""What became of each test: the plan held against what the nodes collected and reported. Pure.

Every collected test of a unit appears exactly once. Nothing that is missing turns green: a test, a
target or a whole unit without a record is `not_finished`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuci.model import Plan, ShardRun, TestResult
from gpuci.results.facts import Entry, Facts, gather
from gpuci.results.ownership import CPU_POOL, Ownership
from gpuci.results.tries import DEATHS
from gpuci_node.contract import RED_OUTCOMES, function_id

NEVER_STARTED = "collected, but never started"
NO_RESULT = "started, but no result came: its process or its node ended"
CUT_OFF = "was running when the job was ended ({verdict})"
POISON = "in flight at the death of {count} nodes ({nodes})"
NO_RECORD = "planned, but the node left no record of it"
NEVER_BEGAN = "its job never began"
NO_SUCH_TEST = "planned from source, but pytest has no such test in this file"
ONLY_A_SIBLING = "collected by another unit of the file, but not by the unit that is to run it"
DESELECTED = "deselected by -k or the project's own options"
ELSEWHERE = "needs no GPU: not run on the cluster"


def reconcile(plan: Plan, runs: Sequence[ShardRun], *, elsewhere: bool = False) -> tuple[TestResult, ...]:
    """One result per test, in plan order by file, then in the order of collection.

    `runs` are all tries of all shards. With `elsewhere` the cpu units are not ours: each of their
    targets is `elsewhere`. Raises nothing for records that passed `journal.read_record`.
    """
    own = Ownership(plan)
    return conclude(plan, own, gather(own, runs), elsewhere=elsewhere)


def conclude(plan: Plan, own: Ownership, facts: Facts, *, elsewhere: bool) -> tuple[TestResult, ...]:
    """`reconcile` for facts that are gathered already."""
    return _Reconciliation(plan, own, facts, elsewhere=elsewhere).results()


class _Reconciliation:
    def __init__(self, plan: Plan, own: Ownership, facts: Facts, *, elsewhere: bool) -> None:
        self.plan = plan
        self.own = own
        self.facts = facts
        self.skipped = {entry.nodeid: entry.because for entry in plan.skipped}
        self.known = frozenset(plan.targets).union(self.skipped)
        self.elsewhere = frozenset(plan.cpu_units) if elsewhere else frozenset[str]()
        self.found: dict[str, TestResult] = {}
        self.red_units: set[str] = set()
        self.files: set[str] = set()

    def results(self) -> tuple[TestResult, ...]:
        for nodeid in [*self.facts.collected, *self.facts.started, *self.facts.ended]:
            if nodeid not in self.found:
                self._add(*self._of_record(nodeid))
        for nodeid, entry in self.facts.deselected.items():
            if nodeid not in self.found and function_id(nodeid) not in self.skipped:
                self._add(_concluded(nodeid, "deselected", DESELECTED, entry.shard, entry.attempt))
        seen = {*self.found, *map(function_id, self.found)}
        self.files = {nodeid.partition("::")[0] for nodeid in self.found}
        for target in self.plan.targets:
            if target not in self.skipped and not _covered(target, seen):
                self._add(self._of_target(target))
        self._add_silent_units()
        self._add_skipped(seen)
        return tuple(self._in_plan_order())

    def _add(self, result: TestResult | None, unit: str | None = None) -> None:
        if result is None:
            return
        self.found[result.nodeid] = result
        if result.outcome in RED_OUTCOMES:
            owner = unit or self.own.unit_of(result.nodeid)
            self.red_units.update(() if owner is None else (owner,))

    def _of_record(self, nodeid: str) -> tuple[TestResult | None, str | None]:
        """The result and unit of a test that a node spoke of; no result if it is not ours to run."""
        end = self.facts.ended.get(nodeid)
        if end is not None:
            return self._of_end(nodeid, end), end.unit
        start = self.facts.started.get(nodeid)
        if start is not None:
            return self._cut_short(nodeid, start), start.unit
        return self._never_started(nodeid), None

    def _of_end(self, nodeid: str, entry: Entry) -> TestResult:
        record = entry.record
        return TestResult(
            nodeid=nodeid,
            outcome=record["outcome"],
            seconds=float(sum(record.get("seconds", {}).values())),
            shard=entry.shard,
            attempt=entry.attempt,
            slot=record.get("slot"),
            gpus=tuple(record.get("gpus", ())),
            file=record.get("file") or nodeid.partition("::")[0],
            line=record.get("line"),
            message=record.get("message", ""),
            output=record.get("output", ""),
            unplanned=record["outcome"] != "collection_error" and self._is_unplanned(nodeid),
            peak_memory_bytes=record.get("peak_memory_bytes"),
            cuda_used=record.get("cuda_used"),
        )

    def _cut_short(self, nodeid: str, entry: Entry) -> TestResult:
        """A test that began, and did not end: what kills two nodes has failed."""
        nodes = self.facts.flights.get(nodeid, [])
        poison = len(nodes) >= DEATHS
        verdict = self.facts.verdicts[entry.shard, entry.attempt]
        alone = CUT_OFF.format(verdict=verdict) if verdict in ("cancelled", "timeout") else NO_RESULT
        return TestResult(
            nodeid=nodeid,
            outcome="failed" if poison else "not_finished",
            shard=entry.shard,
            attempt=entry.attempt,
            slot=entry.record.get("slot"),
            gpus=tuple(entry.record.get("gpus", ())),
            file=nodeid.partition("::")[0],
            message=POISON.format(count=len(nodes), nodes=", ".join(nodes)) if poison else alone,
            unplanned=self._is_unplanned(nodeid),
        )

    def _never_started(self, nodeid: str) -> TestResult | None:
        unit = self.own.unit_of(nodeid)
        if unit is None or function_id(nodeid) in self.skipped:
            return None
        shard, attempt = self._place(unit)
        if unit in self.elsewhere:
            return self._of_elsewhere(nodeid)
        entry = self.facts.collected[nodeid]
        by_sibling = entry.unit != unit and unit in self.facts.listed
        message = ONLY_A_SIBLING if by_sibling else NEVER_STARTED
        result = _concluded(nodeid, "not_finished", message, shard, attempt)
        return replace(result, unplanned=self._is_unplanned(nodeid))

    def _of_elsewhere(self, nodeid: str) -> TestResult | None:
        """A test of the cpu pool that a GPU node collected: by function, as nobody here knows its items."""
        function = function_id(nodeid)
        if function in self.found or self._is_planned(nodeid):
            return None  # the target itself is reported
        return replace(_concluded(function, "elsewhere", ELSEWHERE, CPU_POOL, 1), unplanned=True)

    def _of_target(self, target: str) -> TestResult | None:
        """A planned test that no node reported; None if none runs it or its file was settled as a whole."""
        unit = self.own.unit_of(target)
        if unit is None:
            return None
        shard, attempt = self._place(unit)
        if unit in self.elsewhere:
            return _concluded(target, "elsewhere", ELSEWHERE, shard, 1)
        if unit in self.facts.settled:
            return None
        if unit in self.facts.listed:
            if target in self.files:
                return None  # it stands for tests whose names only pytest knows, such as doctests
            return _concluded(target, "not_collected", NO_SUCH_TEST, shard, attempt)
        return _concluded(target, "not_finished", self._no_record(shard), shard, attempt)

    def _add_silent_units(self) -> None:
        """A unit that never said what it collected may hold tests that nobody knows of: its file is red."""
        for unit in self.plan.units:
            known = unit.id in self.facts.listed or unit.id in self.facts.settled or unit.id in self.elsewhere
            if not known and unit.id not in self.red_units:
                shard, attempt = self._place(unit.id)
                because = self._no_record(shard)
                self._add(_concluded(unit.file, "not_finished", because, shard, attempt), unit.id)

    def _no_record(self, shard: int) -> str:
        """Why there is no record of a unit: no node had the shard, or the node did not speak of it."""
        verdict = self.facts.verdicts.get((shard, self.facts.attempts.get(shard, 1)), "passed")
        began = shard in self.facts.begun or verdict in ("passed", "failed")
        return NO_RECORD if began else NEVER_BEGAN

    def _add_skipped(self, seen: set[str]) -> None:
        for nodeid, because in self.skipped.items():
            if nodeid not in seen and nodeid not in self.found:
                self._add(_concluded(nodeid, "skipped", because, None, 1))

    def _place(self, unit: str) -> tuple[int, int]:
        shard = self.own.shards.get(unit, CPU_POOL)
        return shard, self.facts.attempts.get(shard, 1)

    def _is_planned(self, nodeid: str) -> bool:
        """Whether it, its function, or its file as a whole (doctests) is a target."""
        return bool(self.known & {nodeid, function_id(nodeid), nodeid.partition("::")[0]})

    def _is_unplanned(self, nodeid: str) -> bool:
        return "::" in nodeid and not self._is_planned(nodeid)

    def _in_plan_order(self) -> Iterator[TestResult]:
        files = {
            file: place for place, file in enumerate(dict.fromkeys(unit.file for unit in self.plan.units))
        }
        last = len(files)
        yield from sorted(
            self.found.values(), key=lambda result: files.get(result.nodeid.partition("::")[0], last)
        )


def _covered(target: str, seen: set[str]) -> bool:
    """Whether a target, or a class that holds it, has a record."""
    if target in seen:
        return True
    parts = target.split("::")
    return any("::".join(parts[:depth]) in seen for depth in range(2, len(parts)))


def _concluded(nodeid: str, outcome: str, message: str, shard: int | None, attempt: int) -> TestResult:
    return TestResult(
        nodeid=nodeid,
        outcome=outcome,
        shard=shard,
        attempt=attempt,
        file=nodeid.partition("::")[0],
        message=message,
    )
