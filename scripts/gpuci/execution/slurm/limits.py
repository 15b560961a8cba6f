"""How long jobs may wait and run, before there are any. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpuci.config.model import Config
from gpuci.execution import jobs
from gpuci.execution.slurm.options import ShardFacts, limit_seconds, settings_for
from gpuci.model import Plan


@dataclass(frozen=True)
class Limits:
    """Of the first try of a shard, in seconds: in the queue, and of the job (0: Slurm's own)."""

    queue: float
    run: int


def limits_of(plan: Plan, config: Config) -> dict[int, Limits]:
    """The limits by shard."""
    return {shard.index: _limits(plan, config, shard.index, shard.profile) for shard in plan.shards}


def _limits(plan: Plan, config: Config, index: int, name: str) -> Limits:
    profile, units = config.profile(name), jobs.shard_units(plan, index)
    facts = ShardFacts(
        "", "", "", sum(unit.expected_seconds for unit in units) / max(1, profile.gpus),
        max((unit.longest_test_seconds for unit in units), default=0.0),
    )  # fmt: skip
    settings = settings_for(config.slurm, profile)
    return Limits(float(settings["queue-timeout"]), limit_seconds(config.slurm, profile, facts))
