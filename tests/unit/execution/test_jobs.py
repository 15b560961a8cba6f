"""The job document of a retry: its number, and only the units that are left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuci.config.model import Config
from gpuci.execution.jobs import NodeFacts, Paths, job_document
from gpuci.model import Plan, Root, Shard, Unit

UNITS = tuple(
    Unit(name, root, f"{root}/a.py", "all", "normal", 1, "default", 1.0, 900.0)
    for name, root in (("u", "x"), ("v", "y"))
)
PLAN = Plan(
    config={},
    sha=None,
    event="manual",
    roots=(Root("x"), Root("y")),
    targets=(),
    units=UNITS,
    shards=(Shard(1, "default", ("u", "v"), 1.0),),
    cpu_units=(),
    skipped=(),
    makespan_seconds=1.0,
    lower_bound_seconds=1.0,
    unknown_durations=0,
)


def document(**more: Any) -> dict[str, Any]:
    places: dict[str, Any] = {
        "node": NodeFacts("n", ("0",)),
        "paths": Paths("/r", "/o", "/s"),
        "python": ["python3"],
    }
    return job_document(PLAN, Config(), 1, run="r", token="0" * 32, **places, **more)


@pytest.mark.parametrize(
    ("more", "number", "units", "roots"),
    [
        pytest.param({}, 1, ["u", "v"], ["x", "y"], id="the first try runs all"),
        pytest.param({"try_number": 2, "units": (UNITS[1],)}, 2, ["v"], ["y"], id="a retry what is left"),
        pytest.param({"units": ()}, 1, [], [], id="nothing is not everything"),
    ],
)
def test_what_a_try_runs(more: dict[str, Any], number: int, units: list[str], roots: list[str]) -> None:
    found = document(**more)
    assert found["try"] == number
    assert [unit["id"] for unit in found["units"]] == units
    assert [root["path"] for root in found["roots"]] == roots


def test_a_retry_keeps_its_selection() -> None:
    left = replace(UNITS[0], select=["x/a.py::t[b::c]"])
    assert document(units=[left])["units"][0]["select"] == ["x/a.py::t[b::c]"]
