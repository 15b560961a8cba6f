"""How long jobs may wait and run, told before there are any: what sbatch is asked for then."""

from __future__ import annotations

from gpuci.config.model import Config, Profile
from gpuci.execution.slurm.limits import Limits, limits_of
from gpuci.model import Plan, Shard, Unit

SLURM = {"queue-timeout": 3600, "time-limit": None}
UNITS = (
    Unit("u1", ".", "a.py", "all", "normal", 1, "big", 8000.0, 900.0),
    Unit("u2", ".", "b.py", "all", "normal", 1, "small", 10.0, 60.0, longest_timeout_seconds=1200.0),
)
PLAN = Plan(
    config={}, sha=None, event="push", roots=(), targets=(), units=UNITS,
    shards=(Shard(1, "big", ("u1",), 1000.0), Shard(2, "small", ("u2",), 10.0)), cpu_units=(), skipped=(),
    makespan_seconds=0.0, lower_bound_seconds=0.0, unknown_durations=0,
)  # fmt: skip


def test_limits_come_from_the_plan_and_the_profile() -> None:
    small = Profile("small", gpus=1, slurm={"queue-timeout": 60})
    config = Config(profiles=(Profile("big", gpus=8), small), slurm=SLURM)
    assert limits_of(PLAN, config) == {
        1: Limits(3600.0, 4800),  # 3 x 1000 s, a test of 900 s, 15 minutes to start
        2: Limits(60.0, 2160),  # 3 x 10 s and a test of 20 minutes, in whole minutes
    }


def test_a_configured_limit_counts() -> None:
    config = Config(profiles=(Profile("big"), Profile("small")), slurm={**SLURM, "time-limit": "2:00:00"})
    assert {limit.run for limit in limits_of(PLAN, config).values()} == {7200}
