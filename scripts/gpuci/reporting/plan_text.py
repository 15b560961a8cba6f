"""A plan as text for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuci.model import Plan, Unit
from gpuci.reporting.text import clip, duration, one_line, plural, wrap

_WIDTH = 80


def render(plan: Plan) -> str:
    """The shards with their expected times, how good the plan is, and why."""
    return "\n".join([*_headline(plan), "", *_shards(plan), *_isolation(plan), *_left_out(plan)])


def _headline(plan: Plan) -> Iterator[str]:
    parts = [(len(plan.targets), "test"), (len(plan.units), "unit"), (len(plan.shards), "shard")]
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
    yield f"{'shard':<8}  {'profile':<16}  {'units':>5}  {'tests':>6}  {'expected':>10}"
    rows = [(str(shard.index), shard.profile, shard.units, shard.expected_seconds) for shard in plan.shards]
    for name, profile, ids, seconds in rows:
        yield f"{_row(name, profile, [units[unit] for unit in ids])}  {duration(seconds):>10}"
    if plan.cpu_units:
        yield _row("cpu pool", "no GPU", [units[unit] for unit in plan.cpu_units])


def _row(name: str, profile: str, units: Sequence[Unit]) -> str:
    tests = sum(unit.tests for unit in units)
    return f"{name:<8}  {clip(one_line(profile), 16):<16}  {len(units):>5}  {tests:>6}"


def _isolation(plan: Plan) -> Iterator[str]:
    """How the test processes of each root are kept off each other's GPUs, roots of one reason together."""
    roots: dict[tuple[str, str], list[str]] = {}
    for root in plan.roots:
        roots.setdefault((root.gpu_isolation, root.because), []).append(root.path)
    if roots:
        yield ""
    for (isolation, because), paths in sorted(roots.items()):
        names = "all tests" if paths == ["."] else ", ".join(map(one_line, paths))
        yield from wrap(f"GPU isolation by {isolation}: {names} ({one_line(because)})", _WIDTH, rest="  ")


def _left_out(plan: Plan) -> Iterator[str]:
    if plan.skipped:
        yield ""
        yield f"{plural(len(plan.skipped), 'test')} left out:"
        reasons = [skipped.because for skipped in plan.skipped]
        for reason in sorted(set(reasons)):
            yield from wrap(f"{reasons.count(reason)}: {one_line(reason)}", _WIDTH, first="- ", rest="  ")
