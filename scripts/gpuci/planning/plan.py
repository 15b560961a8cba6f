"""A manifest and durations -> the plan: units, shards, makespan, and notes for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from gpuci.config.document import to_document
from gpuci.config.model import Config
from gpuci.model import LearnedNeed, Manifest, Plan, Shard, Unit
from gpuci.planning.estimate import learn
from gpuci.planning.makespan import Bound, NodeShape, in_words, lower_bound
from gpuci.planning.shards import MAX_SHARDS, allot, assign, count_shards
from gpuci.planning.units import Units, make_units

DEFAULT_SECONDS = 1.0


@dataclass(frozen=True)
class _Pool:
    """The units that run on nodes of one profile."""

    profile: str
    node: NodeShape
    units: tuple[Unit, ...]

    @property
    def seconds(self) -> float:
        """The work in seconds of one node with all slots busy."""
        return fsum(map(self.node.load, self.units)) / self.node.slots


def make_plan(
    manifest: Manifest,
    config: Config,
    *,
    durations: Mapping[str, float] | None = None,
    shards: int | None = None,
    event: str = "manual",
    sha: str | None = None,
    needs: Mapping[str, LearnedNeed] | None = None,
) -> Plan:
    """Plan a run. `durations` are seconds by node id of an item; `shards` overrides their number (1..12).

    `needs` are what earlier runs learned, by function id or node id; the plan keeps those of its files.

    The same input gives the same plan, in whatever order the targets come. Raises ConfigError if a
    target asks for what no profile has, for more profiles than shards, and for a bad `shards`.
    """
    default = config.durations.get("default-seconds", DEFAULT_SECONDS)
    learned = _of_files(needs or {}, manifest)
    made = make_units(manifest, config, learn(durations or {}, default), event, learned)
    pools = _pools(made.units, config)
    shares = _shares(pools, count_shards(_tests(made.units), config.shards, shards), config, shards)
    planned = _shards(pools, shares)
    bound = _bound(pools, shares)
    return Plan(
        config=to_document(config),
        sha=sha,
        event=event,
        roots=manifest.roots,
        targets=made.targets,
        units=made.units,
        shards=planned,
        cpu_units=tuple(unit.id for unit in made.units if unit.mode == "cpu"),
        skipped=made.skipped,
        makespan_seconds=_longest(planned),
        lower_bound_seconds=bound.seconds,
        unknown_durations=made.unknown_durations,
        notes=_notes(manifest, made, planned, bound, shards, learned),
        needs=learned,
    )


def _of_files(needs: Mapping[str, LearnedNeed], manifest: Manifest) -> dict[str, LearnedNeed]:
    files = frozenset(manifest.files)
    return {nodeid: need for nodeid, need in sorted(needs.items()) if nodeid.partition("::")[0] in files}


def _pools(units: Sequence[Unit], config: Config) -> list[_Pool]:
    """The profiles with units, in the order of the configuration."""
    pools = []
    for profile in config.profiles:
        own = tuple(unit for unit in units if unit.profile == profile.name and unit.mode != "cpu")
        if own:
            pools.append(_Pool(profile.name, NodeShape(profile.gpus, config.node.workers_per_gpu), own))
    return pools


def _tests(units: Sequence[Unit]) -> int:
    """The tests that nodes are to run; a file whose tests nobody knows counts as one."""
    return sum(max(unit.tests, 1) for unit in units if unit.mode != "cpu")


def _shares(pools: Sequence[_Pool], count: int, config: Config, asked: int | None) -> dict[str, int]:
    """The number of shards of each profile."""
    return allot(
        count,
        {pool.profile: pool.seconds for pool in pools},
        {pool.profile: len(pool.units) for pool in pools},
        config.shards.max if asked is None else MAX_SHARDS,
    )


def _bound(pools: Sequence[_Pool], shares: Mapping[str, int]) -> Bound:
    bounds = [lower_bound(pool.units, shares[pool.profile], pool.node) for pool in pools]
    return max(bounds, key=lambda bound: bound.seconds, default=Bound(0.0, ""))


def _longest(shards: Sequence[Shard]) -> float:
    return max((shard.expected_seconds for shard in shards), default=0.0)


def _shards(pools: Sequence[_Pool], shares: Mapping[str, int]) -> tuple[Shard, ...]:
    shards: list[Shard] = []
    for pool in pools:
        for shard in assign(pool.units, shares[pool.profile], pool.node):
            ids = tuple(unit.id for unit in shard.units)
            shards.append(Shard(len(shards) + 1, pool.profile, ids, shard.seconds))
    return tuple(shards)


def _notes(
    manifest: Manifest,
    made: Units,
    shards: Sequence[Shard],
    bound: Bound,
    asked: int | None,
    learned: Mapping[str, LearnedNeed],
) -> tuple[str, ...]:
    """What sets the makespan, what was estimated, and what is not as one would expect."""
    notes = []
    if shards:
        notes.append(_why(_longest(shards), bound, len(shards)))
    if made.unknown_durations:
        notes.append(
            f"{made.unknown_durations} of {len(made.targets)} tests have no known duration: "
            "estimated from tests near them, else durations.default-seconds"
        )
    if learned:
        notes.append(f"{_count(len(learned), 'need')} learned by earlier runs: `gpuci explain` says which")
    if asked is not None and len(shards) != asked:
        notes.append(f"{_count(asked, 'shard')} asked for, the plan has {len(shards)}")
    if manifest.errors:
        notes.append(
            f"{_count(len(manifest.errors), 'file')} can't be read as Python: planned whole, pytest says why"
        )
    return (*notes, *made.notes)


def _why(longest: float, bound: Bound, shards: int) -> str:
    excess = longest / bound.seconds - 1 if bound.seconds else 0.0
    text = f"{bound.because} the makespan of {in_words(longest)} on {_count(shards, 'shard')}"
    return text if excess < 0.01 else f"{text}, {excess:.0%} above the lower bound"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
