"""The faults that one test can have, a tree of files that have them, and what its tests tell of their run.

The tests of the node and bench/crash_table.py plant the same faults.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

AFTER = 20  # tests behind a fault in its file
BEFORE = 6  # at most as many in front of it
LOG = "ran.jsonl"


@dataclass(frozen=True)
class Fault:
    """What a test does, and what has to be said of it.

    `limit` is its timeout mark in seconds. `ends`: its process runs no further test.
    """

    code: str
    outcome: str = "failed"
    message: str = ""
    limit: int = 60
    ends: bool = True


FAULTS = {
    "segfault": Fault("ctypes.string_at(0)", message="killed by SIGSEGV"),
    "abort": Fault("os.abort()", message="killed by SIGABRT"),
    "leave": Fault("os._exit(0)", message="the test process left with exit code 0"),
    "kill": Fault("os.kill(os.getpid(), signal.SIGKILL)", message="killed by SIGKILL"),
    "hang": Fault("lock_twice()", message="no end within its limit of 2 s: killed", limit=2),
    "hang_with_child": Fault(
        "subprocess.Popen(['sh', '-c', 'trap \"\" TERM; while :; do sleep 1; done'])\n    lock_twice()",
        message="no end within its limit of 2 s: killed",
        limit=2,
    ),
    "hang_until_a_signal": Fault(
        # The signal for its stacks ends it, and the process goes on.
        "ctypes.PyDLL(None).sleep(600)",
        message="no end within its limit of 2 s",
        limit=2,
        ends=False,
    ),
    "bomb": Fault("start_children(50)", "passed", ends=False),
    "double_fork": Fault("start_daemon()", "passed", ends=False),
    "thread": Fault("threading.Thread(target=threading.Event().wait).start()", "passed", ends=False),
    "close_descriptor": Fault("os.close(1)", "passed", ends=False),
    # pytest's capture breaks: an internal error, of that test only.
    "close_stdout": Fault("sys.stdout.close()", message="I/O operation on closed file"),
    "allocate": Fault("assert len(b'x' * HALF_A_GIGABYTE)", "passed", ends=False),
    "keep_memory": Fault("KEPT.append(b'x' * HALF_A_GIGABYTE)", "passed", ends=False),
    "output": Fault(
        "for _ in range(50):\n        os.write(1, b'x' * 1_000_000)\n    assert not 'told'",
        message="assert",
        ends=False,
    ),
    "pytest_exit": Fault("pytest.exit('enough')", message="Exit: enough"),
    "interrupt": Fault("raise KeyboardInterrupt", message="KeyboardInterrupt"),
}

HEADER = '''import ctypes, os, signal, subprocess, sys, threading, time
import pytest

pytestmark = pytest.mark.xdist_group(__name__)
HALF_A_GIGABYTE = 500_000_000
KEPT = []


def lock_twice():
    """Wait for ever in C, with the interpreter's lock held: no handler of a signal runs."""
    library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)


def start_children(count):
    for _ in range(count):
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
            os._exit(0)


def start_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)

'''

# A device is locked while a test runs on it, by a lock that ends with the process and that children don't
# inherit. Without gpuci a test takes its device by the worker's number, as conftests for pytest-xdist do.
CONFTEST = '''import contextlib, fcntl, json, os, time
import pytest

FOLDER = os.path.dirname(os.path.abspath(__file__))
WORKER = "PYTEST_XDIST_WORKER"


def devices():
    if "GPUCI_NODE" in os.environ:
        return os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    return [str(int(os.environ.get(WORKER, "gw0")[2:]) % 8)]


@contextlib.contextmanager
def locked(device):
    """Whether nobody else holds it; holds it until the end."""
    with open(os.path.join(FOLDER, "device-" + device), "w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


@pytest.fixture(autouse=True)
def _told(request):
    with contextlib.ExitStack() as stack:
        seat = devices()
        record = {
            "nodeid": request.node.nodeid,
            "worker": os.environ.get(WORKER, ""),
            "devices": seat,
            "process": os.getpid(),
            "at": time.monotonic(),
            "alone": all([stack.enter_context(locked(device)) for device in seat]),
        }
        log = os.open(os.path.join(FOLDER, "ran.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(log, json.dumps(record).encode() + b"\\n")
        os.close(log)
        yield
'''


@dataclass(frozen=True)
class Ran:
    """What a test told when it began, `at` seconds of the machine's clock.

    `alone`: no other test used one of its devices.
    """

    nodeid: str
    worker: str
    devices: tuple[str, ...]
    process: int
    at: float
    alone: bool

    @property
    def file(self) -> str:
        return self.nodeid.partition("::")[0]


@dataclass(frozen=True)
class Tree:
    """Files, the outcome of each test, and the faults by node id."""

    files: dict[str, str]
    outcomes: dict[str, str]
    faults: dict[str, Fault]

    @property
    def ends(self) -> dict[str, bool]:
        """Whether a test of the file ends its process."""
        tests = [nodeid.partition("::")[0] for nodeid in self.outcomes]
        ending = {nodeid.partition("::")[0] for nodeid, fault in self.faults.items() if fault.ends}
        return {file: file in ending for file in tests}

    def order(self, file: str) -> list[str]:
        """The tests of a file as they stand in it."""
        names = re.findall(r"^def (test_\w+)", self.files[file], re.MULTILINE)
        return [f"{file}::{name}" for name in names]


def plant(faults: Mapping[str, Fault], seed: int, sound: int = 0, work: float = 0.01) -> Tree:
    """Each fault in two files, at random positions, and files without one, in random order.

    All other tests work for so many seconds.
    """
    chance = random.Random(seed)
    planted = [(f"test_{name}_{twin}.py", fault) for name, fault in faults.items() for twin in "ab"]
    everything = [*planted, *((f"test_sound_{number}.py", None) for number in range(sound))]
    chance.shuffle(everything)
    tree = Tree(
        {
            "pytest.ini": "[pytest]\nmarkers =\n    timeout(seconds)\n    xdist_group(name)\n",
            "conftest.py": CONFTEST,
        },
        {},
        {},
    )
    for path, fault in everything:
        position = chance.randrange(BEFORE)
        tree.files[path] = faulty_file(fault, position, work)
        tree.outcomes.update({f"{path}::test_{number}": "passed" for number in range(position + AFTER)})
        if fault is not None:
            tree.outcomes[f"{path}::test_fault"] = fault.outcome
            tree.faults[f"{path}::test_fault"] = fault
    return tree


def faulty_file(fault: Fault | None, position: int, work: float = 0.01) -> str:
    """A file whose tests work for so many seconds, with a fault at a position and AFTER tests behind it."""
    tests = [f"def test_{number}():\n    time.sleep({work})\n" for number in range(position + AFTER)]
    if fault is not None:
        mark = f"@pytest.mark.timeout({fault.limit})"
        tests.insert(position, f"{mark}\ndef test_fault():\n    {fault.code}\n")
    return HEADER + "\n".join(tests)


def read_log(tree: Path) -> list[Ran]:
    """What the tests of a tree told, in that order."""
    path = tree / LOG
    lines = path.read_text().splitlines() if path.exists() else []
    return [Ran(**{**record, "devices": tuple(record["devices"])}) for record in map(json.loads, lines)]


def living(tree: Path) -> list[int]:
    """The processes whose working directory is the tree."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            inside = entry.name.isdigit() and os.readlink(entry / "cwd") == str(tree.resolve())
        except OSError:
            continue
        found += [int(entry.name)] if inside else []
    return found
