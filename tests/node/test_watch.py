"""What code of the tree does while tests are collected, and who is blamed for it."""

from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci_node.worker import calls
from gpuci_node.worker.reads import IDENTITY, Variables
from gpuci_node.worker.watch import Watch

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")
# Collects as a template does: watched from before pytest starts until all is collected.
COLLECT = """
import json, os, sys
import pytest
from gpuci_node.worker.watch import Watch

tree, out = sys.argv[1:3]
watch = Watch(tree)

class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        config.workerinput = watch.workerinput({"workerid": os.environ["PYTEST_XDIST_WORKER"]})

watch.start()
args = [tree, "--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[3:]]
code = pytest.main(args, plugins=[Plugin()])
watch.stop()
noted = list(watch.findings)
for after in [getattr(module, "after", int) for module in list(sys.modules.values())]:
    after()  # code of the tree; nobody listens any more
assert watch.findings == noted
with open(out, "w") as stream:
    json.dump({"code": int(code), "findings": noted, "unsafe": watch.unsafe()}, stream)
"""
TEST = "\ndef test_it(): pass\n"


class Collected:
    def __init__(self, tree: Path, content: dict[str, Any]) -> None:
        self.tree = tree
        self.content = content

    def relative(self, key: str) -> set[tuple[str, str | None]]:
        """(reason, path below the tree) of each finding."""
        return {
            (reason.removesuffix(" while tests are collected"), path and os.path.relpath(path, self.tree))
            for reason, path in self.content[key]
        }


def collect(tmp_path: Path, python: str, files: dict[str, str], *args: str) -> Collected:
    tree = tmp_path / "tree"
    for name, text in {"pytest.ini": "[pytest]\n", **files}.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text) + (TEST if path.name.startswith("test_") else ""))
    libraries = tmp_path / "libraries"
    libraries.mkdir(exist_ok=True)
    for name, text in LIBRARIES.items():
        (libraries / name).write_text(textwrap.dedent(text))
    out = tmp_path / "found.json"
    env = {
        "GPUCI_GPUS": "0",  # the first of all: what a walk over them would read first
        **os.environ,
        "PYTHONPATH": os.pathsep.join([SCRIPTS, str(libraries)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_XDIST_WORKER": "gw0",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    command = [python, "-c", COLLECT, str(tree), str(out), *args]
    ran = subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True, timeout=60)
    assert out.exists(), ran.stdout + ran.stderr
    content = json.loads(out.read_text())
    assert content["code"] == 0, ran.stdout + ran.stderr
    return Collected(tree.resolve(), content)


# Outside the tree: what is installed.
LIBRARIES = {
    "lib_ports.py": """
        import socket
        def free():
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", 0))
                return sock.getsockname()[1]
    """,
    "lib_bound.py": "import lib_ports\nPORT = lib_ports.free()\n",
    "lib_bound_too.py": "import lib_ports\nPORT = lib_ports.free()\n",
    "lib_torch.py": """
        import os
        def count():
            return len(os.getenv("CUDA_VISIBLE_DEVICES", "").split(","))
        def choose():
            os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    """,
    "torch.py": """
        class cuda:
            started = []
            @classmethod
            def is_initialized(cls):
                return cls.started
    """,
    "lib_files.py": """
        def start():
            return open(__file__, "rb")
    """,
    "lib_opened.py": "F = open(__file__)\n",
    "lib_names.py": "import os, uuid\nID = os.getpid()\ndef name(): return uuid.uuid4(), os.getpid()\n",
    "lib_workers.py": "import os\ndef worker(): return os.environ.get('PYTEST_XDIST_WORKER')\n",
}
PORT = "import socket\ndef free():\n    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.close()\n"
BINDS, READS, WRITES = "binds a socket", "reads ", "writes "
WORKER = READS + "PYTEST_XDIST_WORKER"
PIPE = "keeps a pipe open that was made"
SOCKET = "keeps a socket open that was made"
FILE = "keeps a file open that was opened"
SHARED = "keeps shared memory that was made"
PID = "asks for its process id"
DRAWS = "draws from os.urandom() (a UUID, a secret)"
CLEANUP = "calls config.add_cleanup()"
PROCESS = "starts a process that lives on"
WORKERID = "reads workerinput['workerid']"
SLEEP = "import subprocess, sys\nCHILD = subprocess.{how}([sys.executable, '-c', {code!r}]{more})\n"


SERVER = SLEEP.format(how="Popen", code="input()", more=", stdin=subprocess.PIPE")
ENDED = SLEEP.format(how="run", code="pass", more="")
NOTHING: set[str] = set()
# One test module each, all in one tree: what it does, and what is said of it.
MODULES = {
    "port": (PORT + "free()", {BINDS}),
    "port in a library's function": ("import lib_ports; P = lib_ports.free()", {BINDS}),
    "port in a function of a helper": ("import helper; P = helper.free()", {BINDS}),
    "port in a library when it is imported": ("import lib_bound", NOTHING),
    "the same, in a function": ("def lazy():\n    import lib_bound_too\nlazy()", NOTHING),
    "port in what is installed below the tree": ("import installed", NOTHING),
    "port in a helper when it is imported": ("import bound_helper", NOTHING),  # the helper is to blame
    "port in a fixture": (PORT + "import pytest\n@pytest.fixture\ndef port(): return free()", NOTHING),
    "port in a test": (PORT + "def test_port(): free()", NOTHING),
    "mkdtemp": ("import tempfile; D = tempfile.mkdtemp()", {"makes a temporary directory"}),
    "TemporaryDirectory": (
        "import tempfile; D = tempfile.TemporaryDirectory()",
        {"makes a temporary directory"},
    ),
    "NamedTemporaryFile": (
        "import tempfile; F = tempfile.NamedTemporaryFile()",
        {"makes a temporary file", FILE},
    ),
    "port after the watch": (PORT + "after = free", NOTHING),
    "a socket, closed": ("import socket; S = socket.socket(); S.close()", NOTHING),
    "event loop": ("import asyncio; LOOP = asyncio.new_event_loop()", {SOCKET}),
    "event loop, closed": ("import asyncio; asyncio.new_event_loop().close()", NOTHING),
    "database in a file": (
        "import sqlite3; DB = sqlite3.connect('a.db')",
        {"opens an SQLite database", FILE},
    ),
    "database in memory": ("import sqlite3; DB = sqlite3.connect(':memory:')", NOTHING),
    "a server": (SERVER, {PROCESS, PIPE}),
    "a queue": ("import multiprocessing; Q = multiprocessing.Queue()", {PIPE, SHARED}),
    "a pipe, closed": ("import os; [os.close(fd) for fd in os.pipe()]", NOTHING),
    "a program that ended": (ENDED, NOTHING),
    "worker's name": ("import os; W = os.environ['PYTEST_XDIST_WORKER']", {WORKER}),
    "worker's name by get": ("import os; W = os.environ.get('PYTEST_XDIST_WORKER')", {WORKER}),
    "worker's name by getenv": ("import os; W = os.getenv('PYTEST_XDIST_WORKER')", {WORKER}),
    "worker's name by in": ("import os; W = 'PYTEST_XDIST_WORKER' in os.environ", {WORKER}),
    "worker's name in bytes": ("import os; W = os.environb[b'PYTEST_XDIST_WORKER']", {WORKER}),
    "worker's name after a copy": (
        "import os; dict(os.environ); W = os.environ['PYTEST_XDIST_WORKER']",
        {WORKER},
    ),
    "own devices in a walk that ended": (
        "import os; list(os.environ); os.getenv('HOME'); os.getenv('GPUCI_GPUS')",
        {READS + "GPUCI_GPUS"},
    ),
    "worker's name in a walk": (
        "import os\nfor name in os.environ: os.environ['PYTEST_XDIST_WORKER']",
        {WORKER},
    ),
    "worker's name in a library": ("import lib_workers; W = lib_workers.worker()", {WORKER}),
    "worker's name in a class": (
        "class Test:\n    import os\n    W = os.getenv('PYTEST_XDIST_WORKER')",
        {WORKER},
    ),
    "worker's name in a test": ("def test_w(): __import__('os').environ['PYTEST_XDIST_WORKER']", NOTHING),
    "own devices": ("import os; W = os.environ.get('GPUCI_GPUS')", {READS + "GPUCI_GPUS"}),
    "visible devices": ("import os; W = os.getenv('CUDA_VISIBLE_DEVICES')", {READS + "CUDA_VISIBLE_DEVICES"}),
    "a library counts devices": ("import lib_torch; skip = lib_torch.count() < 2", NOTHING),
    "written": ("import os; os.environ['GPUCI_GPUS'] = '7'", {WRITES + "GPUCI_GPUS"}),
    "written by a library": ("import lib_torch; lib_torch.choose()", {WRITES + "CUDA_VISIBLE_DEVICES"}),
    "written as it is": ("import os; os.environ['PYTEST_XDIST_WORKER'] = 'gw0'", NOTHING),
    "copy": ("import os; E = dict(os.environ)", NOTHING),
    "copy by its method": ("import os; E = os.environ.copy()", NOTHING),
    "copy with more": ("import os; E = {**os.environ, 'A': '1'}", NOTHING),
    "all items": ("import os; E = [(k, v) for k, v in os.environ.items()]", NOTHING),
    "copy for a program": ("import os\n" + ENDED.replace("])", "], env=dict(os.environ, A='1'))"), NOTHING),
    "other variables": (
        "import os; os.environ['A'] = '1'; os.environ.pop('A'); os.getenv('HOME')",
        NOTHING,
    ),
    "a file, to be read": ("F = open('data.bin', 'rb', buffering=0)", {FILE}),
    "a file, to be read in lines": ("F = open('data.bin')", {FILE}),
    "a file, to be locked": ("import fcntl; F = open('lock', 'w'); fcntl.flock(F, fcntl.LOCK_EX)", {FILE}),
    "a file by descriptor": ("import os; F = os.open('data.bin', os.O_RDONLY)", {FILE}),
    "a file without a name": ("import tempfile; F = tempfile.TemporaryFile()", {FILE}),
    "a file in a hidden folder": (
        "import pathlib; F = (pathlib.Path('sub') / '..' / 'data.bin').open()",
        {FILE},
    ),
    "a file in a library's function": ("import lib_files; F = lib_files.start()", {FILE}),
    "a file in a library when it is imported": ("import lib_opened", NOTHING),
    "a log": ("F = open('log', 'a')", NOTHING),
    "a log by logging": ("import logging; H = logging.FileHandler('log2')", NOTHING),
    "a file, closed": ("F = open('closed.bin'); F.close()", NOTHING),
    "no file": ("F = open('/dev/null'); import os; D = os.open('.', os.O_RDONLY)", NOTHING),
    "memory of its own": ("import mmap; M = mmap.mmap(-1, 10, flags=mmap.MAP_PRIVATE)", NOTHING),
    "shared memory": ("import mmap; M = mmap.mmap(-1, 10)", {SHARED}),
    "shared memory, closed": ("import mmap; M = mmap.mmap(-1, 10); M.close()", NOTHING),
    "shared memory to be read": (
        "import mmap\nwith open('data.bin') as F: M = mmap.mmap(F.fileno(), 0, access=mmap.ACCESS_READ)",
        {FILE},  # a mapping by Python keeps a descriptor
    ),
    "a lock": ("import multiprocessing; L = multiprocessing.Lock()", {SHARED}),
    "a lock, gone": ("import multiprocessing; multiprocessing.Lock()", NOTHING),
    "an event": ("import multiprocessing; E = multiprocessing.Event()", {SHARED}),
    "a lock of threads": ("import threading; L = threading.Lock()", NOTHING),
    "process id": ("import os; N = 'x-%d' % os.getpid()", {PID}),
    "process id by name": ("from os import getpid; N = getpid()", {PID}),
    "process id in a helper": ("import helper; N = helper.name()", {PID}),
    "process id in a log": (
        "import logging; logging.getLogger('a').warning('b'); import tempfile; tempfile.gettempdir()",
        NOTHING,
    ),
    "process id in a library's function": ("import lib_names; N = lib_names.name()", NOTHING),
    "process id in a test": ("def test_pid(): __import__('os').getpid()", NOTHING),
    "a function that is handed on": (
        "import os, pickle\nclass A: f = os.getpid\n"
        "assert pickle.loads(pickle.dumps(os.getpid)) == A.f.__wrapped__",
        NOTHING,
    ),
    "a function as a method": ("import os\nclass A: f = os.getpid\nA().f()", {PID}),
    "a UUID": ("import uuid; N = uuid.uuid4().hex", {DRAWS}),
    "a UUID by time": ("import uuid; N = uuid.uuid1()", {"makes a UUID"}),
    "a UUID of a name": ("import uuid; N = uuid.uuid5(uuid.NAMESPACE_DNS, 'a')", NOTHING),
    "a secret": ("import secrets; N = secrets.token_hex()", {DRAWS}),
    "a random number of the system": ("import random; N = random.SystemRandom().randint(1, 9)", {DRAWS}),
    "a random number": ("import random; N = random.random(); random.Random().random()", NOTHING),
    "random bytes": ("import os; N = os.urandom(8)", {DRAWS}),
    "a temporary name": ("import tempfile; N = tempfile.mktemp()", {"makes a temporary name"}),
    "nothing": ("", NOTHING),
}


@functools.cache
def all_modules(python: str, directory: Path) -> Collected:
    files = {f"test_{number:02}.py": text for number, (text, _) in enumerate(MODULES.values())}
    venv = ".venv/lib/python3/site-packages/"
    helpers = {
        "data.bin": "0123456789",
        "closed.bin": "",
        "sub/x": "",
        "helper.py": PORT + "import os\ndef name(): return os.getpid()\n",
        "bound_helper.py": PORT + "free()",
        venv + "installed.py": PORT + "free()",
        "pytest.ini": f"[pytest]\npythonpath = . {venv}\n",
    }
    return collect(directory, python, {**helpers, **files})


@pytest.mark.parametrize("what", MODULES)
def test_module(tmp_path_factory: pytest.TempPathFactory, test_python: str, what: str) -> None:
    directory = tmp_path_factory.getbasetemp() / ("modules-" + Path(test_python).parent.parent.name)
    directory.mkdir(exist_ok=True)
    found = all_modules(test_python, directory).relative("findings")
    file = f"test_{list(MODULES).index(what):02}.py"
    assert {reason for reason, path in found if path == file} == MODULES[what][1]
    assert {path for _, path in found if path is None or not path.startswith("test_")} == {"bound_helper.py"}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param(
            {"conftest.py": PORT + "def pytest_configure(config): free()", "test_a.py": ""},
            {(BINDS, "conftest.py")},
            id="port in a hook of a conftest",
        ),
        pytest.param(
            {"sub/conftest.py": PORT + "def pytest_generate_tests(metafunc): free()", "sub/test_a.py": ""},
            {(BINDS, "sub/conftest.py")},
            id="port in a hook while items are made",
        ),
        pytest.param(
            {"conftest.py": "def pytest_configure(config): config.workerinput['workerid']", "test_a.py": ""},
            {(WORKERID, "conftest.py")},
            id="workerinput in pytest_configure",
        ),
        pytest.param(
            {
                "helper.py": "def name(config): return getattr(config, 'workerinput', {}).get('workerid')",
                "conftest.py": "import helper\ndef pytest_sessionstart(session): helper.name(session.config)",
                "test_a.py": "",
            },
            {(WORKERID, "conftest.py")},
            id="workerinput in a helper",
        ),
        pytest.param(
            {"conftest.py": "def pytest_configure(config): config.workerinput.get('a')", "test_a.py": ""},
            set(),
            id="something else of workerinput",
        ),
        pytest.param(
            {
                "test_a.py": "import os; os.environ = {'PYTEST_XDIST_WORKER': 'gw0'}",
                "test_b.py": "import os; os.environ['PYTEST_XDIST_WORKER']",
            },
            set(),
            id="os.environ replaced",
        ),
        pytest.param(
            {
                "test_a.py": "import os; os.environ._data = dict(os.environ._data.items())",
                "test_b.py": SERVER,
            },
            {(PROCESS, "test_b.py"), (PIPE, "test_b.py")},
            id="what is below os.environ replaced",
        ),
        pytest.param(
            {"conftest.py": "def pytest_configure(config): config.add_cleanup(int)", "test_a.py": ""},
            {(CLEANUP, "conftest.py")},
            id="a cleanup",
        ),
        pytest.param(
            {"conftest.py": "import os\ndef pytest_configure(config): os.getpid()", "test_a.py": ""},
            {(PID, "conftest.py")},
            id="process id in a hook",
        ),
        pytest.param(
            {
                "conftest.py": "def pytest_configure(config): config.file = open('pytest.ini')",
                "test_a.py": "",
                "test_b.py": "",
            },
            {(FILE, "conftest.py")},
            id="a file in a hook",
        ),
        pytest.param(
            {
                "conftest.py": "",
                "pytest.ini": "[pytest]\nlog_file = log\naddopts = --junitxml=report.xml\n",
                "test_a.py": "",
            },
            set(),
            id="files of pytest",
        ),
        pytest.param(
            {
                "data.bin": "0123456789",
                "test_a.py": "open('data.bin').close()",
                "test_b.py": "F = open('data.bin')",
                "test_c.py": "F = open('data.bin')",
            },
            {(FILE, "test_b.py"), (FILE, "test_c.py")},
            id="a file that several open",
        ),
        pytest.param(
            {"test_a.py": "import os; before = os.getpid; os.getpid = lambda: 1", "test_b.py": ""},
            set(),
            id="a function that is replaced",
        ),
        pytest.param(
            {"test_a.py": "import multiprocessing; L = multiprocessing.Lock()", "test_b.py": ""},
            {(SHARED, "test_a.py")},
            id="a lock, and another file",
        ),
        pytest.param(
            {"test_a.py": SERVER, "test_b.py": ENDED},
            {(PROCESS, "test_a.py"), (PIPE, "test_a.py")},
            id="one runs, one ended",
        ),
    ],
)
def test_tree(tmp_path: Path, test_python: str, files: dict[str, str], found: set[tuple[str, str]]) -> None:
    assert collect(tmp_path, test_python, files).relative("findings") == found


def test_module_that_a_conftest_collects_is_blamed_itself(tmp_path: Path, test_python: str) -> None:
    collector = """
        import pytest

        class Module(pytest.Module):
            def collect(self):
                return super().collect()

        def pytest_pycollect_makemodule(module_path, parent):
            return Module.from_parent(parent, path=module_path)
    """
    files = {"conftest.py": collector, "test_a.py": PORT + "free()"}
    found = collect(tmp_path, test_python, files, "--import-mode=importlib")
    assert found.relative("findings") == {(BINDS, "test_a.py")}


def test_os_environ_may_be_patched(tmp_path: Path, test_python: str) -> None:
    text = """
        import os
        from unittest import mock
        with mock.patch.dict(os.environ, {"A": "1"}):
            W = os.environ["GPUCI_GPUS"]
    """
    found = collect(tmp_path, test_python, {"test_a.py": text}).relative("findings")
    # `patch.dict` empties the environment and fills it again at its end: in doubt, that is a finding too.
    assert (READS + "GPUCI_GPUS", "test_a.py") in found
    assert {path for _, path in found} == {"test_a.py"}


@pytest.mark.parametrize("args", [(), ("--assert=plain",), ("--import-mode=importlib",)], ids=str)
def test_imports_are_seen_in_all_modes(tmp_path: Path, test_python: str, args: tuple[str, ...]) -> None:
    files = {
        "helpers.py": PORT + "free()",
        "pytest.ini": "[pytest]\npythonpath = .\n",
        "test_a.py": "import helpers",
        "test_b.py": PORT + "free()",
    }
    assert collect(tmp_path, test_python, files, *args).relative("findings") == {
        (BINDS, "helpers.py"),
        (BINDS, "test_b.py"),
    }


def test_gpu_is_blamed_on_the_file_that_was_imported(tmp_path: Path, test_python: str) -> None:
    start = "import helper, torch; torch.cuda.started.append(1)"
    files = {"helper.py": "", "test_a.py": "import torch", "test_b.py": start, "test_c.py": start}
    found = collect(tmp_path, test_python, files)
    assert found.relative("unsafe") == {("torch has initialised CUDA", "test_b.py")}


def test_event_that_can_not_be_judged_is_a_finding(tmp_path: Path, test_python: str) -> None:
    found = collect(tmp_path, test_python, {"test_a.py": "import sys; sys.audit('sqlite3.connect')"})
    [(reason, path)] = found.relative("findings")
    assert reason.startswith("sqlite3.connect could not be judged")
    assert path is None


def test_threads_are_blamed_on_the_file_that_was_imported(tmp_path: Path, test_python: str) -> None:
    text = """
        import threading
        EVENT = threading.Event()
        threading.Thread(target=EVENT.wait, name="waits", daemon=True).start()
    """
    found = collect(tmp_path, test_python, {"test_a.py": "", "test_b.py": text, "test_c.py": ""})
    assert found.relative("findings") == set()
    [(reason, path)] = found.relative("unsafe")
    assert "waits" in reason
    assert path == "test_b.py"


def test_what_is_installed_may_be_in_a_tree_reached_through_a_link(tmp_path: Path, test_python: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "tree").symlink_to(tmp_path / "real")
    assert collect(tmp_path, test_python, {"test_a.py": PORT + "free()"}).relative("findings") == {
        (BINDS, "test_a.py")
    }


def test_environment_is_as_before_after_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCI_TEST_A", "1")
    data: Any = os.environ._data  # type: ignore[attr-defined]
    variables = Variables(lambda name, write: None)
    try:
        os.environ["GPUCI_TEST_A"] = "2"
        assert os.environb[b"GPUCI_TEST_A"] == b"2"
    finally:
        variables.restore()
    assert os.environ._data is data  # type: ignore[attr-defined]
    assert os.environ["GPUCI_TEST_A"] == os.environb[b"GPUCI_TEST_A"].decode() == "2"


NAMES = st.sampled_from([*IDENTITY, "GPUCI_TEST_A", "GPUCI_TEST_B"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["get", "in", "set", "pop", "copy", "items", "len"]), NAMES), max_size=12
)


def step(environ: Any, what: str, name: str) -> Any:
    """Do one thing with an environment, return what it says."""
    if what == "get":
        return environ.get(name)
    if what == "in":
        return name in environ
    if what == "set":
        environ[name] = "1"
        return None
    if what == "pop":
        return environ.pop(name, None)
    if what == "len":
        return len(environ)
    return dict(environ) if what == "copy" else list(environ.items())


@given(steps=STEPS)
def test_environment_behaves_as_ever(steps: list[tuple[str, str]]) -> None:
    told: list[str] = []
    before = dict(os.environ)
    model = dict(before)
    variables = Variables(lambda name, write: told.append(name))
    try:
        for what, name in steps:
            told.clear()
            known = model.get(name)
            assert step(os.environ, what, name) == step(model, what, name)
            asks = what in ("get", "in", "pop") or (what == "set" and known != "1")
            assert bool(told) == (asks and name in IDENTITY)
    finally:
        variables.restore()
        assert dict(os.environ) == model
        for name in {*IDENTITY, "GPUCI_TEST_A", "GPUCI_TEST_B"}:
            os.environ.pop(name, None)
        os.environ.update(before)


def test_functions_are_as_before_after_the_watch() -> None:
    before = [os.getpid, os.urandom, tempfile.mktemp, pytest.Config.add_cleanup]
    named: list[str] = []
    places = calls.listen(named.append, lambda: named.append("cleanup"))
    assert os.getpid() == before[0]()  # type: ignore[operator]
    kept = os.getpid
    places.restore()
    assert [os.getpid, os.urandom, tempfile.mktemp, pytest.Config.add_cleanup] == before
    assert named == ["asks for its process id"]
    assert copy.copy(kept) is pickle.loads(pickle.dumps(kept)) is os.getpid


def test_function_that_somebody_replaced_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", os.getpid)
    places = calls.listen(lambda reason: None, lambda: None)
    monkeypatch.setattr(os, "getpid", lambda: 42)
    places.restore()
    assert os.getpid() == 42


def test_a_watch_that_was_not_started_can_be_stopped(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path))
    watch.stop()
    assert watch.findings == []
