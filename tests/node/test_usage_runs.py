"""Memory and use of real test processes, from the test to the report. torch is a module of the tree."""

from __future__ import annotations

from typing import Any

from gpuci_node.worker import nvidia

GIB = 2**30
# The bookkeeping of torch.cuda, with one device of 80 GiB.
TORCH = """
import sys
from types import ModuleType, SimpleNamespace
cuda = ModuleType("torch.cuda")
sys.modules["torch.cuda"] = cuda
live = peak = count = 0
initialised = False
def take(gib):
    global live, peak, count, initialised
    initialised, count = True, count + 1
    live += gib * 2**30
    peak = max(peak, live)
def reset_peak_memory_stats(device):
    global peak
    peak = live
def memory_stats(device):
    return {
        "allocated_bytes.all.current": live,
        "allocated_bytes.all.peak": peak,
        "allocation.all.allocated": count,
        "reserved_bytes.all.current": live,
    }
cuda.is_initialized = lambda: initialised
cuda.device_count = lambda: 1
cuda.memory_stats = memory_stats
cuda.reset_peak_memory_stats = reset_peak_memory_stats
cuda.empty_cache = lambda: None
cuda.synchronize = lambda device: None
cuda.get_device_properties = lambda device: SimpleNamespace(total_memory=80 * 2**30)
"""
INI = {"pytest.ini": "[pytest]\npythonpath = .\n", "torch.py": TORCH}


def seen(ran: Any) -> dict[str, tuple[Any, Any]]:
    return {test.nodeid: (test.peak_memory_bytes, test.cuda_used) for test in ran.report.tests}


def test_figures_of_tests_reach_the_report(run_tree: Any) -> None:
    body = (
        "import os, pytest, torch\n"
        "@pytest.fixture\ndef held():\n    torch.take(1)\n    yield\n    torch.take(-1)\n"
        "def test_cpu(): pass\n"
        "def test_gpu():\n    torch.take(3)\n    torch.take(-3)\n"
        "def test_fixture(held): assert 0\n"
        "def test_crash():\n    torch.take(3)\n    os._exit(3)\n"
    )
    ran = run_tree({**INI, "test_a.py": body}, config_file="pytest.ini", gpus=1)
    found = {name.partition("::")[2]: figures for name, figures in seen(ran).items()}
    assert found.pop("test_cpu") == ((0, False) if nvidia.present() else (None, None))
    assert found == {
        "test_gpu": (3 * GIB, True),
        "test_fixture": (GIB, True),
        "test_crash": (None, None),
    }


def test_a_process_that_does_not_give_memory_back_is_replaced(run_tree: Any) -> None:
    body = "import torch\ndef test_1():\n    assert torch.live <= 2**30\n    torch.take(%d)\n"
    files = {f"test_{name}.py": body % gib for name, gib in (("a", 1), ("b", 20), ("c", 0), ("d", 0))}
    units = {file: {"expected_seconds": 9.0 - place} for place, file in enumerate(files)}
    ran = run_tree({**INI, **files}, units=units, config_file="pytest.ini", gpus=1)
    assert set(ran.outcomes.values()) == {"passed"}
    (said,) = [note["text"] for note in ran.records("note") if "not returned" in note["text"]]
    assert "20.0 GiB of GPU memory was not returned after test_b.py (GPU 0: 21.0 of 80.0 GiB held)" in said
