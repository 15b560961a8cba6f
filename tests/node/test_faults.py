"""Faults of tests on the node: the right outcome for the right test, everything else runs, nothing is left.

Each fault stands twice in one run, at positions that a seed chooses, with 20 tests behind it in its file.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AFTER = 20
SEEDS = (1, 2)

# The fault's test, and what has to be said of it.
FAULTS: dict[str, tuple[str, str, str]] = {
    "segfault": ("os.kill(os.getpid(), signal.SIGSEGV)", "failed", "killed by SIGSEGV"),
    "leave": ("os._exit(0)", "failed", "the test process left with exit code 0"),
    "hang": (
        "subprocess.Popen(['sh', '-c', 'trap \"\" TERM; while :; do sleep 1; done'])\n"
        "    while True:\n        ctypes.PyDLL(None).sleep(600)  # in C, with the interpreter's lock held",
        "failed",
        "no end within its limit of 2 s: killed",
    ),
    "hang_until_a_signal": (
        "ctypes.PyDLL(None).sleep(600)",
        "failed",
        "no end within its limit of 2 s: killed",
    ),
    "pytest_exit": ("pytest.exit('enough')", "failed", "Exit: enough"),
    "interrupt": ("raise KeyboardInterrupt", "failed", "KeyboardInterrupt"),
    "output": (
        "for _ in range(50):\n        os.write(1, b'x' * 1_000_000)\n    assert not 'told'",
        "failed",
        "assert",
    ),
    "close_descriptor": ("os.close(1)", "passed", ""),
    # pytest's capture breaks: an internal error, of that test only.
    "close_stdout": ("sys.stdout.close()", "failed", "I/O operation on closed file"),
    "double_fork": ("start_daemon()", "passed", ""),
}
HEADER = """import ctypes, os, signal, subprocess, sys, time
import pytest


def start_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)

"""


def faulty_file(code: str, position: int, limit: int = 2) -> str:
    tests = [f"def test_{i}():\n    pass\n" for i in range(position)]
    tests.append(f"@pytest.mark.timeout({limit})\ndef test_fault():\n    {code}\n")
    tests += [f"def test_{i}():\n    pass\n" for i in range(position, position + AFTER)]
    return HEADER + "\n".join(tests)


@pytest.mark.parametrize("seed", SEEDS)
def test_faults(run_tree: Any, seed: int) -> None:
    chance = random.Random(seed)
    files, expected, messages = {"pytest.ini": "[pytest]\nmarkers = timeout(seconds)\n"}, {}, {}
    for name, (code, outcome, message) in FAULTS.items():
        for twin in "ab":
            position = chance.randrange(6)
            path = f"test_{name}_{twin}.py"
            files[path] = faulty_file(code, position, limit=2 if name.startswith("hang") else 60)
            expected.update({f"{path}::test_{i}": "passed" for i in range(position + AFTER)})
            expected[f"{path}::test_fault"] = outcome
            messages[f"{path}::test_fault"] = message
    for twin in "ab":
        files[f"conftest_{twin}/conftest.py"] = "raise RuntimeError('broken conftest')\n"
        files[f"conftest_{twin}/test_{twin}.py"] = "def test_1():\n    pass\n"
        expected[f"conftest_{twin}/test_{twin}.py"] = "collection_error"
        messages[f"conftest_{twin}/test_{twin}.py"] = "broken conftest"
    ran = run_tree(files, config_file="pytest.ini")
    assert ran.outcomes == expected
    for nodeid, message in messages.items():
        assert message in ran.test(nodeid).message, nodeid
    assert (ran.report.verdict, ran.runs[0].problem) == ("failed", "")
    assert all(len(ran.records("end", nodeid=nodeid)) == 1 for nodeid in expected)


def test_a_hanging_test_is_shown_with_its_stack(run_tree: Any) -> None:
    files = {"test_a.py": faulty_file("ctypes.PyDLL(None).sleep(600)", 0)}
    ran = run_tree(files)
    assert "in test_fault" in ran.test("test_a.py::test_fault").output


def test_what_a_crashing_test_printed_is_kept(run_tree: Any) -> None:
    code = "os.write(2, b'last words'); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGSEGV)"
    ran = run_tree({"test_a.py": faulty_file(code, 0)})
    crashed = ran.test("test_a.py::test_fault")
    assert "Segmentation fault" in crashed.output
    assert (crashed.file, crashed.line) == ("test_a.py", 12)


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
    with small_disk(run_tree.out, "256k"):
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
