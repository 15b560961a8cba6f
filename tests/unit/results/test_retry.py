"""What a retry runs: a table of journals, and a node that dies at any record."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.model import ShardRun, Unit
from gpuci.results import journal
from gpuci.results.retry import Remaining, remaining, remaining_after
from gpuci_node.contract import function_id, selects

Record = dict[str, Any]


def unit(name: str = "u", select: Any = "all", file: str = "a.py") -> Unit:
    return Unit(name, ".", file, select, "normal", 1, "default", 12.0, 900.0, tests=9)


def records(text: str) -> list[Record]:
    """A journal in short: `UNIT{one two}` collected, `UNIT>one` began, `UNIT=one:passed` ended, `UNIT~one`
    skipped for lack of GPUs and waits. Names are in a.py, `.` is the file itself."""
    return [record(word) for word in text.replace(" ", "\n").replace("\n\n", "\n").split("\n") if word]


def record(word: str) -> Record:
    head, sign, rest = next(
        word.partition(sign) for sign in sorted("{>=~", key=lambda sign: word.find(sign) % 999)
    )
    if sign == "{":
        ids = [nodeid(name) for name in rest.strip("}").split(",") if name]
        return {"kind": "collected", "unit": head, "file": "a.py", "ids": ids}
    if sign == "~":
        return {"kind": "note", "topic": "gpu_skip", "text": "", "unit": head, "nodeid": nodeid(rest)}
    name, _, outcome = rest.rpartition(":") if sign == "=" else (rest, "", "")
    more = {"kind": "end", "outcome": outcome} if sign == "=" else {"kind": "start"}
    return {"unit": head, "nodeid": nodeid(name), **more}


def nodeid(name: str) -> str:
    return name if "/" in name else "a.py" if name == "." else f"a.py::{name}"


def left(found: Remaining) -> dict[str, Any]:
    """The selection of each unit, names for node ids."""
    return {
        one.id: [name.removeprefix("a.py::") for name in one.select]
        if isinstance(one.select, list)
        else one.select
        for one in found.units
    }


REST = {"except": ["a.py::two"]}
PAIR = [unit("u", REST), unit("v", ["a.py::two"])]

# name, units, journals of the tries, what is left by unit, poisoned
CASES: list[tuple[str, list[Unit], list[str], dict[str, Any], list[str]]] = [
    ("no try", [unit()], [], {"u": "all"}, []),
    ("a journal without a record", [unit()], [""], {"u": "all"}, []),
    ("never collected", [unit(), unit("v", file="b.py")], ["u{one} u=one:passed"], {"v": "all"}, []),
    ("nothing ended: it stays whole", [unit()], ["u{one,two}"], {"u": "all"}, []),
    ("one ended", [unit()], ["u{one,two,three} u>one u=one:passed"], {"u": ["two", "three"]}, []),
    ("red is a result", [unit()], ["u{one,two} u>one u=one:failed"], {"u": ["two"]}, []),
    ("skipped is a result", [unit()], ["u{one,two} u=one:skipped"], {"u": ["two"]}, []),
    ("all ended", [unit()], ["u{one,two} u=one:passed u=two:error"], {}, []),
    ("in flight once", [unit()], ["u{one,two} u>one u=one:passed u>two"], {"u": ["two"]}, []),
    ("an empty file", [unit()], ["u{}"], {}, []),
    ("not importable", [unit()], ["u=.:collection_error"], {}, []),
    ("skipped as a whole", [unit()], ["u{} u=.:skipped"], {}, []),
    (
        "failed as a whole after its last test, others wait for GPUs",
        [unit()],
        ["u{one,two} u>one u~one u>two u=two:passed u=.:error"],
        {"u": ["one"]},
        [],
    ),
    (
        "parameters with brackets and colons",
        [unit()],
        ["u{t[a],t[b::c],t[x[1]],t[d]} u=t[b::c]:passed u=t[x[1]]:failed"],
        {"u": ["t[a]", "t[d]"]},
        [],
    ),
    ("the rest of a split file", PAIR, ["u{one,two,three} u=one:passed"], {"u": ["three"], "v": ["two"]}, []),
    ("its other piece", PAIR, ["v{one,two,three} v=two:passed"], {"u": REST}, []),
    ("a class", [unit(select=["a.py::A"])], ["u{A::x,A::y,B::x} u=A::x:passed"], {"u": ["A::y"]}, []),
    (
        "an end by the other unit of the file",
        PAIR,
        ["u{one,two} v{one,two} v=one:passed"],
        {"v": ["two"]},
        [],
    ),
    ("went back for more GPUs", [unit()], ["u{one,two} u>one u~one u=two:passed"], {"u": ["one"]}, []),
    (
        "no process could be started",
        [unit()],
        ["u{one,two} u=one:not_finished u=two:passed"],
        {"u": ["one"]},
        [],
    ),
    (
        "given up after it began",
        [unit()],
        ["u{one,two} u>one u=one:not_finished u>two"],
        {"u": ["two"]},
        [],
    ),
    (
        "went back, and no process could be started for it",
        [unit()],
        ["u{one,two} u>one u~one u=one:not_finished u=two:passed"],
        {"u": ["one"]},
        [],
    ),
    ("another file's ids", [unit()], ["u{one,b/x.py::t,two} u=one:passed"], {"u": ["two"]}, []),
    ("a prefix of the file's name", [unit()], ["u{one,a.pyx/::t,two} u=one:passed"], {"u": ["two"]}, []),
    ("records of another shard's unit", [unit()], ["x{one} x=one:passed u{one,two}"], {"u": "all"}, []),
    ("ids that are a sibling's", PAIR[:1], ["u{one,two,three} u=one:passed"], {"u": ["three"]}, []),
    (
        "two tries",
        [unit()],
        ["u{one,two,three} u=one:passed u>two", "u{one,two,three} u>two u=two:passed"],
        {"u": ["three"]},
        [],
    ),
    ("two deaths", [unit()], ["u{one,two} u>one", "u{one,two} u>one"], {"u": ["two"]}, ["one"]),
    ("two deaths at all that was left", [unit()], ["u{one} u>one", "u{one} u>one"], {}, ["one"]),
    (
        "two deaths, two tests",
        [unit()],
        ["u{one,two} u>one", "u{one,two} u>one u=one:passed u>two"],
        {"u": ["two"]},
        [],
    ),
    (
        "waiting for GPUs at two deaths",
        [unit()],
        ["u{one,two} u>one u~one", "u{one,two} u>one u~one"],
        {"u": "all"},
        [],
    ),
    ("begun twice in one try", [unit()], ["u{one,two} u>one u>one"], {"u": "all"}, []),
    (
        "collected anew with other tests",
        [unit()],
        ["u{one,two} u=one:passed", "u{two,new}"],
        {"u": ["two", "new"]},
        [],
    ),
]


@pytest.mark.parametrize(
    ("units", "tries", "selects", "poisoned"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_left(
    units: list[Unit], tries: list[str], selects: dict[str, Any], poisoned: list[str]
) -> None:
    found = remaining(units, [records(text) for text in tries])
    assert left(found) == selects
    assert list(found.poisoned) == [nodeid(name) for name in poisoned]


def test_the_plan_s_figures_shrink_with_the_unit() -> None:
    (found,) = remaining([unit()], [records("u{one,two,three,four} u=one:passed")]).units
    assert found == replace(
        unit(), select=[nodeid(n) for n in ("two", "three", "four")], tests=3, expected_seconds=9.0
    )


@pytest.mark.parametrize(
    ("fates", "poisoned"),
    [
        pytest.param(["infra", "infra"], ["a.py::one"], id="two nodes died"),
        pytest.param(["preempted", "preempted"], [], id="two were taken away"),
        pytest.param(["preempted", "infra"], [], id="one of each"),
        pytest.param(["", ""], ["a.py::one"], id="no verdict"),
        pytest.param(["cancelled", "infra"], [], id="cancelled"),
    ],
)
def test_only_deaths_poison(fates: list[str], poisoned: list[str]) -> None:
    runs = [
        ShardRun(1, tuple(records("u{one,two} u>one")), None, attempt=number, fate=fate)
        for number, fate in enumerate(fates, 1)
    ]
    assert list(remaining_after([unit()], reversed(runs)).poisoned) == poisoned


def test_each_try_has_its_death() -> None:
    with pytest.raises(ValueError, match="shorter"):
        remaining([unit()], [[], []], deaths=[True])


# -- a node that dies ---------------------------------------------------------------------------------


class World(NamedTuple):
    """A shard's units, what pytest collects in their files, and which tests wait for more GPUs."""

    units: list[Unit]
    items: dict[str, list[str]]
    wide: set[str]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    units: list[Unit] = []
    items: dict[str, list[str]] = {}
    for number in range(draw(st.integers(1, 3))):
        file = f"f{number}.py"
        functions = [f"{file}::t{n}" for n in range(draw(st.integers(0, 4)))]
        items[file] = [
            item
            for function in functions
            for item in draw(
                st.sampled_from([[function], [function + each for each in ("[a]", "[b::c]", "[x[1]]")]])
            )
        ]
        cut = functions[: draw(st.integers(0, len(functions)))]
        for select in [{"except": cut}, cut] if cut else ["all"]:
            units.append(unit(f"u{len(units)}", select, file))
    every = [item for ids in items.values() for item in ids]
    return World(units, items, set(draw(st.lists(st.sampled_from(every)))) if every else set())


def journal_of(world: World, units: Sequence[Unit], chance: random.Random) -> list[Record]:
    """What a node writes that runs these units to their end, several at a time, each test once."""
    lanes = [list(_of_unit(world, one)) for one in units]
    written: list[Record] = []
    while any(lanes):
        lane = chance.choice([lane for lane in lanes if lane])
        written.append(lane.pop(0))
    return written


def _of_unit(world: World, one: Unit) -> list[Record]:
    ids = world.items[one.file]
    told: list[Record] = [{"kind": "collected", "unit": one.id, "file": one.file, "ids": ids}]
    late: list[Record] = []
    for item in ids:
        if selects(one.select, item):
            test = {"unit": one.id, "nodeid": item}
            run = [{"kind": "start", **test}, {"kind": "end", **test, "outcome": "passed"}]
            if item in world.wide:
                told += [run[0], {"kind": "note", "topic": "gpu_skip", "text": "", **test}]
                late += run
            else:
                told += run
    return told + late


def torn(written: list[Record], keep: int, cut: int) -> list[Record]:
    """The first `keep` records, as read from a file that lost `cut` bytes of the next one's end."""
    lines = [json.dumps(one).encode() + b"\n" for one in written[: keep + 1]]
    data = b"".join(lines)
    return list(journal.parse(data[: max(0, len(data) - 1 - cut)]).records)


def ended(written: Sequence[Record]) -> list[str]:
    return [one["nodeid"] for one in written if one["kind"] == "end"]


@given(worlds(), st.randoms(use_true_random=False), st.integers(0, 40), st.integers(0, 60))
@settings(max_examples=300)
def test_both_tries_together_run_each_test_once(
    world: World, chance: random.Random, keep: int, cut: int
) -> None:
    first = torn(journal_of(world, world.units, chance), keep, cut)
    again = remaining(world.units, [first])
    second = journal_of(world, again.units, chance)
    every = [item for ids in world.items.values() for item in ids]
    assert Counter(ended(first) + ended(second)) == Counter(every)
    assert again.poisoned == ()
    begun = {one["nodeid"] for one in second if one["kind"] == "start"}
    assert not begun & set(ended(first)), "what ended in the first try began again"


@given(worlds(), st.randoms(use_true_random=False), st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=300)
def test_what_two_nodes_die_of_gets_no_third(
    world: World, chance: random.Random, keep: int, more: int
) -> None:
    first = journal_of(world, world.units, chance)[:keep]
    second = journal_of(world, remaining(world.units, [first]).units, chance)[:more]
    found = remaining(world.units, [first, second])
    third = journal_of(world, found.units, chance)
    every = [item for ids in world.items.values() for item in ids]
    assert Counter([*ended(first), *ended(second), *ended(third), *found.poisoned]) == Counter(every)
    for nodeid in found.poisoned:
        assert all(_in_flight(tried, nodeid) for tried in (first, second))


def _in_flight(written: Sequence[Record], nodeid: str) -> bool:
    last = [one["kind"] for one in written if one.get("nodeid") == nodeid]
    return last[-1:] == ["start"]


@given(worlds(), st.randoms(use_true_random=False), st.integers(0, 40))
def test_to_ask_twice_changes_nothing(world: World, chance: random.Random, keep: int) -> None:
    first = journal_of(world, world.units, chance)[:keep]
    found = remaining(world.units, [first])
    assert remaining(found.units, [first]) == found
    assert remaining(world.units, [first, []]) == found
    assert remaining(world.units, [first + first[:1]]) == found


@given(worlds(), st.randoms(use_true_random=False), st.integers(0, 40))
def test_units_that_run_beside_each_other_may_come_in_any_order(
    world: World, chance: random.Random, keep: int
) -> None:
    """What counts is the order within a unit."""
    first = journal_of(world, world.units, chance)[:keep]
    lanes = [[one for one in first if one["unit"] == each.id] for each in world.units]
    chance.shuffle(lanes)
    assert remaining(world.units, [[one for lane in lanes for one in lane]]) == remaining(
        world.units, [first]
    )


FORGED = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["start", "end", "collected", "note", "job", "other"]),
        "unit": st.sampled_from(["u0", "u1", "x", ""]),
        "nodeid": st.sampled_from(["f0.py", "f0.py::t0", "f0.py::t0[a]", "f9.py::t", "../x", "::", "t"]),
        "ids": st.lists(
            st.sampled_from(["f0.py::t0", "f1.py::t0", "f9.py::t", "f0.pyc::t", "x"]), max_size=4
        ),
        "outcome": st.sampled_from(["passed", "not_finished", "failed"]),
        "text": st.just(""),
        "file": st.just("f0.py"),
        "topic": st.sampled_from(["gpu_skip", "x"]),
    }
)


@given(worlds(), st.lists(st.lists(FORGED, max_size=8), max_size=3))
def test_forged_records_reach_nothing_outside_the_shard(world: World, tries: list[list[Record]]) -> None:
    found = remaining(world.units, tries)
    by_id = {one.id: one for one in world.units}
    ids = [one.id for one in found.units]
    assert ids == sorted({*ids} & {*by_id})
    for one in found.units:
        whole = by_id[one.id]
        assert (one.file, one.root, one.mode, one.gpus) == (whole.file, whole.root, whole.mode, whole.gpus)
        if one.select != whole.select:
            assert all(
                item.startswith(f"{one.file}::") and selects(whole.select, item) for item in one.select
            )
    for item in found.poisoned:
        assert any(
            selects(one.select, item) and function_id(item).startswith(f"{one.file}::") for one in world.units
        )
