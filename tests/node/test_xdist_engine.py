"""`engine: xdist`: small trees through the real pytest-xdist, with our records, devices and limits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuci.config.model import Node


def has_xdist(python: str) -> bool:
    """Whether a Python of the tests' environments has pytest-xdist."""
    return any(Path(python).parent.parent.glob("lib/python*/site-packages/xdist"))


OTHERS = [path for path in os.environ.get("GPUCI_TEST_PYTHONS", "").split(os.pathsep) if path]
# The environment of the tests itself first: it has the newest pytest-xdist.
PYTHONS = list(filter(has_xdist, [sys.executable, *OTHERS]))
SHOW = "import os, pytest\n"
XDIST = replace(Node(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}), engine="xdist")


@pytest.fixture(params=PYTHONS[:1], ids=lambda path: Path(path).parent.parent.name)
def test_python(request: pytest.FixtureRequest) -> str:
    """The Python that the trees of a test are run with; some tests ask for others too."""
    return str(request.param)


with_each_xdist = pytest.mark.parametrize(
    "test_python", PYTHONS, ids=lambda path: Path(path).parent.parent.name, indirect=True
)


@pytest.fixture
def run(run_tree: Any) -> Any:
    """Run a tree with `engine: xdist`."""

    def run_by_xdist(files: dict[str, str], *, args: tuple[str, ...] = (), gpus: int = 2, **more: Any) -> Any:
        node = replace(XDIST, pytest_args=args)
        return run_tree(files, config=replace(run_tree.config, node=node), gpus=gpus, **more)

    return run_by_xdist


def each_once(ran: Any) -> bool:
    """Whether each test has one start and one end."""
    starts = Counter(record["nodeid"] for record in ran.records("start"))
    ends = Counter(record["nodeid"] for record in ran.records("end"))
    return starts == ends and set(starts.values()) == {1}


WHO = SHOW + (
    "@pytest.mark.parametrize('i', range(6))\n"
    "def test_who(i, worker_id, testrun_uid, pytestconfig):\n"
    "    assert worker_id == os.environ['PYTEST_XDIST_WORKER'] == pytestconfig.workerinput['workerid']\n"
    "    assert os.environ['CUDA_VISIBLE_DEVICES'] == os.environ['GPUCI_GPUS'] == worker_id[2:]\n"
    "    assert testrun_uid == 'run'\n"
    "    assert not [name for name in os.environ if name.startswith('GPUCI_XDIST')]\n"
)


WAYS = ("", "load", "loadscope", "loadfile", "loadgroup", "worksteal", "each", "no")


@with_each_xdist
@pytest.mark.parametrize("dist", WAYS, ids=lambda dist: dist or "not named")
def test_each_way_to_distribute(run: Any, dist: str) -> None:
    files = {f"test_{name}.py": WHO for name in "ab"}
    files["test_b.py"] += "@pytest.mark.xdist_group('g')\ndef test_group(): pass\n"
    ran = run(files, args=("--dist", dist) if dist else ())
    assert set(ran.outcomes.values()) == {"passed"}, [test.output for test in ran.report.tests]
    assert len(ran.outcomes) == 13
    assert each_once(ran)
    seats = {(record["slot"], *record["gpus"]) for record in ran.records("start")}
    assert seats <= {("gw0", "0"), ("gw1", "1")}


# Each test holds the devices that it sees: two at once on one of them fail.
HOLD = SHOW + (
    "import signal, time\n"
    "@pytest.fixture(autouse=True)\n"
    "def held(worker_id):\n"
    "    assert os.environ['CUDA_VISIBLE_DEVICES'] == worker_id[2:]\n"
    "    os.mkdir('held-' + worker_id)\n"
    "    yield\n"
    "    os.rmdir('held-' + worker_id)\n"
    "def die(worker_id):\n"
    "    os.rmdir('held-' + worker_id)\n"
    "    os.kill(os.getpid(), signal.SIGSEGV)\n"
)
CRASH = HOLD + (
    "@pytest.mark.parametrize('i', range(6))\n"
    "def test_1(i): pass\n"
    "def test_crash(worker_id):\n"
    "    print('last words', file=__import__('sys').stderr)\n"
    "    die(worker_id)\n"
    "@pytest.mark.parametrize('i', range(6))\n"
    "def test_2(i): pass\n"
)


@with_each_xdist
@pytest.mark.parametrize("dist", ["load", "worksteal"])
def test_a_crash_costs_its_test_and_its_replacement_has_its_number_and_device(run: Any, dist: str) -> None:
    ran = run({"test_a.py": CRASH}, args=("--dist", dist))
    crashed = ran.test("test_a.py::test_crash")
    assert (crashed.outcome, crashed.message) == ("failed", "killed by SIGSEGV")
    assert "Fatal Python error: Segmentation fault" in crashed.output
    assert {**ran.outcomes, crashed.nodeid: "passed"} == dict.fromkeys(ran.outcomes, "passed"), [
        test.output for test in ran.report.tests
    ]
    assert each_once(ran)


@pytest.mark.parametrize("dist", ["loadscope", "loadfile"])
def test_ways_that_give_out_scopes_run_a_test_that_crashes_until_no_worker_is_left(
    run: Any, dist: str
) -> None:
    """pytest-xdist's own doing, a limit of this engine: what did not run is not finished, with the reason."""
    ran = run({"test_a.py": CRASH}, args=("--dist", dist, "--max-worker-restart", "2"))
    assert ran.outcomes["test_a.py::test_crash"] == "failed"
    assert len(ran.records("start", nodeid="test_a.py::test_crash")) == 3
    assert Counter(ran.outcomes.values()) == {"passed": 6, "failed": 1, "not_finished": 6}
    messages = {test.message for test in ran.report.tests if test.outcome == "not_finished"}
    assert messages == {"pytest-xdist ended before it: pytest-xdist: maximum crashed workers reached: 2"}


# pytest-xdist 3.8 does so by itself with loadgroup once a worker was replaced, but not each time.
STUCK = (
    "from xdist.scheduler import LoadScheduling\n"
    "class Stuck(LoadScheduling):\n"
    "    def check_schedule(self, node, duration=0): pass\n"
    "def pytest_xdist_make_scheduler(config, log): return Stuck(config, log)\n"
)


def test_a_run_that_gives_out_nothing_more_ends_at_the_limit_of_a_test(run: Any) -> None:
    limits = {"test_a.py": {"timeout_seconds": 12.0}}
    files = {"conftest.py": STUCK, "test_a.py": "".join(f"def test_{i}(): pass\n" for i in range(12))}
    ran = run(files, units=limits)
    assert Counter(ran.outcomes.values()) == {"passed": 2, "not_finished": 10}
    messages = {test.message for test in ran.report.tests if test.outcome == "not_finished"}
    assert messages == {"pytest-xdist ended before it: no test of the run began or ended within 12 s: killed"}


@with_each_xdist
def test_a_test_over_its_limit_is_killed_and_the_others_go_on(run: Any) -> None:
    body = HOLD + (
        "@pytest.mark.timeout(1)\n"
        "def test_hang(worker_id):\n"
        "    os.rmdir('held-' + worker_id)\n"
        "    while True: time.sleep(100)\n"
        "@pytest.mark.parametrize('i', range(6))\n"
        "def test_1(i): pass\n"
    )
    ran = run({"test_a.py": body, "pytest.ini": "[pytest]\nmarkers = timeout\n"}, config_file="pytest.ini")
    hung = ran.test("test_a.py::test_hang")
    assert (hung.outcome, hung.message) == ("failed", "no end within its limit of 1 s: killed")
    assert "test_hang" in hung.output
    assert Counter(ran.outcomes.values()) == {"passed": 6, "failed": 1}
    assert each_once(ran)


def test_pytest_exit_in_a_test_ends_the_run(run: Any) -> None:
    body = "import pytest\ndef test_exit(): pytest.exit('enough')\n"
    body += "@pytest.mark.parametrize('i', range(9))\ndef test_1(i): pass\n"
    ran = run({"test_a.py": body})
    ended = ran.test("test_a.py::test_exit")
    assert (ended.outcome, ended.message) == ("failed", "Exit: enough")
    assert len(ran.outcomes) == 10
    lost = [test for test in ran.report.tests if test.outcome == "not_finished"]
    assert all(test.message.startswith("pytest-xdist ended before it: ") for test in lost)


def test_needs_that_only_marks_and_skips_tell(run: Any) -> None:
    body = SHOW + (
        "def seen(): return len(os.environ['CUDA_VISIBLE_DEVICES'].split(','))\n"
        "@pytest.mark.require_cuda_2gpu\n"
        "def test_wide(): assert seen() == 2\n"
        "@pytest.mark.sequential\n"
        "def test_alone(): assert seen() == 2\n"
        "def test_skip():\n"
        "    if seen() < 2: pytest.skip('needs 2 GPUs')\n"
        "@pytest.mark.skipif(True, reason='GPU too old')\n"
        "def test_old(): pass\n"
        "def test_narrow(): assert seen() == 1\n"
        "@pytest.mark.new_nightly\n"
        "def test_nightly(): assert 0\n"
    )
    ini = "[pytest]\nmarkers =\n    require_cuda_2gpu\n    sequential\n    new_nightly\n"
    ran = run({"test_a.py": body, "pytest.ini": ini}, config_file="pytest.ini")
    found = {test.nodeid.partition("::")[2]: (test.outcome, len(test.gpus)) for test in ran.report.tests}
    assert found.pop("test_nightly")[0] == "skipped"
    assert found == {
        "test_wide": ("passed", 2),
        "test_alone": ("passed", 2),
        "test_skip": ("passed", 2),
        "test_old": ("skipped", 1),
        "test_narrow": ("passed", 1),
    }
    topics = Counter(note["topic"] for note in ran.records("note"))
    assert (topics["need_differs"], topics["gpu_skip"]) == (2, 1)


def test_wide_serial_and_isolated_units_are_not_for_xdist(run: Any, run_tree: Any) -> None:
    who = SHOW + "def test_1(worker_id):\n    open('ran-%s-%s' % (NAME, os.environ['GPUCI_GPUS']), 'w')\n"
    files = {f"test_{name}.py": who + f"NAME = '{name}'\n" for name in ("n1", "n2", "wide", "serial", "own")}
    units = {
        "test_wide.py": {"gpus": 2},
        "test_serial.py": {"mode": "serial"},
        "test_own.py": {"mode": "isolated"},
    }
    ran = run(files, units=units)
    assert set(ran.outcomes.values()) == {"passed"}
    names = {path.name for path in run_tree.root.glob("ran-*")}
    assert {"ran-wide-0,1", "ran-serial-0,1"} <= names


def test_options_that_would_break_a_run(run: Any) -> None:
    files = {
        "pytest.ini": "[pytest]\n"
        "addopts = -x -n 4 --maxfail=1 -p no:xdist --dist=loadfile -k 'not unwanted'\n",
        "test_a.py": "def test_1(worker_id): assert 0\n"
        "def test_2(worker_id): assert worker_id in ('gw0', 'gw1')\n"
        "def test_unwanted(): assert 0\n",
    }
    ran = run(files, config_file="pytest.ini")
    assert ran.outcomes == {
        "test_a.py::test_1": "failed",
        "test_a.py::test_2": "passed",
        "test_a.py::test_unwanted": "deselected",
    }
    named = [note["text"] for note in ran.records("note", topic="neutralised")]
    assert named == ["-x", "-n 4", "--maxfail=1"]


def test_what_can_not_be_collected(run: Any) -> None:
    files = {
        "test_bad.py": "import no_such_module\n",
        "test_exit.py": "import pytest\npytest.exit('not here')\n",
        "test_skip.py": "import pytest\npytest.skip('all of it', allow_module_level=True)\n",
        "test_good.py": "def test_1(): pass\n",
    }
    ran = run(files)
    assert ran.outcomes == {
        "test_bad.py": "collection_error",
        "test_exit.py": "collection_error",
        "test_skip.py": "skipped",
        "test_good.py::test_1": "passed",
    }


def test_a_file_that_crashes_a_worker_while_it_is_collected_runs_alone(run: Any) -> None:
    files = {"test_a.py": "import os\nos.abort()\n", "test_b.py": "def test_1(): pass\n"}
    ran = run(files)
    assert ran.outcomes == {"test_a.py": "collection_error", "test_b.py::test_1": "passed"}
    (note,) = ran.records("note", topic="own_process")
    assert note["text"] == (
        "test_a.py runs in a process of its own: killed by SIGABRT while it collected test_a.py"
    )


@pytest.mark.parametrize("args", [("-k", "a and"), ("--no-such-option",)], ids=" ".join)
def test_arguments_that_pytest_refuses_are_said_in_its_words(run: Any, args: tuple[str, ...]) -> None:
    ran = run({f"test_{name}.py": "def test_1(): pass\n" for name in "ab"}, args=args)
    assert ran.outcomes == {"test_a.py": "collection_error", "test_b.py": "collection_error"}
    told = ran.report.tests[0].message + ran.report.tests[0].output
    assert "rong expression" in told or "unrecognized arguments: --no-such-option" in told


def test_workers_that_collect_differently(run: Any) -> None:
    body = SHOW + "@pytest.mark.parametrize('i', [os.environ['PYTEST_XDIST_WORKER']])\ndef test_1(i): pass\n"
    ran = run({"test_a.py": body})
    (test,) = ran.report.tests
    assert test.outcome == "not_finished"
    assert "Different tests were collected between gw" in test.message


CUDA = "import torch\ntorch.cuda.init()\ndef test_1(worker_id): assert torch.cuda.seen == worker_id[2:]\n"
FAKE_TORCH = {
    "torch.py": (
        "import os\n"
        "class cuda:\n"
        "    seen = None\n"
        "    def init(): cuda.seen = os.environ['CUDA_VISIBLE_DEVICES']\n"
        "    def is_initialized(): return cuda.seen is not None\n"
    )
}


def test_cuda_that_is_initialised_while_collecting_starts_the_run_again_with_masks(run: Any) -> None:
    files = {**FAKE_TORCH, "pytest.ini": "[pytest]\npythonpath = .\n"}
    ran = run({**files, "test_a.py": CUDA, "test_b.py": CUDA}, config_file="pytest.ini")
    assert set(ran.outcomes.values()) == {"passed"}, [test.output for test in ran.report.tests]
    assert len(ran.records("note", topic="gpu_isolation")) == 1
    assert each_once(ran)


def test_the_cpu_pool(run: Any) -> None:
    body = (
        SHOW
        + "def test_1(worker_id): assert (os.environ['CUDA_VISIBLE_DEVICES'], worker_id[:2]) == ('', 'gw')\n"
    )
    units = {f"test_{name}.py": {"mode": "cpu", "gpus": 0} for name in "ab"}
    ran = run(dict.fromkeys(units, body), units=units)
    assert set(ran.outcomes.values()) == {"passed"}, [test.output for test in ran.report.tests]


def test_by_worker_index_all_devices_stay_visible(run: Any) -> None:
    body = SHOW + "def test_1(): assert os.environ['CUDA_VISIBLE_DEVICES'] == '0,1'\n"
    ran = run({"test_a.py": body}, isolation="worker-index")
    assert set(ran.outcomes.values()) == {"passed"}


def test_units_of_one_file_run_what_they_select(run: Any) -> None:
    body = "def test_a(): pass\ndef test_b(): pass\n"
    ran = run({"test_a.py": body}, units={"test_a.py": {"select": {"except": ["test_a.py::test_a"]}}})
    assert [record["nodeid"] for record in ran.records("end")] == ["test_a.py::test_b"]


def test_without_pytest_xdist_the_setting_is_named(run_tree: Any) -> None:
    block = "import sys\nsys.meta_path.insert(0, __import__('block').Block())\n"
    files = {
        "away/sitecustomize.py": block,
        "away/block.py": "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'xdist': raise ModuleNotFoundError(name)\n",
        "test_a.py": "def test_1(): pass\n",
    }
    node = replace(XDIST, env={**XDIST.env, "PYTHONPATH": str(run_tree.root / "away")})
    ran = run_tree(files, config=replace(run_tree.config, node=node))
    assert ran.report.verdict == "config_error"
    assert "node.engine is xdist, but " in str(ran.report.shards)


def test_coverage_of_all_workers_is_merged(run: Any, run_tree: Any, test_python: str) -> None:
    found = subprocess.run([test_python, "-c", "import pytest_cov"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"{test_python} has no pytest-cov")
    files = {
        "lib.py": "def a():\n    return 1\ndef b():\n    return 2\ndef c():\n    return 3\n",
        "test_a.py": "import lib\ndef test_a(): lib.a()\ndef test_b(): lib.b()\n",
    }
    ran = run(files, args=("-p", "pytest_cov", "--cov=lib", "--cov-report=term", "--cov-fail-under=99"))
    assert set(ran.outcomes.values()) == {"passed"}
    (note,) = ran.records("note", topic="coverage")
    (data,) = run_tree.out.rglob(note["text"])
    code = "import sys, coverage\ndata = coverage.CoverageData(sys.argv[1]); data.read()\n"
    code += "print(sorted(data.lines(sys.argv[2])))"
    command = [test_python, "-c", code, str(data), str(run_tree.root / "lib.py")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[1, 2, 3, 4, 5]\n"
    assert not list(run_tree.root.glob(".coverage*"))
