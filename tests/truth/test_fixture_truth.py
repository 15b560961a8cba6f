"""In each worker fixtures are set up and torn down as in a plain pytest session with its files, in its order.

Each folder of `fixtures` is a small suite, a root of its own. Its fixtures, tests and reports write a
line each to a file per process (`tracing.py`). All suites run by the local backend; then the files that
a process ran, in the order in which it ran them, are the arguments of a plain pytest, and what the two
wrote must be equal, line by line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from gpuci.config.model import Config, Node
from gpuci.execution.local.devices import Devices
from gpuci.execution.local.run import LocalRun, Options
from gpuci.model import Plan, Root, Shard, Unit

HERE = Path(__file__).parent
SUITES = sorted(path.name for path in (HERE / "fixtures").iterdir())
PYTHONS = [path for path in os.environ.get("GPUCI_TEST_PYTHONS", "").split(os.pathsep) if path] or [
    sys.executable
]
GPUS = (1, 2, 8)

# One session knows all of its tests and puts those with the same parameter of a wide scope side by side,
# from whatever file; a hook may do so for other reasons. A worker gets file after file. What holds then:
# each test once, and what is set up is torn down, the last first.
ACROSS_FILES = {
    "package_params": "package-scoped parameters of several files",
    "reorder_across": "a hook that mixes the tests of several files",
    "session_params_across": "session-scoped parameters of several files",
}

# `setup passed` is pytest's report of a phase, `setup cache` a line of a fixture.
REPORTED = {"passed", "failed", "skipped"}

Trace = list[str]


class _Nobody:
    """Watches no run."""

    def feed(self, shard: int, record: object) -> None:
        """Nothing to show."""

    def tick(self, now: float) -> None:
        """Nothing to redraw."""


def ran(trace: Trace) -> list[tuple[str, str, str]]:
    """(worker, suite, node id) of a trace's tests, in its order."""
    found = [line.split(" ", 3) for line in trace if line.startswith("test ")]
    return [(worker, suite, nodeid) for _, worker, suite, nodeid in found]


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
    """A pytest session: test files of one suite in the order in which they ran, as the worker `worker`."""

    suite: str
    files: tuple[str, ...]
    worker: str


def session_of(trace: Trace) -> Session:
    """The plain session that must leave the same trace."""
    ((worker, suite),) = {(worker, suite) for worker, suite, _ in ran(trace)}
    files = dict.fromkeys(nodeid.partition("::")[0] for _, _, nodeid in ran(trace))
    return Session(suite, tuple(files), worker)


# -- the two runs ----------------------------------------------------------------------------------


def unit_of(path: Path, tree: Path) -> Unit:
    """A test file as a unit; the expected seconds mix files and suites."""
    file = str(path.relative_to(tree))
    suite = file.partition("/")[0]
    seconds = 1.0 + crc32(file.encode()) % 100
    return Unit(
        file.replace("/", "."), suite, file, "all", "normal", 1, "default", seconds, timeout_seconds=60.0
    )


def root_of(suite: str, tree: Path) -> Root:
    """A suite as a root."""
    ini = f"{suite}/pytest.ini"
    return Root(suite, config_file=ini if (tree / ini).exists() else None)


def plan_of(tree: Path) -> Plan:
    """A unit per test file, all in one shard."""
    units = [unit_of(path, tree) for suite in SUITES for path in sorted((tree / suite).rglob("test_*.py"))]
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
    return {"TRACE": str(traces), "PYTHONHASHSEED": "0", "PYTHONPATH": str(tree / "lib")}


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
    """Run plain pytest sessions; the trace of each."""
    asked = [_asked(tree, place / f"plain-{number}", session) for number, session in enumerate(sessions)]
    program = [python, str(HERE / "plain_sessions.py")]
    environ = {**os.environ, "PYTHONPATH": str(tree / "lib"), "PYTHONHASHSEED": "0"}
    done = subprocess.run(program, input=json.dumps(asked), env=environ, text=True, check=False)
    assert done.returncode == 0, [Path(session["output"]).read_text()[-2000:] for session in asked]
    return [_only_trace(Path(session["env"]["TRACE"])) for session in asked]


def _asked(tree: Path, place: Path, session: Session) -> dict[str, Any]:
    (place / "traces").mkdir(parents=True)
    root = tree / session.suite
    ini = root / "pytest.ini"
    env = {**environment(tree, place / "traces"), "PYTEST_XDIST_WORKER": session.worker}
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


@dataclass
class Runs:
    """What came of one way to run all suites: traces of processes, and of plain sessions beside them."""

    processes: list[tuple[Session, Trace, Trace]]
    testless: list[Trace]
    whole: dict[str, Trace]

    def of(self, suite: str) -> list[tuple[Session, Trace, Trace]]:
        """(session, trace by plan, trace by plain pytest) of each process that ran tests of a suite."""
        return [process for process in self.processes if process[0].suite == suite]


@pytest.fixture(scope="module", params=PYTHONS, ids=lambda path: Path(path).parent.parent.name)
def python(request: pytest.FixtureRequest) -> str:
    """A Python with pytest for the test processes."""
    return str(request.param)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    """A copy of the suites."""
    tree = tmp_path_factory.mktemp("fixtures") / "tree"
    shutil.copytree(HERE / "fixtures", tree, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "lib").mkdir()
    shutil.copy(HERE / "tracing.py", tree / "lib")
    return tree


@pytest.fixture(scope="module")
def whole(tree: Path, python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """Suite -> the trace of plain pytest that is given no files."""
    sessions = [Session(suite, (), "gw0") for suite in SUITES]
    traces = run_plainly(tree, tmp_path_factory.mktemp("whole"), python, sessions)
    return dict(zip(SUITES, traces, strict=True))


@pytest.fixture(scope="module", params=GPUS, ids=lambda gpus: f"{gpus}gpu")
def runs(
    request: pytest.FixtureRequest,
    tree: Path,
    python: str,
    whole: dict[str, Trace],
    tmp_path_factory: pytest.TempPathFactory,
) -> Runs:
    """All suites by plan on some GPUs, and plainly what each process did."""
    place = tmp_path_factory.mktemp("runs")
    traces = run_by_plan(tree, place, python, request.param)
    with_tests = [trace for trace in traces if ran(trace)]
    sessions = [session_of(trace) for trace in with_tests]
    plain = run_plainly(tree, place, python, sessions)
    return Runs(list(zip(sessions, with_tests, plain, strict=True)), [t for t in traces if not ran(t)], whole)


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite not in ACROSS_FILES])
def test_every_worker_does_what_plain_pytest_does(suite: str, runs: Runs) -> None:
    assert runs.of(suite)
    for session, trace, plain in runs.of(suite):
        assert trace == plain, session


@pytest.mark.parametrize("suite", ACROSS_FILES)
def test_what_is_set_up_is_torn_down_the_last_first(suite: str, runs: Runs) -> None:
    assert runs.of(suite)
    for session, trace, _ in runs.of(suite):
        assert unpaired(trace) == [], session


@pytest.mark.parametrize("suite", SUITES)
def test_every_test_runs_once(suite: str, runs: Runs) -> None:
    by_plan = Counter(nodeid for _, trace, _ in runs.of(suite) for _, _, nodeid in ran(trace))
    assert by_plan == Counter(nodeid for _, _, nodeid in ran(runs.whole[suite]))


def test_a_process_without_tests_sets_nothing_up(runs: Runs) -> None:
    """One that collects only may begin a session, and have the hooks called that go with it."""
    lines = [line for trace in runs.testless for line in trace if " by pytest_" not in line]
    assert lines == []
