"""What a run holds of a cluster: the GPUs of its jobs, and the configured price of one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuci.config import document
from gpuci.config.model import Config
from gpuci.durations.needs import is_gpus
from gpuci.model import Plan, ShardRun
from gpuci.results.tries import job_record


def gpus_of(plan: Plan, index: int, tries: Sequence[ShardRun]) -> int:
    """GPUs that a shard's job has: as its node says, else as many as the nodes of its profile have."""
    told = [len(job_record(run).get("gpus", ())) for run in tries]
    known = [count for count in told if is_gpus(count, least=1)]
    profiles = {profile.name: profile.gpus for profile in _config(plan).profiles}
    planned = [profiles.get(shard.profile, 0) for shard in plan.shards if shard.index == index]
    return next(iter([*known, *planned]), 0)


def held(plan: Plan, runs: Iterable[ShardRun]) -> float:
    """GPUs times seconds that some jobs had them."""
    return sum(gpus_of(plan, run.index, [run]) * run.wall_seconds for run in runs)


def price(plan: Plan) -> float | None:
    """`cost.usd-per-gpu-hour`, None if the configuration has none."""
    usd = _config(plan).cost.get("usd-per-gpu-hour")
    return None if usd is None else float(usd)


def _config(plan: Plan) -> Config:
    """The plan's configuration; one without any has nothing that could be told of its nodes."""
    return document.from_document(plan.config) if plan.config else Config(profiles=())
