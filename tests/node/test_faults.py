"""Faults of tests on the node, one by one: what is said of them. test_crash_table.py has all in one run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.node.faults import AFTER, FAULTS, HEADER, Fault, faulty_file


def test_a_hang_that_a_signal_ends_is_a_failure_all_the_same(run_tree: Any) -> None:
    ran = run_tree({"test_a.py": faulty_file(FAULTS["hang_until_a_signal"], 3)})
    assert "no end within its limit of 2 s" in ran.test("test_a.py::test_fault").message
    others = {f"test_a.py::test_{i}": "passed" for i in range(3 + AFTER)}
    assert ran.outcomes == {**others, "test_a.py::test_fault": "failed"}


def test_a_hanging_test_is_shown_with_its_stack(run_tree: Any) -> None:
    ran = run_tree({"test_a.py": faulty_file(FAULTS["hang"], 0)})
    assert "in test_fault" in ran.test("test_a.py::test_fault").output


def test_what_a_crashing_test_printed_is_kept(run_tree: Any) -> None:
    code = "os.write(2, b'last words'); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGSEGV)"
    ran = run_tree({"test_a.py": faulty_file(Fault(code), 0)})
    crashed = ran.test("test_a.py::test_fault")
    assert "Segmentation fault" in crashed.output
    assert (crashed.file, crashed.line) == ("test_a.py", HEADER.count("\n") + 1)


@pytest.mark.parametrize(
    ("files", "red"),
    [
        (
            {"a/conftest.py": "raise RuntimeError('broken conftest')", "a/test_x.py": "def test_1(): pass"},
            {"a/test_x.py": "broken conftest"},
        ),
        ({"test_x.py": "import os; os._exit(3)"}, {"test_x.py": "exit code 3"}),
        ({"test_x.py": "import os, signal; os.kill(os.getpid(), signal.SIGABRT)"}, {"test_x.py": "SIGABRT"}),
        ({"test_x.py": "import pytest; pytest.exit('not here')"}, {"test_x.py": "not here"}),
        ({"test_x.py": "import no_such_module_at_all"}, {"test_x.py": "no_such_module_at_all"}),
        ({"test_x.py": "def test_1(:\n"}, {"test_x.py": "SyntaxError"}),
    ],
    ids=["conftest", "leave", "abort", "pytest_exit", "import_error", "syntax_error"],
)
def test_a_file_that_cannot_be_collected_costs_itself_only(
    run_tree: Any, files: dict[str, str], red: dict[str, str]
) -> None:
    ran = run_tree({**files, "b/test_good.py": "def test_1(): pass"})
    assert ran.outcomes == {**dict.fromkeys(red, "collection_error"), "b/test_good.py::test_1": "passed"}
    for nodeid, text in red.items():
        told = ran.test(nodeid)
        assert text in told.message + told.output


def test_a_file_that_hangs_while_it_is_imported_ends_at_the_limit(run_tree: Any) -> None:
    files = {"test_x.py": "import time; time.sleep(600)", "test_y.py": "def test_1(): pass"}
    ran = run_tree(files, units={"test_x.py": {"timeout_seconds": 2.0}})
    assert ran.outcomes == {"test_x.py": "collection_error", "test_y.py::test_1": "passed"}
    assert "not collected within 2 s" in ran.test("test_x.py").message


def test_threads_and_processes_that_never_end_are_ended(run_tree: Any) -> None:
    body = (
        "import subprocess, threading, time\n"
        "def test_child(): subprocess.Popen(['sleep', '611'], start_new_session=True)\n"
        "def test_bomb():\n    for _ in range(50): subprocess.Popen(['sleep', '611'])\n"
    )
    ran = run_tree({"test_x.py": body})
    assert set(ran.outcomes.values()) == {"passed"}
    (note,) = ran.records("note", topic="left_over")
    assert note["text"] == "processes left behind and killed: 51"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_that_fills_up_under_the_journal_is_infra_and_no_outcome_is_lost(run_tree: Any) -> None:
    noisy = "def test_{}():\n    print('x' * 5000)\n    assert 0\n"
    files = {f"test_{twin}.py": "\n".join(noisy.format(i) for i in range(60)) for twin in "ab"}
    with small_disk(run_tree.out, "512k"):  # the node's code takes about half of it
        ran = run_tree(files)
    expected = {f"{path}::test_{i}": "failed" for path in files for i in range(60)}
    assert ran.outcomes == expected
    assert ran.report.verdict == "failed", "the tests failed all the same"
    (shard,) = ran.report.shards
    assert shard.verdict == "infra"
    assert "journal.jsonl can't be written: No space left on device" in shard.reason


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)
