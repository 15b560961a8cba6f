"""Units -> shards: how many, which profile gets how many, and which unit goes where. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuci.config.model import Shards
from gpuci.errors import ConfigError
from gpuci.model import Unit
from gpuci.planning.makespan import NodeShape, in_order

MAX_SHARDS = 12


def count_shards(tests: int, limits: Shards, asked: int | None) -> int:
    """n = clamp(tests // min_tests, 1, max), or what was asked for: 1..12, else ConfigError."""
    if asked is None:
        return max(1, min(tests // limits.min_tests, limits.max))
    if not 1 <= asked <= MAX_SHARDS:
        raise ConfigError(
            f"{asked} shards were asked for",
            why=f"a run has 1 to {MAX_SHARDS} shards",
            then=f"give --shards a number from 1 to {MAX_SHARDS}, or leave it out",
        )
    return asked


def allot(count: int, loads: Mapping[str, float], units: Mapping[str, int], most: int) -> dict[str, int]:
    """Share `count` shards among profiles: one each, then each next one where a shard has most to do.

    `loads` are seconds of work of one node per profile, `units` the number of its units: a profile never
    gets more shards than units. Raises ConfigError for more profiles than `most`. `count` grows to the
    number of profiles. (Highest averages, as D'Hondt's; ties go to the profile that comes first.)
    """
    if len(loads) > most:
        raise ConfigError(
            f"the tests need {len(loads)} profiles, a run has at most {most} shards",
            why="a shard is one job on one kind of node: " + ", ".join(loads),
            then="run some packages apart (--packages), or raise shards.max (up to 12)",
        )
    shares = dict.fromkeys(loads, 1)
    for _ in range(count - len(loads)):
        open_to_more = [name for name in loads if shares[name] < units[name]]
        if not open_to_more:
            break
        shares[max(open_to_more, key=lambda name: loads[name] / shares[name])] += 1
    return shares


def assign(units: Sequence[Unit], count: int, node: NodeShape) -> list[list[Unit]]:
    """Spread the units of one profile over `count` nodes; each gets one at least if there are enough.

    Longest processing time first (Graham 1969) over the slots of all nodes: in the order in which nodes
    start units, each goes to the node where it can start first; ties go to the least loaded node, then to
    the one with fewest units, then to the first.
    """
    shards: list[list[Unit]] = [[] for _ in range(count)]
    nodes = [_Lanes(node) for _ in range(count)]
    loads = [0.0] * count
    for unit in in_order(units):
        width = node.gpus if unit.mode == "serial" else max(unit.gpus, 1)
        ranks = [(nodes[i].start(width), loads[i], len(shards[i]), i) for i in range(count)]
        chosen = min(ranks)[-1]
        nodes[chosen].place(width, unit.expected_seconds)
        loads[chosen] += unit.expected_seconds * node.slots_of(unit)
        shards[chosen].append(unit)
    return shards


class _Lanes:
    """When each slot of a node becomes free, as far as units were placed there."""

    def __init__(self, node: NodeShape) -> None:
        self._gpus = node.gpus
        self._free = [0.0] * node.slots

    def start(self, width: int) -> float:
        """The earliest second at which a unit of `width` GPUs can start."""
        return min(self._free) if width == 1 else min(self._starts(width))[0]

    def place(self, width: int, seconds: float) -> None:
        """Let a unit run there."""
        if width == 1:
            first = min(self._free)
            self._free[self._free.index(first)] = first + seconds
            return
        start, gpu = min(self._starts(width))
        for lane in range(len(self._free)):
            if gpu <= lane % self._gpus < gpu + width:
                self._free[lane] = start + seconds

    def _starts(self, width: int) -> list[tuple[float, int]]:
        """(second, first GPU) of the blocks that a slot table would give."""
        step = 1 if self._gpus % width else width
        busy = [max(self._free[gpu :: self._gpus]) for gpu in range(self._gpus)]
        return [(max(busy[gpu : gpu + width]), gpu) for gpu in range(0, self._gpus - width + 1, step)]
