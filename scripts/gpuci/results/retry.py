"""After a try of a shard was ended by the infrastructure: what is still to run. Pure.

Only what the journals lack runs again. A test that was in flight runs once more; one that was in flight at
the death of two nodes has failed, and gets no third.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpuci.model import ShardRun, Unit
from gpuci.results.journal import Record
from gpuci.results.tries import DEATHS, Told, is_death, read_try
from gpuci_node.contract import indexed, selects


class Remaining(NamedTuple):
    """The units to run, narrowed to what they lack, and the tests that failed by killing nodes."""

    units: tuple[Unit, ...]
    poisoned: tuple[str, ...]


def remaining(
    units: Sequence[Unit], tries: Sequence[Sequence[Record]], *, deaths: Sequence[bool] | None = None
) -> Remaining:
    """What the journals of all tries so far lack of a shard's `units`, whole or narrowed before.

    `deaths` says of each try whether its node died under it (default: all did); a test that two preempted
    jobs were at is not to blame. A unit that was never collected is unchanged. Records of other units, and
    ids that a unit does not select, are ignored.
    """
    told = [read_try(records, {unit.id for unit in units}) for records in tries]
    died = [True] * len(told) if deaths is None else deaths
    flights = Counter(nodeid for one, death in zip(told, died, strict=True) if death for nodeid in one.flying)
    ended = set[str]().union(*(one.ended for one in told))
    left: list[Unit] = []
    poisoned: list[str] = []
    for unit in units:
        collected = _collected(unit, told)
        if collected is None:
            left += [] if any(unit.id in one.settled for one in told) else [unit]
            continue
        lacking = [nodeid for nodeid in collected if nodeid not in ended]
        due = [nodeid for nodeid in lacking if flights[nodeid] < DEATHS]
        poisoned += [nodeid for nodeid in lacking if flights[nodeid] >= DEATHS]
        left += [_narrowed(unit, due, len(collected))] if due else []
    return Remaining(tuple(left), tuple(poisoned))


def remaining_after(units: Sequence[Unit], runs: Iterable[ShardRun]) -> Remaining:
    """`remaining` for all tries of one shard; which of them died, their verdicts say."""
    tries = sorted(runs, key=lambda run: run.attempt)
    return remaining(units, [run.records for run in tries], deaths=[is_death(run) for run in tries])


def _collected(unit: Unit, told: Sequence[Told]) -> list[str] | None:
    """The tests of a unit as all tries collected them, None if none did."""
    lists = [one.listed[unit.id] for one in told if unit.id in one.listed]
    if not lists:
        return None
    select = indexed(unit.select)
    ids = dict.fromkeys(nodeid for listed in lists for nodeid in listed)
    return [nodeid for nodeid in ids if nodeid.startswith(f"{unit.file}::") and selects(select, nodeid)]


def _narrowed(unit: Unit, due: list[str], of: int) -> Unit:
    """The unit with only the tests that are due; as it is if all are, for tests that are new in its file."""
    if len(due) == of:
        return replace(unit, tests=of)
    seconds = unit.expected_seconds * len(due) / of
    return replace(unit, select=due, tests=len(due), expected_seconds=seconds)
