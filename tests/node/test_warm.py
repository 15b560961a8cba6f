"""Warm processes: what is shared is shared once, what must not be shared is not, and nothing else changes.

TRACE is a file to which the trees append lines: what ran, in which process.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

TRACE = """
import os
def trace(*words):
    worker = "-" if words[0] == "import" else os.environ["PYTEST_XDIST_WORKER"]
    with open(os.path.join(os.path.dirname(__file__), "TRACE"), "a") as stream:
        stream.write(" ".join([*words, os.readlink("/proc/self"), worker]) + "\\n")
"""
PASSES = "def test_1(): pass\n"


def traced(root: Path) -> list[list[str]]:
    return [line.split() for line in (root / "TRACE").read_text().splitlines()]


def with_node(run_tree: Any, **fields: Any) -> Any:
    return replace(run_tree.config, node=replace(run_tree.config.node, **fields))


def topics(ran: Any) -> list[str]:
    return sorted(record["topic"] for record in ran.records("note"))


SUITE = {
    "helper.py": TRACE,
    "conftest.py": (
        "import pytest, helper\n"
        "@pytest.fixture(scope='session', autouse=True)\n"
        "def session():\n    helper.trace('session-up')\n    yield\n    helper.trace('session-down')\n"
        "@pytest.fixture(scope='module', autouse=True)\n"
        "def module(request):\n"
        "    helper.trace('module-up', request.module.__name__)\n"
        "    yield\n"
        "    helper.trace('module-down', request.module.__name__)\n"
    ),
    **{
        f"test_{name}.py": "import helper\nhelper.trace('import', __name__)\n"
        "def test_1(): helper.trace('test', __name__)\ndef test_2(): pass\n"
        for name in "abcdef"
    },
}


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("fork", ["auto", "never"])
def test_a_slot_worker_keeps_its_session_and_ends_modules_in_time(
    run_tree: Any, gpus: int, fork: str
) -> None:
    ran = run_tree(SUITE, gpus=gpus, config=with_node(run_tree, fork=fork))
    assert Counter(ran.outcomes.values()) == {"passed": 12}
    lines = traced(run_tree.root)
    workers = {line[-2] for line in lines if line[0] == "test"}
    assert len(workers) == gpus
    assert {line[-1] for line in lines if line[0] == "test"} == {f"gw{i}" for i in range(gpus)}
    for worker in workers:
        mine = [line[:-2] for line in lines if line[-2] == worker and line[0] != "import"]
        assert (mine[0], mine[-1]) == (["session-up"], ["session-down"])
        names = [line[1] for line in mine if line[0] == "test"]
        assert mine[1:-1] == [
            line for name in names for line in (["module-up", name], ["test", name], ["module-down", name])
        ]
    imports = [line for line in lines if line[0] == "import"]
    assert len(imports) == (6 if fork == "auto" else 6 * gpus)
    if fork == "auto":
        assert not {line[-2] for line in imports} & workers, "the parent imports, its copies run tests"


def test_files_run_longest_first(run_tree: Any) -> None:
    seconds = {"test_a.py": 1.0, "test_b.py": 3.0, "test_c.py": 2.0}
    units = {path: {"expected_seconds": value} for path, value in seconds.items()}
    ran = run_tree(dict.fromkeys(seconds, PASSES), gpus=1, units=units)
    assert [record["nodeid"][:9] for record in ran.records("start")] == [
        "test_b.py",
        "test_c.py",
        "test_a.py",
    ]


def test_copies_of_a_session_have_directories_output_and_names_of_their_own(run_tree: Any) -> None:
    body = (
        "import os, sys, time, pytest\n"
        "def test_directory(tmp_path, tmp_path_factory, request):\n"
        "    (tmp_path_factory.getbasetemp() / 'mine').touch(exist_ok=False)\n"
        "    request.config.cache.set('me', os.getpid())\n"
        "def test_output(capsys):\n"
        "    print('x' * 1000)\n"
        "    assert capsys.readouterr().out == 'x' * 1000 + '\\n'\n"
        "def test_says(worker_id, request):\n"
        "    told = request.config.workerinput['workerid']\n"
        "    assert worker_id == told == os.environ['PYTEST_XDIST_WORKER']\n"
        "    print('I am', worker_id)\n"
        "    os.write(2, b'below')\n"
        "    time.sleep(0.2)\n"
        "    assert request.config.cache.get('me', 0) == 1\n"
    )
    ran = run_tree({f"test_{name}.py": body for name in "abcd"}, gpus=4)
    failed = [test for test in ran.report.tests if test.outcome == "failed"]
    assert Counter(ran.outcomes.values()) == {"passed": 8, "failed": 4}
    assert sorted(test.slot for test in failed) == ["gw0", "gw1", "gw2", "gw3"]
    for test in failed:
        said = test.output.partition("--- Captured stdout call ---")[2]
        assert [line for line in said.splitlines() if line] == [
            f"I am {test.slot}",
            "--- Captured stderr call ---",
            "below",
        ]


# A file that must not be forked beside others, and what is said of it.
APART = {
    "a worker's name": ("import os\nNAME = os.environ['PYTEST_XDIST_WORKER']\n", "reads PYTEST_XDIST_WORKER"),
    "a port": ("import socket\nS = socket.socket()\nS.bind(('127.0.0.1', 0))\n", "binds a socket"),
    "a thread": (
        "import threading\nT = threading.Thread(target=threading.Event().wait, daemon=True)\nT.start()\n",
        "thread",
    ),
    "an error": (
        "import sys\nif 'test_b' in sys.modules: raise RuntimeError('not beside b')\n",
        "not beside b",
    ),
    "an exit of pytest": ("import sys, pytest\nif 'test_b' in sys.modules: pytest.exit('bye')\n", "bye"),
    "an exit": ("import sys\nif 'test_b' in sys.modules: sys.exit(3)\n", "SystemExit"),
    "an end": ("import os, sys\nif 'test_b' in sys.modules: os._exit(3)\n", "exit code 3"),
    "a crash": (
        "import os, signal, sys\nif 'test_b' in sys.modules: os.kill(os.getpid(), signal.SIGSEGV)\n",
        "killed by SIGSEGV",
    ),
}


@pytest.mark.parametrize(("head", "reason"), APART.values(), ids=APART)
def test_a_file_that_must_not_be_beside_others_runs_by_itself(run_tree: Any, head: str, reason: str) -> None:
    files = {"helper.py": TRACE, "test_b.py": "import helper\ndef test_1(): helper.trace('b')\n"}
    files["test_c.py"] = files["test_b.py"]
    files["test_x.py"] = head + "import helper\ndef test_1(): helper.trace('x')\n"
    ran = run_tree(files, gpus=1)
    assert Counter(ran.outcomes.values()) == {"passed": 3}
    processes = [line[1] for line in traced(run_tree.root)]
    assert len(set(processes)) == 2
    (note,) = ran.records("note", topic="own_process")
    assert "test_x.py runs in a process of its own" in note["text"]
    assert reason in note["text"]


def test_a_file_that_hangs_while_it_is_imported_costs_its_own_limit_once(run_tree: Any) -> None:
    files = {"test_a.py": PASSES, "test_b.py": PASSES, "test_x.py": "import time; time.sleep(600)"}
    ran = run_tree(files, units={"test_x.py": {"timeout_seconds": 1.0}})
    assert ran.outcomes == {
        "test_a.py::test_1": "passed",
        "test_b.py::test_1": "passed",
        "test_x.py": "collection_error",
    }
    assert "not collected within 1 s" in ran.test("test_x.py").message


# A root that can't be forked once it is collected: its workers collect by themselves.
WHOLE_ROOT = {
    "a name": "import os\nNAME = os.environ.get('PYTEST_XDIST_WORKER')\n",
    "workerinput": "def pytest_configure(config):\n    config.me = config.workerinput['workerid']\n",
    "a hook for the end": "def pytest_sessionfinish(session): pass\n",
    "a directory": "import tempfile\nMINE = tempfile.mkdtemp()\n",
}


@pytest.mark.parametrize("conftest", WHOLE_ROOT.values(), ids=WHOLE_ROOT)
def test_a_root_that_must_not_be_forked_is_collected_by_each_worker(run_tree: Any, conftest: str) -> None:
    body = "import helper\nhelper.trace('import')\ndef test_1(): helper.trace('test')\n"
    files = {"helper.py": TRACE, "conftest.py": conftest, **{f"test_{name}.py": body for name in "abcd"}}
    ran = run_tree(files, gpus=2)
    assert Counter(ran.outcomes.values()) == {"passed": 4}
    assert [note["text"].partition(":")[0] for note in ran.records("note", topic="not_forked")] == [
        "conftest.py"
    ]
    lines = traced(run_tree.root)
    assert {line[1] for line in lines if line[0] == "test"} <= {
        line[1] for line in lines if line[0] == "import"
    }


def test_what_a_file_registers_for_the_end_is_done_once_after_all_copies(run_tree: Any) -> None:
    head = (
        "import atexit, helper, tempfile, weakref\n"
        "class Thing: pass\n"
        "THING = Thing()\n"
        "atexit.register(helper.trace, 'imported-ends')\n"
        "weakref.finalize(THING, helper.trace, 'imported-finalizer')\n"
        "def test_1():\n    helper.trace('test')\n    atexit.register(helper.trace, 'test-ends')\n"
        "    global OTHER\n    OTHER = Thing()\n    weakref.finalize(OTHER, helper.trace, 'test-finalizer')\n"
    )
    body = "import helper\ndef test_1(): helper.trace('test')\n"
    ran = run_tree({"helper.py": TRACE, "test_a.py": head, "test_b.py": body, "test_c.py": body}, gpus=3)
    assert Counter(ran.outcomes.values()) == {"passed": 3}
    lines = traced(run_tree.root)
    assert Counter(line[0] for line in lines) == {
        "test": 3,
        "test-ends": 1,
        "test-finalizer": 1,
        "imported-ends": 1,
        "imported-finalizer": 1,
    }
    assert {line[0] for line in lines[-2:]} == {"imported-ends", "imported-finalizer"}


PRELOADED = "import os\nPID = os.getpid()\n"


def test_preloaded_modules_are_imported_once(run_tree: Any) -> None:
    body = (
        "import os\n"
        "def test_1():\n"
        "    import heavy\n"
        "    open('TRACE', 'a').write('%d\\n' % heavy.PID)\n"
        "    assert heavy.PID != os.getpid()\n"
    )
    files = {"lib/heavy.py": PRELOADED, **{f"test_{name}.py": body for name in "abcd"}}
    config = replace(with_node(run_tree, preload=("heavy",)), container={"pythonpath": ["lib"]})
    units = {f"test_{name}.py": {"mode": "isolated"} for name in "ab"}
    ran = run_tree(files, config=config, units=units)
    assert Counter(ran.outcomes.values()) == {"passed": 4}
    assert len(set((run_tree.root / "TRACE").read_text().split())) == 1


# What may be wrong with a module that is to be preloaded, and what is said; everything runs all the same.
PRELOADS = {
    "missing": (None, "preload", "heavy can't be imported (ModuleNotFoundError"),
    "raises": ("raise RuntimeError('no device')\n", "preload", "RuntimeError: no device"),
    "crashes": ("import os\nos.abort()\n", "no_base", "killed by SIGABRT"),
    "leaves": ("import sys\nsys.exit(3)\n", "no_base", "exit code 3"),
    "thread": (
        "import threading\n"
        "T = threading.Thread(target=threading.Event().wait, daemon=True, name='poller')\n"
        "T.start()\n",
        "not_forked",
        "poller",
    ),
}


@pytest.mark.parametrize(("source", "topic", "text"), PRELOADS.values(), ids=PRELOADS)
def test_a_preload_that_fails_is_said_and_costs_time_only(
    run_tree: Any, source: str | None, topic: str, text: str
) -> None:
    files = {"lib/heavy.py": source} if source is not None else {"lib/other.py": ""}
    files |= {"test_a.py": PASSES, "test_b.py": PASSES, "test_c.py": PASSES}
    config = replace(with_node(run_tree, preload=("heavy",)), container={"pythonpath": ["lib"]})
    ran = run_tree(files, config=config, units={"test_c.py": {"mode": "isolated"}})
    assert Counter(ran.outcomes.values()) == {"passed": 3}
    (note,) = ran.records("note", topic=topic)
    assert text in note["text"]


CHANGES = (
    "import locale, os, random, signal, sys, threading, warnings\n"
    "os.environ['LEFT'] = '1'\nsys.path.insert(0, '/left')\nos.chdir('/')\nrandom.seed(3)\n"
    "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\nsys.modules['json'].left = 1\nos.umask(0o777)\n"
    "def test_1(): os.nice(1)\n"
    "def test_2(): {end}\n"
)
UNCHANGED = (
    "import json, os, random, signal, sys\n"
    "def test_1(tmp_path):\n"
    "    assert 'LEFT' not in os.environ and '/left' not in sys.path and os.getcwd() != '/'\n"
    "    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL and not hasattr(json, 'left')\n"
    "    assert os.nice(0) == 0 and os.getpgid(0) == os.getsid(0) == os.getpid()\n"
    "    (tmp_path / 'x').write_text('x')\n"
)


@pytest.mark.parametrize("fork", ["auto", "never"])
@pytest.mark.parametrize(
    "end", ["pass", "os._exit(0)", "os.kill(os.getpid(), signal.SIGSEGV)", "sys.stdout.close()"]
)
def test_what_an_isolated_file_changes_reaches_no_other(run_tree: Any, end: str, fork: str) -> None:
    files = {"test_a.py": CHANGES.format(end=end), "test_b.py": UNCHANGED, "test_c.py": UNCHANGED}
    units = {path: {"mode": "isolated", "expected_seconds": 9.0 - i} for i, path in enumerate(files)}
    ran = run_tree(files, gpus=1, units=units, config=with_node(run_tree, fork=fork))
    assert ran.outcomes["test_b.py::test_1"] == ran.outcomes["test_c.py::test_1"] == "passed"
    assert ran.outcomes["test_a.py::test_1"] == "passed"


def test_a_worker_is_replaced_after_as_many_files_as_configured(run_tree: Any) -> None:
    body = "import helper\ndef test_1(): helper.trace('test')\n"
    files = {"helper.py": TRACE, **{f"test_{name}.py": body for name in "abcde"}}
    ran = run_tree(files, gpus=1, config=with_node(run_tree, recycle_after_files=2))
    assert Counter(ran.outcomes.values()) == {"passed": 5}
    by_process = Counter(line[1] for line in traced(run_tree.root))
    assert sorted(by_process.values()) == [1, 2, 2]
    assert {line[2] for line in traced(run_tree.root)} == {"gw0"}


# As much of torch as is asked for memory: a file keeps half of a device.
HOARDER = """
import gc
class cuda:
    held = 0
    is_initialized = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    empty_cache = synchronize = reset_peak_memory_stats = staticmethod(lambda *_: None)
    memory_allocated = max_memory_allocated = staticmethod(lambda *_: cuda.held)
    memory_reserved = staticmethod(lambda *_: cuda.held)
    @staticmethod
    def memory_stats(*_):
        bytes = ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current")
        return {**dict.fromkeys(bytes, cuda.held), "allocation.all.allocated": cuda.held}
    @staticmethod
    def get_device_properties(_):
        class Properties: total_memory = 1000
        return Properties
"""


def test_a_worker_that_keeps_gpu_memory_is_replaced(run_tree: Any) -> None:
    body = "import helper\ndef test_1():\n    import torch\n    helper.trace('test')\n"
    files = {"helper.py": TRACE, "lib/torch.py": HOARDER, **{f"test_{name}.py": body for name in "abcd"}}
    files["test_b.py"] = body + "    torch.cuda.held += 500\n"
    units = {f"test_{name}.py": {"expected_seconds": 9.0 - i} for i, name in enumerate("abcd")}
    config = replace(run_tree.config, container={"pythonpath": ["lib"]})
    ran = run_tree(files, gpus=1, config=config, units=units)
    assert Counter(ran.outcomes.values()) == {"passed": 4}
    (note,) = ran.records("note", topic="recycled")
    assert "test_b.py" in note["text"]
    assert [len(set(group)) for group in _pairs(traced(run_tree.root))] == [1, 1]


def _pairs(lines: list[list[str]]) -> list[list[str]]:
    processes = [line[1] for line in lines]
    return [processes[:2], processes[2:]]


def test_a_daemon_without_a_program_of_its_own_ends_with_its_test_process(run_tree: Any) -> None:
    body = (
        "import os, time\n"
        "def test_1():\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(600)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    ran = run_tree({"test_a.py": body, "test_b.py": PASSES, "test_c.py": PASSES}, gpus=1)
    assert Counter(ran.outcomes.values()) == {"passed": 3}
    (note,) = ran.records("note", topic="left_over")
    assert note["text"] == "processes left behind and killed: 1"


def test_the_rest_of_a_file_goes_on_in_the_same_slot(run_tree: Any) -> None:
    crash = (
        "import os, signal\ndef test_1(): pass\ndef test_2(): os.kill(os.getpid(), 9)\ndef test_3(): pass\n"
    )
    files = {f"test_{name}.py": crash for name in "abcdefgh"}
    ran = run_tree(files, gpus=4)
    assert Counter(ran.outcomes.values()) == {"passed": 16, "failed": 8}
    slots: dict[str, set[str]] = {}
    for record in ran.records("start"):
        slots.setdefault(record["nodeid"].partition("::")[0], set()).add(record["slot"])
    assert all(len(names) == 1 for names in slots.values()), slots


def test_a_wide_test_is_forked_from_the_same_parent(run_tree: Any) -> None:
    head = "import helper, os\nhelper.trace('import', __name__)\nimport pytest\n"
    body = head + (
        "def test_1(): pass\n"
        "def pytest_wide(): pass\n"
        "@pytest.mark.parametrize('n', [pytest.param(2, marks=pytest.mark.require_cuda_2gpu)])\n"
        "def test_2(n): assert len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')) == n\n"
    )
    files = {"helper.py": TRACE, "pytest.ini": "[pytest]\nmarkers =\n    require_cuda_2gpu\n"}
    files |= {f"test_{name}.py": body for name in "ab"}
    ran = run_tree(files, gpus=4, config_file="pytest.ini")
    assert Counter(ran.outcomes.values()) == {"passed": 4}
    assert Counter(line[1] for line in traced(run_tree.root)) == {"test_a": 1, "test_b": 1}


def test_a_thread_that_never_ends_holds_up_the_leaving_for_a_while_only(run_tree: Any) -> None:
    body = (
        "import threading\n"
        "def test_1(): threading.Thread(target=threading.Event().wait, name='sleeper').start()\n"
    )
    ran = run_tree({"test_a.py": body, "test_b.py": PASSES, "test_c.py": PASSES}, gpus=1)
    assert Counter(ran.outcomes.values()) == {"passed": 3}
    (note,) = ran.records("note", topic="threads")
    assert note["text"] == "threads that did not end within 10 s: sleeper"


SESSION = (
    "import helper, pytest\n"
    "def pytest_sessionstart(session): helper.trace('start')\n"
    "def pytest_sessionfinish(session): helper.trace('finish')\n"
    "def pytest_unconfigure(config): helper.trace('unconfigure')\n"
)


def test_a_session_that_was_started_is_finished_in_every_process(run_tree: Any) -> None:
    files = {"helper.py": TRACE, "conftest.py": SESSION, **{f"test_{name}.py": PASSES for name in "abcd"}}
    ran = run_tree(files, gpus=2)
    assert Counter(ran.outcomes.values()) == {"passed": 4}
    happened: dict[str, list[str]] = {}
    for word, process, _worker in traced(run_tree.root):
        happened.setdefault(process, []).append(word)
    assert set(map(tuple, happened.values())) == {("start", "finish", "unconfigure")}


KEPT = (
    "import pytest\n"
    "@pytest.fixture(scope='session', autouse=True)\n"
    "def kept():\n    yield\n    import torch\n    assert not torch.cuda.held, 'still held'\n"
)


def test_a_fixture_that_fails_when_its_worker_is_replaced_is_an_error_of_the_last_test(run_tree: Any) -> None:
    hoards = "def test_1():\n    import torch\n    torch.cuda.held += {}\n"
    files = {"conftest.py": KEPT, "lib/torch.py": HOARDER}
    files |= {"test_a.py": hoards.format(0), "test_b.py": hoards.format(500), "test_c.py": hoards.format(0)}
    units = {f"test_{name}.py": {"expected_seconds": 9.0 - i} for i, name in enumerate("abc")}
    config = replace(run_tree.config, container={"pythonpath": ["lib"]})
    ran = run_tree(files, gpus=1, config=config, units=units)
    assert ran.outcomes == {
        "test_a.py::test_1": "passed",
        "test_b.py::test_1": "error",
        "test_c.py::test_1": "passed",
    }
    assert "still held" in ran.test("test_b.py::test_1").message


NEXT = (
    "import helper\n"
    "def pytest_runtest_teardown(item, nextitem):\n"
    "    helper.trace('next', item.path.name, nextitem.path.name if nextitem else '-')\n"
)


def test_hooks_of_the_teardown_know_the_next_item(run_tree: Any) -> None:
    files = {"helper.py": TRACE, "conftest.py": NEXT, **{f"test_{name}.py": PASSES for name in "abc"}}
    run_tree(files, gpus=1)
    assert [line[1:3] for line in traced(run_tree.root)] == [
        ["test_a.py", "test_b.py"],
        ["test_b.py", "test_c.py"],
        ["test_c.py", "-"],
    ]


# What a suite may do, and outcomes as under plain pytest although the session is a copy, or goes on.
AS_EVER = {
    "streams kept at import": (
        "import logging, sys\nOUT = sys.stdout\nlogging.getLogger('x').addHandler(logging.StreamHandler())\n"
        "def say(text, stream=sys.stderr): print(text, file=stream)\n"
        "def test_1(capfd):\n"
        "    print('kept', file=OUT)\n    say('default')\n    logging.getLogger('x').warning('logged')\n",
        "",
    ),
    "open is patched in the last test": (
        "import builtins, json, os\n"
        "def test_1(monkeypatch):\n"
        "    def no(*args, **kwargs): raise AssertionError('patched')\n"
        "    for module, name in ((builtins, 'open'), (os, 'open'), (os, 'read'), (json, 'loads')):\n"
        "        monkeypatch.setattr(module, name, no)\n",
        "",
    ),
    "pids are patched": (
        "import os, pytest\n"
        "@pytest.fixture(scope='module', autouse=True)\n"
        "def pid():\n    with pytest.MonkeyPatch.context() as patch:\n"
        "        patch.setattr(os, 'getpid', lambda: 1)\n        yield\n"
        "def test_1(): pass\ndef test_2(): pass\n",
        "",
    ),
    "a child that escapes": (
        "import os, sys\n"
        "def test_1():\n    pid = os.fork()\n    if pid == 0: sys.exit(0)\n    os.waitpid(pid, 0)\n"
        "def test_2():\n    pid = os.fork()\n    if pid == 0: return\n    os.waitpid(pid, 0)\n",
        "",
    ),
    "a module's own devices": (
        "import os, pytest\n"
        "@pytest.fixture(scope='module', autouse=True)\n"
        "def none():\n    with pytest.MonkeyPatch.context() as patch:\n"
        "        patch.setenv('CUDA_VISIBLE_DEVICES', '-1')\n        yield\n"
        "def test_1(): assert os.environ['CUDA_VISIBLE_DEVICES'] == '-1'\n"
        "def test_2(): assert os.environ['CUDA_VISIBLE_DEVICES'] == '-1'\n",
        "",
    ),
    "devices hidden at import": (
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "def test_1(): assert os.environ['CUDA_VISIBLE_DEVICES'] == ''\n",
        "",
    ),
    "a conftest that changes the directory": (
        "import os\ndef test_1(): assert os.getcwd() == '/'\n",
        "import os\ndef pytest_configure(config): os.chdir('/')\n",
    ),
    "leaks are looked for": (
        "import gc, weakref\n"
        "class Node: pass\n"
        "NODE = Node()\nNODE.itself = NODE\n"
        "def test_1():\n"
        "    global NODE\n"
        "    assert any(each is NODE for each in gc.get_objects())\n"
        "    gone = weakref.ref(NODE)\n    NODE = None\n    gc.collect()\n    assert gone() is None\n",
        "",
    ),
}


@pytest.mark.parametrize(("body", "conftest"), AS_EVER.values(), ids=AS_EVER)
def test_it_is_as_under_plain_pytest(run_tree: Any, body: str, conftest: str) -> None:
    files = {"conftest.py": conftest, "test_a.py": body, "test_b.py": body, "test_c.py": body}
    ran = run_tree(files, gpus=2)
    assert set(ran.outcomes.values()) == {"passed"}, [test.message for test in ran.report.tests]
    starts = [record["nodeid"] for record in ran.records("start")]
    assert len(starts) == len(set(starts)) == len(ran.outcomes)


def test_items_that_are_dropped_late_do_not_run(run_tree: Any) -> None:
    conftest = (
        "import pytest\n"
        "@pytest.hookimpl(hookwrapper=True, tryfirst=True)\n"
        "def pytest_collection_modifyitems(items):\n    yield\n"
        "    items[:] = [item for item in items if item.name != 'test_dropped']\n"
        "def pytest_collection_finish(session): session.items.reverse()\n"
    )
    body = "def test_1(): pass\ndef test_dropped(): assert 0\ndef test_2(): pass\n"
    ran = run_tree({"conftest.py": conftest, "test_a.py": body, "test_b.py": body}, gpus=1)
    assert Counter(ran.outcomes.values()) == {"passed": 4}
    assert [record["nodeid"] for record in ran.records("start")][:2] == [
        "test_a.py::test_2",
        "test_a.py::test_1",
    ]


SESSION_ENDS = {
    "a hook that sets the status": "session.exitstatus = 1",
    "a hook that raises": "raise RuntimeError('a leak')",
}


@pytest.mark.parametrize("end", SESSION_ENDS.values(), ids=SESSION_ENDS)
def test_a_session_that_fails_at_its_end_is_no_pass(run_tree: Any, end: str) -> None:
    conftest = f"def pytest_sessionfinish(session):\n    if session.testscollected: {end}\n"
    ran = run_tree({"conftest.py": conftest, "test_a.py": PASSES, "test_b.py": PASSES}, gpus=1)
    assert ran.report.verdict == "failed"
    assert Counter(ran.outcomes.values()) == {"passed": 2, "error": 1}
    (error,) = [test for test in ran.report.tests if test.outcome == "error"]
    assert "after its last test, with none failed" in error.message
