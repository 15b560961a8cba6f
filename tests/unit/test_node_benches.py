"""What the benches of the node compute from what they measured: bounds, counts, the table."""

from __future__ import annotations

import importlib
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

CLONE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def benches() -> Iterator[dict[str, ModuleType]]:
    """The benches as modules, by name; they put the clone on the path themselves."""
    before = list(sys.path)
    sys.path.insert(0, str(CLONE))
    names = ("node_runs", "node_normal", "node_schedule")
    yield {name: importlib.import_module(f"bench.{name}") for name in names}
    sys.path[:] = before


BOUNDS: dict[str, tuple[list[tuple[str, int, float]], float]] = {
    "nothing": ([], 0.0),
    "the longest": ([("normal", 1, 9.0), ("normal", 1, 1.0)], 9.0),
    "the area": ([("normal", 4, 2.0)] * 3 + [("normal", 2, 2.0)] * 2, 4.0),
    "more than fill the node": ([("normal", 1, 2.0)] * 8 + [("isolated", 1, 1.0)], 3.0),
    "two of the wide ones": ([("normal", 4, 3.0), ("normal", 4, 2.0), ("normal", 4, 2.0)], 4.0),
    "those that fill it come on top": ([("serial", 8, 3.0), ("normal", 8, 2.0), ("normal", 1, 1.0)], 6.0),
    "a serial one of one GPU": ([("serial", 1, 3.0), ("normal", 1, 1.0)], 4.0),
}


def works_of(benches: dict[str, ModuleType], units: list[tuple[str, int, float]]) -> list[Any]:
    return [benches["node_schedule"].Work(str(i), "r", m, g, s, s) for i, (m, g, s) in enumerate(units)]


@pytest.mark.parametrize(("units", "bound"), BOUNDS.values(), ids=BOUNDS)
def test_lower_bound(
    benches: dict[str, ModuleType], units: list[tuple[str, int, float]], bound: float
) -> None:
    assert benches["node_schedule"].lower_bound(works_of(benches, units)) == bound


def makespan(works: list[Any]) -> float:
    """Of a schedule in this order: each starts as soon as there are GPUs enough, wherever they are."""
    free = [0.0] * 8
    for work in works:
        free.sort()
        width = 8 if work.mode == "serial" else work.gpus
        free[:width] = [free[width - 1] + work.seconds] * width
    return max(free)


UNITS = st.lists(
    st.tuples(st.sampled_from(["normal", "serial"]), st.sampled_from([1, 2, 4, 8]), st.integers(1, 20)),
    max_size=7,
)


@settings(deadline=None)
@given(units=UNITS, seed=st.integers(0, 1000))
def test_no_schedule_is_shorter_than_the_bound(
    benches: dict[str, ModuleType], units: list[tuple[str, int, float]], seed: int
) -> None:
    works = works_of(benches, units)
    bound = benches["node_schedule"].lower_bound(works)
    random.Random(seed).shuffle(works)
    assert makespan(works) >= bound


def test_a_mix_is_the_same_each_time_and_differs_by_seed(benches: dict[str, ModuleType]) -> None:
    mix = benches["node_schedule"].mix
    assert mix(3, 0.0) == mix(3, 0.0) != mix(4, 0.0)
    assert all(work.seconds == work.expected for work in mix(3, 0.0))
    assert any(work.seconds != work.expected for work in mix(3, 0.5))


def test_distribution(benches: dict[str, ModuleType]) -> None:
    lines = benches["node_schedule"].distribution([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.05])
    assert lines[0] == "  min 1.000  10 % 1.000  median 1.000  90 % 1.020  max 1.050"
    assert [line.split()[3] for line in lines[1:]] == ["6", "0", "1"]
    assert max(map(len, lines)) <= 80


ENDS = {
    "all": ("....\n4 passed in 1.2s", {"passed": 4}),
    "a crash that was replaced": ("x\n1 failed, 3 passed in 1.2s", {"passed": 3, "failed": 1}),
    "lost": ("1 failed, 1 passed in 3.00s", {"passed": 1, "failed": 1, "lost": 2}),
    "more than there are": ("5 passed in 3.00s", {"passed": 5, "twice": 1}),
    "nothing": ("", {"lost": 4}),
    "an internal error": ("INTERNALERROR> passed 4\nno tests ran in 0.1s", {"lost": 4}),
}


@pytest.mark.parametrize(("printed", "expected"), ENDS.values(), ids=ENDS)
def test_what_xdist_said(benches: dict[str, ModuleType], printed: str, expected: dict[str, int]) -> None:
    assert +benches["node_normal"].xdist_ends(printed, 4) == Counter(expected)


def test_what_the_node_said(benches: dict[str, ModuleType]) -> None:
    outcomes = {"a": ["passed"], "b": ["failed"], "c": ["passed", "passed"]}
    ran = benches["node_runs"].Ran(1.0, outcomes, 0.5, 8)
    expected = Counter(passed=2, failed=1, lost=1, twice=1)
    assert benches["node_normal"].node_ends(ran, 4) == expected


def test_the_made_up_sleep_is_the_bound(benches: dict[str, ModuleType]) -> None:
    normal = benches["node_normal"]
    durations = normal.made_up(60, 8, 30.0)
    assert normal.lower_bound(durations, 8) == pytest.approx(30.0, abs=0.1)
    assert durations == normal.made_up(60, 8, 30.0)
