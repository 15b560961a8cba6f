"""What bench/event_to_plan.py computes beside running programs: its clock, its repository, its table."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

CLONE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    before = list(sys.path)
    sys.path.insert(0, str(CLONE))
    yield importlib.import_module("bench.event_to_plan")
    sys.path[:] = before


def test_a_part_within_a_part_counts_once(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 3.0, 5.0, 9.0])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(times))
    clock = bench.Clock()
    with clock.part("outer"), clock.part("inner"):
        pass
    assert clock.seconds == {"outer": 3.0 + 4.0, "inner": 2.0}


def test_all_parts_are_there(bench: ModuleType) -> None:
    """A function that was renamed would count as `the rest`, and nobody would see it."""
    for path in bench.PARTS:
        _, owner, name = bench._owner(path)
        assert callable(getattr(owner, name)), path


def test_the_repository_has_as_many_files_as_asked_for(bench: ModuleType, tmp_path: Path) -> None:
    head, main = bench.made(tmp_path / "x.git", 100, 10)
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", head],
        cwd=tmp_path / "x.git",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(listed) == 102  # the configuration, and the changed file
    assert sum("/tests/test_" in path for path in listed) == 20
    assert head != main


def test_the_table_has_shares_of_the_whole(bench: ModuleType) -> None:
    text = bench.table({("a", "x"): 3.0, ("b", "y"): 1.0}, {("a", "x"): 1.0})
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["a", "x", "3.00s", "75%", "1.00s", "100%"],
        ["b", "y", "1.00s", "25%", "0.00s", "0%"],
        ["event", "to", "plan", "4.00s", "1.00s"],
    ]
