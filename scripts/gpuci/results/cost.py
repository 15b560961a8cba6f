"""What a run holds of a cluster: the GPUs of its jobs, and the configured price of one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuci.durations.needs import is_gpus
from gpuci.model import Plan, ShardRun
from gpuci.results.journal import is_number
from gpuci.results.tries import job_record


def gpus_of(plan: Plan, index: int, tries: Sequence[ShardRun]) -> int:
    """GPUs that a shard's job has: as its node says, else as many as the nodes of its profile have."""
    told = [len(job_record(run).get("gpus", ())) for run in tries]
    known = [count for count in told if is_gpus(count, least=1)]
    profiles = _profiles(plan.config)
    planned = [profiles.get(shard.profile) for shard in plan.shards if shard.index == index]
    return next((count for count in [*known[:1], *planned] if count), 0)


def price(plan: Plan) -> float | None:
    """`cost.usd-per-gpu-hour`, None if the configuration has none."""
    cost = plan.config.get("cost")
    usd = cost.get("usd-per-gpu-hour") if isinstance(cost, Mapping) else None
    return float(usd) if usd is not None and is_number(usd) else None


def _profiles(config: Mapping[str, Any]) -> dict[str, int]:
    return {profile["name"]: profile["gpus"] for profile in config.get("profiles", ())}
