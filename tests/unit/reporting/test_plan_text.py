"""What `gpuci plan` shows: every test in a row of the table, and each reason once."""

from __future__ import annotations

from dataclasses import replace

from gpuci.model import Plan, Root, Shard, SkippedTest, Unit
from gpuci.reporting.plan_text import render

MASK = "no conftest.py puts workers on devices"


def unit(name: str, gpus: int, tests: int) -> Unit:
    return Unit(name, ".", f"{name}.py", "all", "normal", gpus, "h100", 4.0, 900.0, tests=tests)


PLAN = Plan(
    config={},
    sha=None,
    event="manual",
    roots=(
        Root("libs/a", gpu_isolation="mask", because=MASK),
        Root(
            "libs/b", gpu_isolation="worker-index", because="libs/b/conftest.py:3 puts each worker on its own"
        ),
        Root("libs/c", gpu_isolation="mask", because=MASK),
    ),
    targets=(),
    units=(unit("u", 1, 20), unit("v", 8, 1), unit("c", 0, 9)),
    shards=(Shard(1, "h100", ("u",), 14.0), Shard(2, "h100", ("v",), 65.0)),
    cpu_units=("c",),
    skipped=(SkippedTest("d.py::t", "modes: skip d.py"), SkippedTest("d.py::u", "modes: skip d.py")),
    makespan_seconds=65.0,
    lower_bound_seconds=50.0,
    unknown_durations=0,
    notes=("the longest piece, v.py, sets the makespan",),
)

PAGE = """\
0 tests, 3 units, 2 shards
makespan 1 min 05 s, lower bound 50.0 s (ratio 1.30)
- the longest piece, v.py, sets the makespan

shard     profile           units   tests    expected
1         h100                  1      20      14.0 s
2         h100                  1       1  1 min 05 s
cpu pool  no GPU                1       9

GPU isolation by mask: libs/a, libs/c (no conftest.py puts workers on devices)
GPU isolation by worker-index: libs/b (libs/b/conftest.py:3 puts each worker on
  its own)

2 tests left out:
- 2: modes: skip d.py"""


def test_the_page() -> None:
    assert render(PLAN) == PAGE


def test_one_package_is_all_tests() -> None:
    plan = replace(PLAN, roots=(Root(".", gpu_isolation="mask", because=MASK),), cpu_units=(), skipped=())
    assert render(plan).endswith(f"\n\nGPU isolation by mask: all tests ({MASK})")


def test_hostile_names_are_harmless_and_fit() -> None:
    shard = Shard(1, "界\x1b[2J" * 9, ("u",), 1.0)
    roots = (Root("a\x1b]0;t\x07b", gpu_isolation="mask", because="::error::x"),)
    page = render(replace(PLAN, shards=(shard,), roots=roots))
    assert "\x1b" not in page
    assert "\x07" not in page
    assert all(len(line) <= 80 for line in page.split("\n"))
