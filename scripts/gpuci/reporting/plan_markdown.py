"""A plan as GitHub Markdown, for the summary of a step. Pure; untrusted text stands in inline code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpuci.execution.slurm.limits import Limits
from gpuci.model import Plan, Unit
from gpuci.reporting.text import clip, duration, inline_code, one_line, plural

ROWS = 20


def render(plan: Plan, limits: Mapping[int, Limits]) -> str:
    """The shards with their expected times and limits, how good the plan is, and what is not run and why."""
    parts = [_head(plan), _shards(plan, limits), _left_out(plan), _notes(plan)]
    return "\n".join(part for part in parts if part)


def _head(plan: Plan) -> str:
    if not plan.shards:
        return "## No GPU test is due\n"
    units = [unit for unit in plan.units if unit.mode != "cpu"]
    text = f"## {plural(_tests(units), 'GPU test')} in {plural(len(plan.shards), 'shard')}\n\n"
    text += f"Expected makespan {duration(plan.makespan_seconds)}"
    if plan.lower_bound_seconds:
        ratio = plan.makespan_seconds / plan.lower_bound_seconds
        text += f", lower bound {duration(plan.lower_bound_seconds)} (ratio {ratio:.2f})"
    return f"{text}.\n"


def _shards(plan: Plan, limits: Mapping[int, Limits]) -> str:
    if not plan.shards:
        return ""
    units = {unit.id: unit for unit in plan.units}
    rows = ["| shard | profile | units | tests | expected | queue limit | time limit |", "|" + " --- |" * 7]
    for shard in plan.shards:
        own, limit = [units[unit] for unit in shard.units], limits[shard.index]
        counts = f"{len(own)} | {_tests(own)} | {duration(shard.expected_seconds)}"
        times = f"{_limit(limit.queue)} | {_limit(limit.run)}"
        rows.append(f"| {shard.index} | {_code(shard.profile, 40)} | {counts} | {times} |")
    return "\n".join([*rows, ""])


def _limit(seconds: float) -> str:
    return duration(seconds) if seconds else "none"


def _left_out(plan: Plan) -> str:
    """What is planned, and runs in none of these shards."""
    lines = []
    pool = [unit for unit in plan.units if unit.mode == "cpu"]
    if pool:
        lines.append(f"- {plural(_tests(pool), 'test')} in the CPU pool: no GPU is needed")
    reasons = Counter(skipped.because for skipped in plan.skipped).most_common()
    lines += [f"- {count} skipped: {_code(because, 150)}" for because, count in reasons[:ROWS]]
    if len(reasons) > ROWS:
        lines.append(f"- and {plural(len(reasons) - ROWS, 'more reason')}")
    return "\n".join(["### Not run here", "", *lines, ""]) if lines else ""


def _notes(plan: Plan) -> str:
    shown = [f"- {_code(note, 300)}" for note in plan.notes[:ROWS]]
    return "\n".join(["### Notes", "", *shown, ""]) if shown else ""


def _tests(units: Sequence[Unit]) -> int:
    return sum(unit.tests for unit in units)


def _code(text: str, width: int) -> str:
    return inline_code(clip(one_line(text), width))
