"""What bench/crash_table.py counts: each way of going wrong shows in its own column."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from types import ModuleType

import pytest
from tests.node.faults import Fault, Ran, Tree

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "crash_table.py"
A, FAULT, B, C = (f"test_x.py::test_{name}" for name in ("a", "fault", "b", "c"))
TREE = Tree(
    {"test_x.py": "def test_a(): ...\ndef test_fault(): ...\ndef test_b(): ...\ndef test_c(): ...\n"},
    {A: "passed", FAULT: "failed", B: "passed", C: "passed"},
    {FAULT: Fault("os.abort()")},
)


@pytest.fixture(scope="module")
def crash_table() -> Iterator[ModuleType]:
    """The bench as a module."""
    path = list(sys.path)
    spec = importlib.util.spec_from_file_location("crash_table", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
    sys.path[:] = path


def ran(nodeid: str, process: int = 1, at: float = 0.0, alone: bool = True) -> Ran:
    return Ran(nodeid, "gw0", ("0",), process, at, alone)


ALL = [ran(A), ran(FAULT, at=1.0), ran(B, 2, at=5.0), ran(C, 2, at=5.1)]


@pytest.mark.parametrize(
    ("told", "reported", "counts"),
    [
        (ALL, TREE.outcomes, (0, 0, 0, 0)),
        (ALL[:2], TREE.outcomes, (2, 0, 0, 0)),
        ([*ALL, ran(FAULT, 3), ran(FAULT, 4)], TREE.outcomes, (0, 2, 0, 0)),
        (ALL, {**TREE.outcomes, FAULT: "passed"}, (0, 0, 1, 0)),
        (ALL, {A: "passed"}, (0, 0, 3, 0)),
        ([*ALL[:3], ran(C, alone=False)], TREE.outcomes, (0, 0, 0, 1)),
    ],
    ids=["right", "lost", "twice", "wrong", "not reported", "shared"],
)
def test_counts(
    crash_table: ModuleType, told: list[Ran], reported: dict[str, str], counts: tuple[int, ...]
) -> None:
    cost = crash_table.judge(TREE, told, reported, left=0, seconds=1.0)
    assert astuple(cost)[:4] == counts


def test_pace_is_of_tests_behind_the_fault_in_one_process(crash_table: ModuleType) -> None:
    cost = crash_table.judge(TREE, ALL, TREE.outcomes, left=0, seconds=1.0)
    assert cost.pace == pytest.approx(100)
    assert crash_table.judge(TREE, ALL[:3], TREE.outcomes, left=0, seconds=1.0).pace is None


def test_rows_fit_80_columns(crash_table: ModuleType) -> None:
    cost = crash_table.Cost(1000, 1000, 1000, 1000, 1000, 1234.5, 100_000.0)
    for line in (crash_table.row("close_descriptor", "worksteal", cost), crash_table.total("gpuci", [cost])):
        assert len(line) <= 80
    assert "hangs" in crash_table.row("hang", "load", crash_table.Cost(0, 0, 0, 0, 0, None, None))
