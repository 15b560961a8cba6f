"""How one test is planned, and where each value comes from. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from gpuci.config.model import Config, MarkerRule
from gpuci.model import Marker, Plan, TestTarget, Unit
from gpuci.planning.estimate import Estimates
from gpuci.planning.learned import widen
from gpuci.reporting.text import duration, one_line, plural
from gpuci_node.contract import function_id, selects

ITEMS = 10


def render(target: TestTarget, plan: Plan, config: Config, estimates: Estimates) -> str:
    """A few lines `what: value (from where)`."""
    planned = widen(target, plan.needs, config) if _unit(target.nodeid, plan) else target
    rows = [
        ("test", f"{target.nodeid} (line {target.line})"),
        ("mode", f"{planned.run_mode} ({_mode_source(target, planned, plan, config)})"),
        ("class", target.kind),
        ("GPUs", f"{planned.gpus} ({_gpu_source(target, planned, plan, config)}){_on_the_node(planned)}"),
        ("profile", target.runs_on or f"{config.profiles[0].name} (the first profile)"),
        ("duration", _duration(target, estimates)),
        ("runs", _place(target, plan)),
        *_learned_items(target, plan),
    ]
    if target.markers:
        rows.append(("marks", ", ".join(f"{mark.name} (line {mark.line})" for mark in target.markers)))
    if target.opaque:
        rows.append(("uncertain", target.opaque))
    return "\n".join(f"{name + ':':<10} {one_line(value)}" for name, value in rows)


def _matching(target: TestTarget, config: Config) -> Iterator[tuple[Marker, MarkerRule]]:
    for mark in target.markers:
        for rule in config.markers:
            if fnmatchcase(mark.name, rule.name):
                yield mark, rule


def _mode_source(target: TestTarget, planned: TestTarget, plan: Plan, config: Config) -> str:
    if planned.run_mode != target.run_mode:
        return f"learned: {plan.needs[target.nodeid].because}"
    if target.skip:
        return target.skip
    for mark, rule in _matching(target, config):
        if rule.mode == target.run_mode:
            return f"mark {mark.name}, line {mark.line}"
    paths = [path for path, mode in config.modes if mode == target.run_mode and _holds(path, target.nodeid)]
    return f"modes: {max(paths, key=len)}" if paths else "the default"


def _on_the_node(target: TestTarget) -> str:
    return "; it sees all of the node" if target.run_mode == "serial" else ""


def _holds(path: str, nodeid: str) -> bool:
    return path == "." or nodeid == path or nodeid.startswith((path + "/", path + "::"))


def _gpu_source(target: TestTarget, planned: TestTarget, plan: Plan, config: Config) -> str:
    if planned.gpus != target.gpus:
        return f"learned: {plan.needs[target.nodeid].because}"
    for mark, rule in _matching(target, config):
        if rule.gpus == target.gpus:
            return f"mark {mark.name}, line {mark.line}"
    for mark in target.markers:
        if mark.name == "skipif" and "device_count" in " ".join(mark.args):
            return f"skipif on the number of devices, line {mark.line}"
    return "mode cpu" if target.run_mode == "cpu" else "the default"


def _duration(target: TestTarget, estimates: Estimates) -> str:
    measured = target.nodeid in estimates.functions
    guess = "estimated from its neighbours" if estimates.functions else "the default: no durations are known"
    source = "measured" if measured else guess
    return f"{duration(estimates.function(target.nodeid))} ({source})"


def _learned_items(target: TestTarget, plan: Plan) -> list[tuple[str, str]]:
    """What was learned of single items of the function."""
    items = [nodeid for nodeid in plan.needs if nodeid != target.nodeid == function_id(nodeid)]
    rows = [("learned", _learned_item(nodeid, plan)) for nodeid in items[:ITEMS]]
    more = len(items) - len(rows)
    return [*rows, ("learned", f"and of {more} more")] if more else rows


def _learned_item(nodeid: str, plan: Plan) -> str:
    need, unit = plan.needs[nodeid], _unit(nodeid, plan)
    gpus = "all of the node" if need.alone else plural(need.gpus, "GPU")
    place = f"unit {unit.id}" if unit else "not at all"
    return f"{nodeid.removeprefix(function_id(nodeid))} {gpus} ({need.because}), {place}"


def _place(target: TestTarget, plan: Plan) -> str:
    for skipped in plan.skipped:
        if skipped.nodeid == target.nodeid:
            return f"not at all: {skipped.because}"
    unit = _unit(target.nodeid, plan)
    if unit is None:
        return "not at all"
    if unit.id in plan.cpu_units:
        return f"in the cpu pool (unit {unit.id})"
    shard = next(shard for shard in plan.shards if unit.id in shard.units)
    return f"in shard {shard.index} of {len(plan.shards)} (unit {unit.id})"


def _unit(nodeid: str, plan: Plan) -> Unit | None:
    path = nodeid.partition("::")[0]
    return next((unit for unit in plan.units if unit.file == path and selects(unit.select, nodeid)), None)
