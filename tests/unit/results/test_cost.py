"""The GPUs that a run holds, and what one costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuci.config import document
from gpuci.config.model import Config, Profile
from gpuci.model import Plan, Shard, ShardRun
from gpuci.results.build import build_report
from gpuci.results.cost import gpus_of, price

PROFILES = (Profile("h100", gpus=8), Profile("small", gpus=2))


def plan(**config: Any) -> Plan:
    resolved = document.to_document(Config(profiles=PROFILES, **config))
    shards = (Shard(1, "h100", (), 1.0), Shard(2, "small", (), 1.0), Shard(3, "gone", (), 1.0))
    return Plan(resolved, None, "push", (), (), (), shards, (), (), 1.0, 1.0, 0)


def job(*gpus: str, kind: str = "job") -> ShardRun:
    return ShardRun(1, ({"kind": kind, "gpus": list(gpus)},), None)


@pytest.mark.parametrize(
    ("index", "tries", "gpus"),
    [
        pytest.param(1, [], 8, id="as its profile has"),
        pytest.param(2, [], 2, id="another profile"),
        pytest.param(3, [], 0, id="a profile that nobody knows"),
        pytest.param(0, [], 0, id="the cpu pool"),
        pytest.param(1, [job("0")], 1, id="as the node says"),
        pytest.param(1, [job()], 8, id="a node that says nothing"),
        pytest.param(1, [job(), job("0", "1")], 2, id="the first that says anything"),
        pytest.param(1, [job(*map(str, range(2000)))], 8, id="more than a node can have"),
        pytest.param(1, [job("0", kind="later")], 8, id="another record"),
    ],
)
def test_gpus_of_a_shard(index: int, tries: list[ShardRun], gpus: int) -> None:
    assert gpus_of(plan(), index, tries) == gpus


@pytest.mark.parametrize(
    ("cost", "usd"),
    [
        ({}, None),
        ({"usd-per-gpu-hour": None}, None),
        ({"usd-per-gpu-hour": 3}, 3.0),
        ({"usd-per-gpu-hour": 0}, 0.0),
    ],
    ids=["no section", "no price", "a price", "nothing"],
)
def test_the_price(cost: dict[str, Any], usd: float | None) -> None:
    assert price(plan(cost=cost)) == usd


def test_what_was_replaced_was_held_too() -> None:
    """A job that told of its GPUs, one of a profile, and one of a plan that is no more."""
    told = replace(job("0", "1"), wall_seconds=10.0)
    replaced = [told, ShardRun(1, (), None, 5.0), ShardRun(9, (), None, 7.0)]
    report = build_report(plan(), [], seconds=1.0, setup_seconds=0.0, replaced=replaced)
    assert report.earlier_gpu_seconds == 2 * 10.0 + 8 * 5.0
    assert [row.tries for row in report.shards] == [0, 0, 0]


def test_the_report_has_both() -> None:
    report = build_report(plan(cost={"usd-per-gpu-hour": 2.5}), [], seconds=1.0, setup_seconds=0.0)
    assert [row.gpus for row in report.shards] == [8, 2, 0]
    assert report.usd_per_gpu_hour == 2.5
