"""Who runs a test, who may speak of it."""

from __future__ import annotations

import pytest

from gpuci.model import Plan, Shard, Unit
from gpuci.results.ownership import Ownership


def unit(name: str, file: str, select: object) -> Unit:
    return Unit(name, ".", file, select, "normal", 1, "default", 1.0, 900.0)  # type: ignore[arg-type]


PLAN = Plan(
    config={},
    sha=None,
    event="manual",
    roots=(),
    targets=("a.py::one", "a.py::two", "b.py::three"),
    units=(
        unit("u1", "a.py", {"except": ["a.py::two", "a.py::T"]}),
        unit("u2", "a.py", ["a.py::two"]),
        unit("u3", "b.py", "all"),
        unit("c1", "a.py", ["a.py::T"]),
    ),
    shards=(Shard(1, "default", ("u1", "u3"), 1.0), Shard(2, "default", ("u2",), 1.0)),
    cpu_units=("c1",),
    skipped=(),
    makespan_seconds=1.0,
    lower_bound_seconds=1.0,
    unknown_durations=0,
)
OWN = Ownership(PLAN)


@pytest.mark.parametrize(
    ("nodeid", "owner"),
    [
        ("a.py::one[x::y]", "u1"),
        ("a.py::unknown", "u1"),
        ("a.py::two", "u2"),
        ("a.py::two[1]", "u2"),
        ("a.py::T::m[a]", "c1"),
        ("b.py::whatever", "u3"),
        ("c.py::test", None),
        ("a.pyc::one", None),
    ],
)
def test_unit_of(nodeid: str, owner: str | None) -> None:
    assert OWN.unit_of(nodeid) == owner


@pytest.mark.parametrize(
    ("shard", "unit_id", "nodeid", "may"),
    [
        pytest.param(1, "u1", "a.py::one", True, id="its own"),
        pytest.param(1, "u1", "b.py::x", True, id="of another unit of the shard"),
        pytest.param(1, "u1", "x.py::new", True, id="of nobody"),
        pytest.param(1, "u1", "a.py", True, id="the file as a whole"),
        pytest.param(1, "u1", "a.py::two", False, id="of another shard"),
        pytest.param(1, "u1", "a.py::T::m", False, id="of the cpu pool"),
        pytest.param(1, "u2", "a.py::two", False, id="a unit of another shard"),
        pytest.param(1, "u9", "a.py::one", False, id="no unit of the plan"),
        pytest.param(0, "c1", "a.py::T::m", True, id="the cpu pool's own"),
    ],
)
def test_may_report(shard: int, unit_id: str, nodeid: str, may: bool) -> None:
    assert OWN.may_report(shard, unit_id, nodeid) is may
