"""How long a shard takes, and how short it could be at best. Pure.

The makespan is simulated with the node's own slot table and order, so that the plan and the node do the
same thing with the same units.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import fsum

from gpuci.model import Unit
from gpuci_node.slots import Slot, SlotTable, order_key

ROUNDING = 1e-9  # sums of the same floats in another order


@dataclass(frozen=True)
class NodeShape:
    """What a node offers: GPUs x workers per GPU."""

    gpus: int
    workers_per_gpu: int = 1

    @property
    def slots(self) -> int:
        """Units of one GPU that run side by side."""
        return self.gpus * self.workers_per_gpu

    def slots_of(self, unit: Unit) -> int:
        """The slots that a unit keeps busy: all of each GPU it needs, one if it needs one GPU."""
        if unit.mode == "serial":
            return self.slots
        return 1 if unit.gpus <= 1 else unit.gpus * self.workers_per_gpu

    def load(self, unit: Unit) -> float:
        """The slot-seconds that a unit takes."""
        return unit.expected_seconds * self.slots_of(unit)


@dataclass(frozen=True)
class Bound:
    """A time in seconds that no schedule can beat, and the reason in words."""

    seconds: float
    because: str


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """The units in the order in which a node starts them."""
    keyed = [
        (order_key(unit.gpus, unit.mode == "serial", unit.expected_seconds, i), unit)
        for i, unit in enumerate(units)
    ]
    return [unit for _, unit in sorted(keyed, key=lambda pair: pair[0])]


def makespan(units: Iterable[Unit], node: NodeShape) -> float:
    """Seconds until the last of the units has ended on one node, by list scheduling on a virtual clock."""
    table = SlotTable([str(gpu) for gpu in range(node.gpus)], node.workers_per_gpu)
    waiting: dict[tuple[bool, int], deque[Unit]] = {}
    for unit in in_order(units):
        waiting.setdefault((unit.mode == "serial", unit.gpus), deque()).append(unit)
    running: list[tuple[float, int, Slot]] = []
    now = 0.0
    while True:
        for (alone, gpus), queue in waiting.items():
            while queue and (slot := table.take(gpus, alone)):
                heappush(running, (now + queue.popleft().expected_seconds, slot.index, slot))
        if not running:
            return now
        now, _, slot = heappop(running)
        table.release(slot)
        while running and running[0][0] == now:
            table.release(heappop(running)[2])


def lower_bound(units: Sequence[Unit], shards: int, node: NodeShape) -> Bound:
    """The best of three bounds on the makespan of `units` on `shards` nodes of one shape.

    1. the longest unit;  2. work: slot-seconds / slots;  3. for each width g: of the units that need at
    least g GPUs at most k = `shards * (gpus // g)` run at once (all slots for g = 1), so they take at
    least sum / k, and at least p[k] + p[k+1] of their times in descending order (two of the k + 1 longest
    share a place).
    """
    longest = max(units, key=lambda unit: unit.expected_seconds)
    work = fsum(map(node.load, units)) / (shards * node.slots)
    best = Bound(longest.expected_seconds, f"the longest piece, {_title(longest)}, sets")
    for bound in (Bound(work, "the work as a whole sets"), *_width_bounds(units, shards, node)):
        if bound.seconds > best.seconds * (1 + ROUNDING):
            best = bound
    return best


def _width_bounds(units: Sequence[Unit], shards: int, node: NodeShape) -> Iterator[Bound]:
    for width in sorted({_width(unit, node) for unit in units}):
        times = sorted((u.expected_seconds for u in units if _width(u, node) >= width), reverse=True)
        places = shards * (node.slots if width == 1 else node.gpus // width)
        what = (
            f"files that need {width} or more GPUs set"
            if width > 1
            else f"the {places + 1} longest pieces set"
        )
        yield Bound(_pigeonhole(times, places), what)


def _pigeonhole(times: Sequence[float], places: int) -> float:
    """The lower bound on one-place jobs: their sum, and the two shortest of the places + 1 longest."""
    pair = times[places - 1] + times[places] if len(times) > places else 0.0
    return max(fsum(times) / places, pair)


def _width(unit: Unit, node: NodeShape) -> int:
    return node.gpus if unit.mode == "serial" else max(unit.gpus, 1)


def in_words(seconds: float) -> str:
    """Seconds for a sentence: two digits at least are shown, no false precision."""
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def _title(unit: Unit) -> str:
    only = unit.select[0] if isinstance(unit.select, list) and len(unit.select) == 1 else unit.file
    return f"{only} ({in_words(unit.expected_seconds)})"
