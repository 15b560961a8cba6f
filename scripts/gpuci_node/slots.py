"""Which process gets which GPUs: the slots of one node, and the order in which units ask for them.

Runs on the compute node and in the planner's simulation: standard library only, Python >= 3.8, pure
values, no I/O. Whoever holds a table asks it for a slot per unit, in the order of `order_key`, and goes
on to the next unit when the answer is None (list scheduling with backfilling): no slot stays idle while
a waiting unit fits. Wide units ask first, so narrow ones can't keep them waiting for ever.
"""

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Slot:
    """What one process holds: `index` names its worker, `gpus` are the devices it may use."""

    index: int
    gpus: Tuple[str, ...]

    @property
    def name(self) -> str:
        """The worker's name, as pytest-xdist calls workers."""
        return f"gw{self.index}"


class SlotTable:
    """The slots of one node: GPUs x workers per GPU, or a pool of slots without a GPU.

    With G GPUs, slot i belongs to GPU i % G (its lane i // G), so the first G slots are on G different
    GPUs. A slot of several GPUs holds all lanes of each and is named after the lowest. With no GPU the
    table has `cpu_workers` slots, numbered from 0. Raises ValueError for a table without any slot, for
    both kinds at once and for a GPU that is named twice.
    """

    def __init__(self, gpu_ids: Sequence[str], workers_per_gpu: int = 1, cpu_workers: int = 0) -> None:
        self._gpus = tuple(gpu_ids)
        if len(set(self._gpus)) != len(self._gpus):
            raise ValueError(f"a GPU is named twice: {', '.join(self._gpus)}")
        if bool(self._gpus) == bool(cpu_workers):
            raise ValueError("a table has GPU slots or CPU slots: one of both, not none")
        if workers_per_gpu < 1 or cpu_workers < 0:
            raise ValueError("workers_per_gpu is at least 1, cpu_workers at least 0")
        self._free = [True] * (len(self._gpus) * workers_per_gpu or cpu_workers)
        self._held: Dict[int, Tuple[int, ...]] = {}
        self._blocks = _aligned_blocks(len(self._gpus))

    @property
    def size(self) -> int:
        """How many one-GPU (or CPU) slots there are."""
        return len(self._free)

    @property
    def idle(self) -> bool:
        """Whether no slot is taken."""
        return not self._held

    @property
    def full(self) -> bool:
        """Whether no slot is free."""
        return not any(self._free)

    def clip(self, gpus: int) -> int:
        """How many GPUs a request for `gpus` gets here: at least 1 where there are any, at most all."""
        return min(max(gpus, 1), len(self._gpus))

    def take(self, gpus: int, alone: bool = False) -> Optional[Slot]:
        """Take a slot of `clip(gpus)` GPUs, or everything if `alone`; None if that isn't free now."""
        if alone:
            return self._hold(range(self.size), self._gpus) if self.idle else None
        width = self.clip(gpus)
        if width >= 2:
            return self._take_block(width)
        try:
            lane = self._free.index(True)
        except ValueError:
            return None
        return self._hold((lane,), (self._gpus[lane % len(self._gpus)],) if self._gpus else ())

    def release(self, slot: Slot) -> None:
        """Give a slot back; raises ValueError if it isn't taken."""
        if slot.index not in self._held:
            raise ValueError(f"{slot.name} is not taken")
        for lane in self._held.pop(slot.index):
            self._free[lane] = True

    def _hold(self, lanes: Sequence[int], gpus: Tuple[str, ...]) -> Slot:
        for lane in lanes:
            self._free[lane] = False
        self._held[lanes[0]] = tuple(lanes)
        return Slot(lanes[0], gpus)

    def _take_block(self, width: int) -> Optional[Slot]:
        """Take `width` neighbouring GPUs, of the free blocks the one that breaks up the least free space."""
        total = len(self._gpus)
        free = [all(self._free[gpu::total]) for gpu in range(total)]
        step = 1 if total % width else width
        starts = [s for s in range(0, total - width + 1, step) if all(free[s : s + width])]
        if not starts:
            return None
        start = min(starts, key=lambda s: (self._broken(free, s, s + width), _run_length(free, s), s))
        lanes = [lane for lane in range(self.size) if start <= lane % total < start + width]
        return self._hold(lanes, self._gpus[start : start + width])

    def _broken(self, free: Sequence[bool], start: int, stop: int) -> int:
        """How many wholly free aligned blocks lose a GPU when start..stop is taken."""
        return sum(a < stop and start < b and all(free[a:b]) for a, b in self._blocks)


def order_key(gpus: int, alone: bool, expected_seconds: float, sequence: int) -> Tuple[bool, int, float, int]:
    """The sort key in which units ask for slots: alone, then widest, then longest, then `sequence`.

    Units that run alone add the same time first or last (simulated in the tests); first, no other worker
    has been on their GPUs yet. The rest is longest processing time first (Graham 1969) within a width.
    """
    return (not alone, -gpus, -expected_seconds, sequence)


def _aligned_blocks(total: int) -> List[Tuple[int, int]]:
    """All (start, stop) of blocks of 2 or more GPUs whose width divides `total`."""
    widths = [width for width in range(2, total + 1) if total % width == 0]
    return [(start, start + width) for width in widths for start in range(0, total, width)]


def _run_length(free: Sequence[bool], inside: int) -> int:
    """The length of the run of free GPUs around `inside`."""
    start = stop = inside
    while start > 0 and free[start - 1]:
        start -= 1
    while stop < len(free) and free[stop]:
        stop += 1
    return stop - start
