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
from hypothesis import given
from hypothesis import strategies as st

CLONE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def benches() -> Iterator[dict[str, ModuleType]]:
    """The benches as modules, by name; they put the clone on the path themselves."""
    before = list(sys.path)
    sys.path.insert(0, str(CLONE))
    names = ("node_runs", "node_isolated", "node_normal", "node_schedule")
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


def lines(*ended: str) -> str:
    """What xdist prints of each, among other things."""
    told = "".join(f"[gw{n}] [{n * 20:3}%] {text} \n" for n, text in enumerate(ended, 1))
    return f"test_x.py::test_1 \n{told}[gw1] node down: Not properly terminated\n"


ENDS = {
    "all": (lines(*(f"PASSED t.py::t[{n}]" for n in "abcd")), {"passed": 4}),
    "a crash": (
        lines("FAILED t.py::a", "PASSED t.py::b", "PASSED t.py::c"),
        {"failed": 1, "passed": 2, "lost": 1},
    ),
    "twice": (
        lines("PASSED t.py::a", "PASSED t.py::a", "PASSED t.py::b", "PASSED t.py::c", "PASSED t.py::d"),
        {"passed": 4, "twice": 1},
    ),
    "killed before its first test": ("bringing up nodes...\n", {"lost": 4}),
    "the summary is not counted again": (
        lines("FAILED t.py::a") + "FAILED t.py::a - x\n",
        {"failed": 1, "lost": 3},
    ),
}


@pytest.mark.parametrize(("printed", "expected"), ENDS.values(), ids=ENDS)
def test_what_xdist_said(benches: dict[str, ModuleType], printed: str, expected: dict[str, int]) -> None:
    assert +benches["node_normal"].xdist_ends(printed, 4) == Counter(expected)


WRONG = {
    "right": ({"a": ["passed"], "b": ["passed"]}, 9.0, 2, ""),
    "one failed": ({"a": ["passed"], "b": ["failed"]}, 9.0, 2, "gpuci passed 1 of 2"),
    "one lost": ({"a": ["passed"]}, 9.0, 2, "gpuci passed 1 of 2"),
    "one twice": ({"a": ["passed"], "b": ["passed", "passed"]}, 9.0, 2, "gpuci passed 1 of 2"),
    "faster than its work": ({"a": ["passed"], "b": ["passed"]}, 2.0, 2, "impossible"),
    "the other side": ({"a": ["passed"], "b": ["passed"]}, 9.0, 1, "plain pytest passed 1 of 2"),
}


@pytest.mark.parametrize(("outcomes", "seconds", "plain", "said"), WRONG.values(), ids=WRONG)
def test_a_round_that_was_not_right_gives_no_figure(
    benches: dict[str, ModuleType], outcomes: dict[str, list[str]], seconds: float, plain: int, said: str
) -> None:
    ran = benches["node_runs"].Ran(seconds, outcomes, 0.5, 1)
    complaint = benches["node_isolated"].wrong(ran, plain, 2, 6.2)
    assert said in complaint if said else complaint == ""


def test_what_hangs_is_killed_with_what_it_started(benches: dict[str, ModuleType], tmp_path: Path) -> None:
    python = tmp_path / "python"  # a pytest may take longer to start than the limit
    python.write_text("#!/bin/sh\nsleep 1000 &\necho $! >pid\nwait\n")
    python.chmod(0o755)
    ran, _printed = benches["node_runs"].with_pytest(tmp_path, str(python), [], limit=3.0)
    assert ran.hung
    status = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"  # whoever adopted it may be slow


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
