"""A plan as text for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpuci.model import Plan
from gpuci.reporting.text import duration, one_line, plural, wrap

_WIDTH = 80


def render(plan: Plan) -> str:
    """The shards with their expected times, how good the plan is, and why."""
    return "\n".join([*_headline(plan), "", *_shards(plan), *_rest(plan)])


def _headline(plan: Plan) -> Iterator[str]:
    units = sum(len(shard.units) for shard in plan.shards)
    parts = [(len(plan.targets), "test"), (units, "unit"), (len(plan.shards), "shard")]
    yield ", ".join(plural(count, noun) for count, noun in parts)
    if plan.lower_bound_seconds:
        ratio = plan.makespan_seconds / plan.lower_bound_seconds
        yield (
            f"makespan {duration(plan.makespan_seconds)}, lower bound {duration(plan.lower_bound_seconds)}"
            f" (ratio {ratio:.2f})"
        )
    for note in plan.notes:
        yield from wrap(one_line(note), _WIDTH, first="- ", rest="  ")


def _shards(plan: Plan) -> Iterator[str]:
    units = {unit.id: unit for unit in plan.units}
    yield f"{'shard':>5}  {'profile':<16}  {'units':>5}  {'tests':>6}  {'expected':>9}"
    for shard in plan.shards:
        tests = sum(units[unit].tests for unit in shard.units)
        yield (
            f"{shard.index:>5}  {one_line(shard.profile)[:16]:<16}  {len(shard.units):>5}  {tests:>6}"
            f"  {duration(shard.expected_seconds):>9}"
        )


def _rest(plan: Plan) -> Iterator[str]:
    for root in plan.roots:
        text = f"{one_line(root.path)}: GPU isolation by {root.gpu_isolation} ({one_line(root.because)})"
        yield from wrap(text, _WIDTH, rest="  ")
    units = {unit.id: unit for unit in plan.units}
    if plan.cpu_units:
        tests = sum(units[unit].tests for unit in plan.cpu_units)
        yield f"  cpu  {'(no GPU)':<16}  {len(plan.cpu_units):>5}  {tests:>6}"
    if plan.skipped:
        yield f"{plural(len(plan.skipped), 'test')} left out:"
        reasons = [skipped.because for skipped in plan.skipped]
        for reason in sorted(set(reasons)):
            yield from wrap(f"{reasons.count(reason)}: {one_line(reason)}", _WIDTH, first="- ", rest="  ")
