"""Units -> shards: how many, which profile gets how many, and which unit goes where. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from gpuci.config.model import Shards
from gpuci.errors import ConfigError
from gpuci.model import Unit
from gpuci.planning.makespan import ROUNDING, NodeShape, in_order, lower_bound, makespan

MAX_SHARDS = 12
CLOSE_ENOUGH = 1.01  # of the lower bound
WORK = 50_000  # simulated units: about 0.3 s on a laptop's core


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


def assign(units: Sequence[Unit], count: int, node: NodeShape) -> list[ShardUnits]:
    """Spread the units of one profile over `count` nodes; each gets one at least if there are enough.

    Longest processing time first (Graham 1969) by slot-seconds: each unit goes to the node with the least
    so far; ties go to the node with fewest units, then to the first. Loads that are equal can still take
    unequal times (wide and long units), so `improve` moves single units while that helps.
    """
    shards: list[list[Unit]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for unit in sorted(units, key=lambda unit: -node.load(unit)):
        chosen = min(range(count), key=lambda i: (loads[i], len(shards[i])))
        loads[chosen] += node.load(unit)
        shards[chosen].append(unit)
    return improve(
        [ShardUnits.of(shard, node) for shard in shards], node, lower_bound(units, count, node).seconds
    )


@dataclass(frozen=True)
class ShardUnits:
    """Units of one shard in the order in which its node starts them, and its makespan in seconds."""

    units: tuple[Unit, ...]
    seconds: float

    @classmethod
    def of(cls, units: Iterable[Unit], node: NodeShape) -> ShardUnits:
        """Simulate the node on these units."""
        in_turn = in_order(units)
        return cls(tuple(in_turn), makespan(in_turn, node))


def improve(shards: Sequence[ShardUnits], node: NodeShape, bound: float) -> list[ShardUnits]:
    """Move single units away from the longest shard while both shards then end before it did.

    The biggest unit is tried first, on the two shortest shards. The only unit of a shard never moves: it
    takes as long elsewhere.
    Stops within 1 % of the bound, when no move helps, or after simulating WORK units, so its time is
    bounded without a clock and its result is always the same.
    """
    best = list(shards)
    work = WORK
    while len(best) > 1 and work > 0:
        longest = max(range(len(best)), key=lambda i: best[i].seconds)
        if best[longest].seconds <= bound * CLOSE_ENOUGH:
            break
        targets = sorted((i for i in range(len(best)) if i != longest), key=lambda i: best[i].seconds)[:2]
        biggest = sorted(best[longest].units, key=lambda unit: -node.load(unit))
        for unit, target in product(biggest, targets):
            work -= len(best[longest].units) + len(best[target].units)
            moved = _move(unit, best[longest], best[target], node)
            if moved is not None:
                best[longest], best[target] = moved
                break
            if work <= 0:
                return best
        else:
            break
    return best


def _move(
    unit: Unit, source: ShardUnits, target: ShardUnits, node: NodeShape
) -> tuple[ShardUnits, ShardUnits] | None:
    """Both shards after the move if they end before `source` did, else None."""
    gained = ShardUnits.of((*target.units, unit), node)
    if gained.seconds >= source.seconds * (1 - ROUNDING):
        return None
    left = ShardUnits.of((other for other in source.units if other is not unit), node)
    return (left, gained) if left.seconds < source.seconds * (1 - ROUNDING) else None
