"""Odd ends and odd limits of tests: the right outcome for them, and the rest of their file runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

AFTER = "def test_after(): pass\n"

ENDS = {
    "a real-time signal": ("os.kill(os.getpid(), signal.SIGRTMAX - 1)", "killed by signal 63"),
    "another program that hangs": (
        "os.execv('/bin/sleep', ['sleep', '600'])",
        "no end within its limit of 2 s: killed",
    ),
}


@pytest.mark.parametrize(("code", "message"), ENDS.values(), ids=ENDS)
def test_ends(run_tree: Any, code: str, message: str) -> None:
    body = f"import os, signal, pytest\n@pytest.mark.timeout(2)\ndef test_1(): {code}\n" + AFTER
    ran = run_tree({"test_a.py": body})
    assert ran.outcomes == {"test_a.py::test_1": "failed", "test_a.py::test_after": "passed"}
    assert ran.test("test_a.py::test_1").message == message


@pytest.mark.parametrize("limit", ["float('inf')", "float('nan')", "10**400", "10**8", "-1", "'soon'", "0"])
def test_any_limit_can_be_asked_for(run_tree: Any, limit: str) -> None:
    body = f"import pytest\n@pytest.mark.timeout({limit})\ndef test_1(): pass\n" + AFTER
    ran = run_tree({"test_a.py": body})
    assert (ran.runs[0].problem, ran.report.verdict) == ("", "passed")
    assert [record["nodeid"] for record in ran.records("end")] == [
        "test_a.py::test_1",
        "test_a.py::test_after",
    ]


def test_a_test_that_empties_the_environment_costs_the_next_nothing(run_tree: Any) -> None:
    body = (
        "import os\n"
        "def test_1(): os.environ.clear()\n"
        "def test_2(worker_id, testrun_uid):\n"
        "    assert (worker_id, os.environ['CUDA_VISIBLE_DEVICES']) == ('gw0', '0')\n"
    )
    assert set(run_tree({"test_a.py": body}).outcomes.values()) == {"passed"}


SHARED = """
import multiprocessing
from multiprocessing import shared_memory

def answer(queue): queue.put(3)

def test_1():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=answer, args=(queue,))
    process.start()
    assert queue.get() == 3
    process.join()

def test_2():
    block = shared_memory.SharedMemory(create=True, size=1000)  # not unlinked
    with open("blocks", "a") as stream: stream.write(block.name + "\\n")
"""


def test_the_helpers_of_multiprocessing_may_free_what_they_watch(run_tree: Any) -> None:
    ran = run_tree({f"test_{twin}.py": SHARED for twin in "abcd"})
    assert set(ran.outcomes.values()) == {"passed"}
    assert ran.records("note") == []
    blocks = (run_tree.root / "blocks").read_text().split()
    assert [name for name in blocks if Path("/dev/shm", name).exists()] == []


WORKER = """
import pytest

def pytest_sessionstart(session):
    told = session.config.workerinput
    assert {"workerid", "workercount", "testrunuid", "cov_master_host", "cov_master_topdir"} <= set(told)

def pytest_sessionfinish(session):
    session.config.workeroutput["mine"] = 1
    open("told", "w").close()
"""


def test_plugins_for_xdist_workers_find_what_they_ask_for(run_tree: Any) -> None:
    ran = run_tree({"conftest.py": WORKER, "test_a.py": "def test_1(): pass\n"})
    assert ran.outcomes == {"test_a.py::test_1": "passed"}
    assert (run_tree.root / "told").exists()


# What pytest-forked does when the process of a test crashes.
ONE_REPORT = """
import pytest
from _pytest import runner

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    if item.name != "test_1":
        return None
    open("ran", "a").write("x")
    call = runner.CallInfo.from_call(lambda: 0 / 0, "???")
    item.ihook.pytest_runtest_logreport(report=runner.pytest_runtest_makereport(item, call))
    return True
"""


def test_one_report_may_stand_for_all_phases(run_tree: Any) -> None:
    ran = run_tree({"conftest.py": ONE_REPORT, "test_a.py": "def test_1(): pass\n" + AFTER})
    assert ran.outcomes == {"test_a.py::test_1": "failed", "test_a.py::test_after": "passed"}
    assert "ZeroDivisionError" in ran.test("test_a.py::test_1").message
    assert (run_tree.root / "ran").read_text() == "x"  # not run again
