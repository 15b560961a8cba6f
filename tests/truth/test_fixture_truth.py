"""In each worker fixtures are set up and torn down as in a plain pytest session with its files, in its order.

Each folder of `fixtures` is a small suite, a root of its own. Its fixtures, tests and reports write a
line each to a file per process (`tracing.py`). All suites run by the local backend; then the files that
a process ran, in the order in which it ran them, are the arguments of a plain pytest, and what the two
wrote must be equal, line by line.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import pytest

from gpuci.config.model import Config, Node
from gpuci.execution.local.devices import Devices
from gpuci.execution.local.run import LocalRun, Options
from gpuci.model import Plan, Root, Shard, Unit

HERE = Path(__file__).parent
SUITES = sorted(path.name for path in (HERE / "fixtures").glob("[a-z]*"))
PYTHONS = [path for path in os.environ.get("GPUCI_TEST_PYTHONS", "").split(os.pathsep) if path] or [
    sys.executable
]
# One GPU: a process has all files of a suite. Two: workers share a suite. Eight: nearly all have one file.
# The Python of these tests has hypothesis.
RUNS = [(python, gpus) for gpus in (1, 2) for python in PYTHONS] + [(sys.executable, 8)]
# A suite loads the plugins that it is about; of others that are installed nothing is to depend.
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0"}

# One session knows all of its tests and puts those with the same parameter of a wide scope side by side,
# from whatever file; a hook may do so for other reasons. A worker gets file after file. What holds then:
# each test once, and what is set up is torn down, the last first.
ACROSS_FILES = {
    "package_params": "package-scoped parameters of several files",
    "reorder_across": "a hook that mixes the tests of several files",
    "session_params_across": "session-scoped parameters of several files",
}

# What the engine does not do as pytest does: worth knowing, and to be taken from here when it does.
# `setup passed` is pytest's report of a phase, `setup cache` a line of a fixture.
REPORTED = {"passed", "failed", "skipped"}

Trace = list[str]


class _Nobody:
    """Watches no run."""

    def feed(self, shard: int, record: object) -> None:
        """Nothing to show."""

    def tick(self, now: float) -> None:
        """Nothing to redraw."""


def ran(trace: Trace) -> list[tuple[str, str]]:
    """(suite, node id) of a trace's tests, in its order."""
    found = [line.split(" ", 3) for line in trace if line.startswith("test ")]
    return [(suite, nodeid) for _, _worker, suite, nodeid in found]


def unnamed(trace: Trace) -> Trace:
    """A trace without the worker's name in it, which must be the same in all lines."""
    workers = {line.split(" ")[1] for line in trace if line.startswith("test ")}
    assert len(workers) == 1
    return [line.replace(f"test {min(workers)} ", "test ", 1) for line in trace]


def unpaired(trace: Trace) -> list[str]:
    """What is torn down before what was set up later, or without a set-up, or never."""
    standing: list[str] = []
    wrong = []
    for line in trace:
        what, _, name = line.partition(" ")
        if name in REPORTED:
            continue
        if what == "setup":
            standing.append(name)
        elif what == "teardown" and (not standing or standing.pop() != name):
            wrong.append(line)
    return wrong + standing


@dataclass(frozen=True)
class Session:
    """A pytest session: files of one suite in the order in which they ran."""

    suite: str
    files: tuple[str, ...]


def session_of(trace: Trace) -> Session:
    """The plain session that must leave the same trace."""
    (suite,) = {suite for suite, _ in ran(trace)}
    return Session(suite, tuple(dict.fromkeys(nodeid.partition("::")[0] for _, nodeid in ran(trace))))


def with_missing_files(sessions: Sequence[Session], tree: Path) -> list[Session]:
    """The last session of a suite also gets the files that no process ran a test of.

    If plain pytest finds one there, the traces differ.
    """
    asked = list(sessions)
    last = {session.suite: number for number, session in enumerate(sessions)}
    for suite, number in last.items():
        seen = {file for session in sessions if session.suite == suite for file in session.files}
        missing = tuple(file for file in files_of(tree / suite) if file not in seen)
        asked[number] = Session(suite, (*asked[number].files, *missing))
    return asked


def files_of(suite: Path) -> list[str]:
    """The test files of a suite."""
    return [str(path.relative_to(suite)) for path in sorted(suite.rglob("test_*.py"))]


# -- the two runs ----------------------------------------------------------------------------------


def unit_of(number: int, suite: str, name: str) -> Unit:
    """A test file as a unit; the expected seconds mix the files of a suite, and keep suites together."""
    file = f"{suite}/{name}"
    # Less than what makes a worker leave its root for a longer unit elsewhere.
    seconds = 1e-4 * (1 + 100 * SUITES.index(suite) + crc32(file.encode()) % 100)
    return Unit(f"u{number}", suite, file, "all", "normal", 1, "default", seconds, timeout_seconds=60.0)


def root_of(suite: str, tree: Path) -> Root:
    """A suite as a root."""
    ini = f"{suite}/pytest.ini"
    return Root(suite, config_file=ini if (tree / ini).exists() else None)


def plan_of(tree: Path) -> Plan:
    """A unit per test file, all in one shard."""
    files = [(suite, name) for suite in SUITES for name in files_of(tree / suite)]
    units = [unit_of(number, suite, name) for number, (suite, name) in enumerate(files)]
    return Plan(
        config={},
        sha=None,
        event="manual",
        roots=tuple(root_of(suite, tree) for suite in SUITES),
        targets=(),
        units=tuple(units),
        shards=(Shard(1, "default", tuple(unit.id for unit in units), 1.0),),
        cpu_units=(),
        skipped=(),
        makespan_seconds=1.0,
        lower_bound_seconds=1.0,
        unknown_durations=0,
    )


def environment(tree: Path, traces: Path) -> dict[str, str]:
    """What both kinds of run have in their environment."""
    return {**ENVIRONMENT, "TRACE": str(traces), "PYTHONPATH": str(tree / "lib")}


def run_by_plan(tree: Path, place: Path, python: str, gpus: int) -> list[Trace]:
    """Run all suites by the local backend; the traces of all processes."""
    traces, out = place / "traces", place / "out"
    traces.mkdir()
    out.mkdir()
    config = Config(node=Node(pytest_args=("-p", "tracing"), env=environment(tree, traces)))
    devices = Devices((tuple(map(str, range(gpus))),), pretended=True)
    options = Options(tree, out, "run", python, devices, 2, place / "scratch")
    (run,) = LocalRun(plan_of(tree), config, options, _Nobody()).run()
    assert run.verdict is not None
    assert run.verdict["verdict"] == "failed", run.verdict["reason"]  # some tests are to fail
    return [path.read_text().splitlines() for path in sorted(traces.iterdir())]


def run_plainly(tree: Path, place: Path, python: str, sessions: Sequence[Session]) -> list[Trace]:
    """Run plain pytest sessions on two processors; the trace of each."""
    asked = [_asked(tree, place / f"plain-{number}", session) for number, session in enumerate(sessions)]
    with ThreadPoolExecutor(2) as pool:
        halves = (asked[::2], asked[1::2])
        ended = list(pool.map(lambda half: _run_sessions(tree, place, python, half), halves))
    assert ended == [0, 0], [Path(session["output"]).read_text()[-2000:] for session in asked]
    return [_only_trace(Path(session["env"]["TRACE"])) for session in asked]


def _run_sessions(tree: Path, place: Path, python: str, asked: Sequence[dict[str, Any]]) -> int:
    program = [python, str(HERE / "plain_sessions.py")]
    environ = {**os.environ, **environment(tree, place)}
    return subprocess.run(program, input=json.dumps(asked), env=environ, text=True, check=False).returncode


def _asked(tree: Path, place: Path, session: Session) -> dict[str, Any]:
    (place / "traces").mkdir(parents=True)
    root = tree / session.suite
    ini = root / "pytest.ini"
    worker = {"PYTEST_XDIST_WORKER": "gw0", "PYTEST_XDIST_WORKER_COUNT": "1"}
    env = {**environment(tree, place / "traces"), **worker}
    options = ["-p", "tracing", "--continue-on-collection-errors"]
    places = [f"--rootdir={root}", f"--confcutdir={root}", f"-c{ini if ini.exists() else os.devnull}"]
    own = [f"--basetemp={place / 'tmp'}", f"-ocache_dir={place / 'cache'}"]
    return {
        "cwd": str(root),
        "env": env,
        "args": [*options, *places, *own, *session.files],
        "output": str(place / "output"),
    }


def _only_trace(traces: Path) -> Trace:
    found = list(traces.iterdir())
    assert len(found) <= 1
    return found[0].read_text().splitlines() if found else []


# -- the tests -------------------------------------------------------------------------------------


class Process(NamedTuple):
    """A process that ran tests, and the plain session of the same files."""

    session: Session
    trace: Trace
    plain: Trace


@dataclass(repr=False)
class Runs:
    """What came of one run of all suites: the processes that ran tests, and the traces of all others."""

    gpus: int
    processes: list[Process]
    testless: list[Trace]

    def of(self, suite: str) -> list[Process]:
        """The processes that ran tests of a suite."""
        return [process for process in self.processes if process.session.suite == suite]


def label(run: tuple[str, int]) -> str:
    """`pytest-9.2.0-2gpu`."""
    return f"{Path(run[0]).parent.parent.name}-{run[1]}gpu"


def copy_suites(place: Path) -> Path:
    """A copy of the suites."""
    tree = place / "tree"
    shutil.copytree(HERE / "fixtures", tree, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "lib").mkdir()
    shutil.copy(HERE / "tracing.py", tree / "lib")
    return tree


def run_all(place: Path, python: str, gpus: int) -> Runs:
    """All suites by plan on some GPUs, and plainly what each process did."""
    tree = copy_suites(place)
    traces = run_by_plan(tree, place, python, gpus)
    with_tests = [trace for trace in traces if ran(trace)]
    sessions = with_missing_files([session_of(trace) for trace in with_tests], tree)
    plain = run_plainly(tree, place, python, sessions)
    processes = [Process(*process) for process in zip(sessions, with_tests, plain, strict=True)]
    return Runs(gpus, processes, [trace for trace in traces if not ran(trace)])


@pytest.fixture(scope="module", params=RUNS, ids=label)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """One of RUNS, which the workers of pytest-xdist share: the first that needs it makes it."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if hasattr(request.config, "workerinput") else base) / label(request.param)
    place.mkdir(exist_ok=True)
    kept = place / "runs.pickle"
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            made = run_all(Path(tempfile.mkdtemp(dir=place)), *request.param)
            kept.write_bytes(pickle.dumps(made))
    found: Runs = pickle.loads(kept.read_bytes())
    return found


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite not in ACROSS_FILES])
def test_every_worker_does_what_plain_pytest_does(suite: str, runs: Runs) -> None:
    assert runs.of(suite)
    for session, trace, plain in runs.of(suite):
        assert unnamed(trace) == unnamed(plain), session


@pytest.mark.parametrize("suite", ACROSS_FILES)
def test_what_is_set_up_is_torn_down_the_last_first(suite: str, runs: Runs) -> None:
    assert runs.of(suite)
    for session, trace, _ in runs.of(suite):
        assert unpaired(trace) == [], session


def test_one_gpu_has_one_process_per_suite(runs: Runs) -> None:
    """Else equality says nothing of what is kept from file to file."""
    processes = Counter(process.session.suite for process in runs.processes)
    assert processes.keys() == set(SUITES)
    assert runs.gpus > 1 or set(processes.values()) == {1}


def test_what_is_exempt_differs(runs: Runs) -> None:
    differs = {process.session.suite for process in runs.processes if process.trace != process.plain}
    assert runs.gpus > 1 or differs >= ACROSS_FILES.keys()


@pytest.mark.parametrize("suite", SUITES)
def test_every_test_runs_once(suite: str, runs: Runs) -> None:
    tests = Counter(test for process in runs.of(suite) for test in ran(process.trace))
    assert tests == Counter(test for process in runs.of(suite) for test in ran(process.plain))
    assert set(tests.values()) == {1}


def test_a_process_without_tests_sets_nothing_up(runs: Runs) -> None:
    """One that collects only may begin a session, and have the hooks called that go with it."""
    lines = [line for trace in runs.testless for line in trace if " by pytest_" not in line]
    assert lines == []


@pytest.mark.parametrize(
    ("trace", "wrong"),
    [
        ("setup a;setup passed;test gw0 s t;call failed;teardown a;teardown passed", []),
        ("setup a;setup b;teardown b;teardown a", []),
        ("setup a;setup b;teardown a;teardown b", ["teardown a", "teardown b"]),
        ("setup a;setup a;teardown a", ["a"]),
        ("teardown a", ["teardown a"]),
    ],
)
def test_unpaired_sees_what_stays_and_what_goes_too_soon(trace: str, wrong: list[str]) -> None:
    assert unpaired(trace.split(";")) == wrong
