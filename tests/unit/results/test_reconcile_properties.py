"""Reconciliation under loss: lines that are dropped, doubled, torn and out of order."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.model import Plan, Shard, ShardRun, TestResult, Unit
from gpuci.results import journal
from gpuci.results.reconcile import reconcile
from gpuci_node.contract import RED_OUTCOMES, function_id

ENDS = ["passed", "failed", "error", "skipped", "xfailed", "xpassed"]


class World(NamedTuple):
    """A plan and the whole journals of its shards, with one end per test."""

    plan: Plan
    journals: dict[int, list[dict[str, Any]]]
    collected: set[str]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Files of one or two units over one to three shards; a file may be broken or skipped."""
    files = draw(st.integers(1, 4))
    shards = draw(st.integers(1, 3))
    units: list[Unit] = []
    targets: list[str] = []
    journals: dict[int, list[dict[str, Any]]] = {index: [] for index in range(1, shards + 1)}
    of_shard: dict[int, list[str]] = {index: [] for index in journals}
    collected: set[str] = set()
    for number in range(files):
        file = f"f{number}.py"
        known = [f"{file}::t{n}" for n in range(draw(st.integers(0, 4)))]
        items = _items(draw, file, known)
        broken = draw(st.sampled_from([None, None, None, "collection_error", "skipped"]))
        targets += known
        cut = known[: draw(st.integers(0, len(known)))]
        selects: list[Any] = [{"except": cut}, cut] if cut else ["all"]
        for select in selects:
            unit = Unit(f"u{len(units)}", ".", file, select, "normal", 1, "default", 1.0, 900.0)
            units.append(unit)
            index = draw(st.integers(1, shards))
            of_shard[index].append(unit.id)
            journals[index] += _records(draw, unit, items, broken)
        if broken is None:
            collected.update(items)
    plan = Plan(
        config={},
        sha=None,
        event="manual",
        roots=(),
        targets=tuple(targets),
        units=tuple(units),
        shards=tuple(Shard(index, "default", tuple(ids), 1.0) for index, ids in of_shard.items()),
        cpu_units=(),
        skipped=(),
        makespan_seconds=1.0,
        lower_bound_seconds=1.0,
        unknown_durations=0,
    )
    return World(plan, journals, collected)


def _items(draw: st.DrawFn, file: str, known: list[str]) -> list[str]:
    """What pytest collects: most of the known functions, some with parameters, and some unknown ones."""
    items: list[str] = []
    for target in known:
        items += draw(st.sampled_from([[], [target], [target], [target + "[a]", target + "[b::c]"]]))
    return items + draw(st.sampled_from([[], [], [f"{file}::new"]]))


def _records(draw: st.DrawFn, unit: Unit, items: list[str], broken: str | None) -> list[dict[str, Any]]:
    if broken:
        return [{"kind": "end", "unit": unit.id, "nodeid": unit.file, "outcome": broken}]
    records: list[dict[str, Any]] = [{"kind": "collected", "unit": unit.id, "file": unit.file, "ids": items}]
    for nodeid in items:
        if _selected(unit, nodeid):
            test = {"unit": unit.id, "nodeid": nodeid}
            records.append({"kind": "start", **test})
            records.append({"kind": "end", **test, "outcome": draw(st.sampled_from(ENDS))})
    return records


def _selected(unit: Unit, nodeid: str) -> bool:
    if unit.select == "all":
        return True
    if isinstance(unit.select, dict):
        return function_id(nodeid) not in unit.select["except"]
    return function_id(nodeid) in unit.select


def runs_of(journals: dict[int, list[dict[str, Any]]]) -> list[ShardRun]:
    return [
        ShardRun(index, journal.parse(b"".join(_line(record) for record in records)).records, None)
        for index, records in journals.items()
    ]


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def harmed(world: World, seed: int, keep: float) -> list[ShardRun]:
    """The journals with lines dropped, doubled and shuffled, and the last line torn."""
    chance = random.Random(seed)
    runs = []
    for index, records in world.journals.items():
        lines = [_line(record) for record in records if chance.random() < keep]
        lines += [line for line in lines if chance.random() < 0.2]
        chance.shuffle(lines)
        data = b"".join(lines)
        runs.append(ShardRun(index, journal.parse(data[: len(data) - chance.randrange(30)]).records, None))
    chance.shuffle(runs)
    return runs


def outcomes(results: tuple[TestResult, ...]) -> dict[str, str]:
    found = {result.nodeid: result.outcome for result in results}
    assert len(found) == len(results), "a node id is reported twice"
    return found


@given(worlds())
def test_whole_journals_give_what_they_say(world: World) -> None:
    found = outcomes(reconcile(world.plan, runs_of(world.journals)))
    for records in world.journals.values():
        for record in records:
            if record["kind"] == "end":
                assert found[record["nodeid"]] == record["outcome"]
    assert "not_finished" not in found.values()


@given(worlds(), st.integers(), st.floats(0, 1))
@settings(max_examples=200)
def test_each_test_is_reported_exactly_once(world: World, seed: int, keep: float) -> None:
    found = outcomes(reconcile(world.plan, harmed(world, seed, keep)))
    names = {*found, *map(function_id, found)}
    files = {nodeid for nodeid in found if "::" not in nodeid}
    for target in world.plan.targets:
        assert target in names or target.partition("::")[0] in files
    known = {*world.collected, *world.plan.targets}
    assert all(nodeid in known or nodeid in files for nodeid in found)


@given(worlds(), st.integers(), st.floats(0, 1))
@settings(max_examples=200)
def test_no_red_becomes_green_by_losing_lines(world: World, seed: int, keep: float) -> None:
    before = outcomes(reconcile(world.plan, runs_of(world.journals)))
    after = outcomes(reconcile(world.plan, harmed(world, seed, keep)))
    red_files = {nodeid.partition("::")[0] for nodeid, outcome in after.items() if outcome in RED_OUTCOMES}
    for nodeid, outcome in before.items():
        if outcome in RED_OUTCOMES:
            assert nodeid.partition("::")[0] in red_files
            assert after.get(nodeid) in {None, *RED_OUTCOMES}


@given(worlds(), st.integers())
def test_order_and_repetition_change_nothing(world: World, seed: int) -> None:
    chance = random.Random(seed)
    shuffled = {index: records * 2 for index, records in world.journals.items()}
    for records in shuffled.values():
        chance.shuffle(records)
    runs = runs_of(shuffled)
    chance.shuffle(runs)
    assert outcomes(reconcile(world.plan, runs)) == outcomes(reconcile(world.plan, runs_of(world.journals)))
