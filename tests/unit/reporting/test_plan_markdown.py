"""The summary of a plan."""

from __future__ import annotations

from dataclasses import replace

from gpuci.execution.slurm.limits import Limits
from gpuci.model import Plan, Shard, SkippedTest, Unit
from gpuci.reporting import plan_markdown

UNITS = (
    Unit("u1", ".", "a.py", "all", "normal", 1, "h100", 60.0, 900.0, tests=3),
    Unit("u2", ".", "b.py", "all", "normal", 1, "h100", 30.0, 900.0, tests=1),
    Unit("u3", ".", "c.py", "all", "cpu", 0, "h100", 30.0, 900.0, tests=2),
)
PLAN = Plan(
    config={}, sha="a" * 40, event="push", roots=(), targets=(), units=UNITS,
    shards=(Shard(1, "h100", ("u1",), 60.0), Shard(2, "h100", ("u2",), 30.0)),
    cpu_units=("u3",), skipped=(SkippedTest("d.py::x", "nightly"), SkippedTest("d.py::y", "nightly")),
    makespan_seconds=60.0, lower_bound_seconds=48.0, unknown_durations=1, notes=("a note",),
)  # fmt: skip
LIMITS = {1: Limits(3600.0, 1800), 2: Limits(3600.0, 0)}


def test_it_shows_shards_limits_and_what_is_not_run() -> None:
    assert plan_markdown.render(PLAN, LIMITS) == (
        "## 4 GPU tests in 2 shards\n\n"
        "Expected makespan 1 min 00 s, lower bound 48.0 s (ratio 1.25).\n\n"
        "| shard | profile | units | tests | expected | queue limit | time limit |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| 1 | <code>h100</code> | 1 | 3 | 1 min 00 s | 1 h 00 min | 30 min 00 s |\n"
        "| 2 | <code>h100</code> | 1 | 1 | 30.0 s | 1 h 00 min | none |\n\n"
        "### Not run here\n\n"
        "- 2 tests in the CPU pool: no GPU is needed\n"
        "- 2 skipped: <code>nightly</code>\n\n"
        "### Notes\n\n"
        "- <code>a note</code>\n"
    )


def test_a_plan_without_a_shard_says_so() -> None:
    empty = replace(PLAN, shards=(), units=UNITS[2:], makespan_seconds=0.0, lower_bound_seconds=0.0)
    text = plan_markdown.render(empty, {})
    assert text.startswith("## No GPU test is due\n")
    assert "| shard |" not in text
    assert "2 tests in the CPU pool" in text


def test_many_reasons_and_notes_are_cut_and_counted() -> None:
    skipped = tuple(SkippedTest(f"d.py::{number}", f"reason {number}") for number in range(50))
    text = plan_markdown.render(replace(PLAN, skipped=skipped, notes=("n",) * 50), LIMITS)
    assert "and 30 more reasons" in text
    assert len(text) < 5000


def test_nothing_in_it_is_markup() -> None:
    hostile = "<b>@all</b> `x` [y](z) | ::error:: ##[error]\n# x"
    skipped = (SkippedTest("d.py::x", hostile),)
    shards = (replace(PLAN.shards[0], profile=hostile), PLAN.shards[1])
    text = plan_markdown.render(replace(PLAN, skipped=skipped, notes=(hostile,), shards=shards), LIMITS)
    for part in ("<b>", "@all", "`", "](", "::error", "##[", "\n# "):
        assert part not in text
