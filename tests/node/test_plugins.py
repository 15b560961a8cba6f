"""Plugins of pytest in warm workers: what a file's tests become is what plain pytest makes of them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

P, F = "passed", "failed"


@dataclass(frozen=True)
class Case:
    """A file of tests, of which a tree has three, and what becomes of each test."""

    plugins: str  # as PYTEST_PLUGINS names them
    body: str
    outcomes: Mapping[str, str]
    ini: str = ""
    conftest: str = ""
    forks: bool = True
    notes: tuple[str, ...] = field(default=())


SESSION_LOOP = """\
import asyncio, pytest_asyncio
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def loop():
    yield asyncio.get_running_loop()
"""
CASES = {
    "asyncio: loops of session, module and function": Case(
        "pytest_asyncio.plugin",
        "import asyncio, pytest\n"
        "@pytest.mark.asyncio(loop_scope='session')\n"
        "async def test_session(loop): assert asyncio.get_running_loop() is loop\n"
        "@pytest.mark.asyncio(loop_scope='module')\n"
        "async def test_module(): await asyncio.sleep(0)\n"
        "@pytest.mark.asyncio\n"
        "async def test_function(): assert 0\n",
        {"test_session": P, "test_module": P, "test_function": F},
        ini="asyncio_default_fixture_loop_scope = function\n",
        conftest=SESSION_LOOP,
    ),
    "timeout: by signal": Case(
        "pytest_timeout",
        "import pytest, time\n"
        "@pytest.mark.timeout(1, method='signal')\n"
        "def test_hang(): time.sleep(60)\n"
        "def test_after(): pass\n",
        {"test_hang": F, "test_after": P},
    ),
    "timeout: by thread, which ends the process": Case(
        "pytest_timeout",
        "import pytest, time\n"
        "@pytest.mark.timeout(1, method='thread')\n"
        "def test_hang(): time.sleep(60)\n"
        "def test_after(): pass\n",
        {"test_hang": F, "test_after": P},
    ),
    "rerunfailures: at the last test of a file, beside xdist, which would make it start a server": Case(
        "pytest_rerunfailures,xdist.plugin",
        "import os, pytest\n"
        "runs = []\n"
        "@pytest.fixture(scope='module')\n"
        "def made(): return 1\n"
        "def test_crash(made): os._exit(3)\n"
        "def test_never(made): assert 0\n"
        "def test_flaky(made):\n"
        "    runs.append(1)\n"
        "    assert len(runs) == 3\n",
        {"test_crash": F, "test_never": F, "test_flaky": P},
        ini="addopts = --reruns 2\n",
    ),
    "subtests": Case(
        "pytest_subtests.plugin",
        "def test_good(subtests):\n"
        "    with subtests.test(): pass\n"
        "def test_bad(subtests):\n"
        "    for i in range(3):\n"
        "        with subtests.test(i=i): assert i != 1\n",
        {"test_good": P, "test_bad": F},
    ),
    "forked: its children tear down without asking for the next unit": Case(
        "pytest_forked",
        "import os\ndef test_1(): pass\ndef test_crash(): os._exit(3)\ndef test_2(): pass\n",
        {"test_1": P, "test_crash": F, "test_2": P},
        ini="addopts = --forked\n",
    ),
    "xdist: -n in addopts, and a conftest with its hooks": Case(
        "xdist.plugin,xdist.looponfail",
        "def test_worker(worker_id, testrun_uid): assert worker_id[:2] == 'gw' and testrun_uid\n",
        {"test_worker": P},
        ini="addopts = -n 2\n",
        conftest="def pytest_xdist_setupnodes(config): pass\n",
        notes=("-n 2",),
    ),
    "xdist, switched off": Case(
        "xdist.plugin",
        "def test_worker(worker_id): assert worker_id[:2] == 'gw'\n",
        {"test_worker": P},
        ini="addopts = -p no:xdist\n",
    ),
    "a report that each process would write": Case(
        "",
        "def test_1(): pass\n",
        {"test_1": P},
        ini="addopts = --junitxml=out.xml\n",
        notes=("--junitxml=out.xml",),
    ),
}


def enabled(run_tree: Any, plugins: str) -> Any:
    """The configuration of a run with these plugins; skips where the Python under test has them not."""
    names = [name for name in plugins.split(",") if name]
    code = "import importlib.util, sys; print([n for n in sys.argv[1:] if not importlib.util.find_spec(n)])"
    tops = {name.partition(".")[0] for name in names}
    done = subprocess.run(
        [run_tree.python, "-c", code, *tops], capture_output=True, text=True, check=True, timeout=60
    )
    if done.stdout.strip() != "[]":
        pytest.skip(f"not installed beside this pytest: {done.stdout.strip()}")
    config = run_tree.config
    env = {**config.node.env, **({"PYTEST_PLUGINS": plugins} if plugins else {})}
    return replace(config, node=replace(config.node, env=env))


@pytest.mark.parametrize("mode", ["normal", "isolated"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_outcomes(run_tree: Any, case: Case, mode: str) -> None:
    names = [f"test_{letter}.py" for letter in "abc"]
    files = {
        "pytest.ini": "[pytest]\n" + case.ini,
        "conftest.py": case.conftest,
        **dict.fromkeys(names, case.body),
    }
    ran = run_tree(
        files,
        config=enabled(run_tree, case.plugins),
        config_file="pytest.ini",
        units={name: {"mode": mode} for name in names},
        gpus=2,
    )
    expected = {f"{name}::{test}": outcome for name in names for test, outcome in case.outcomes.items()}
    assert ran.outcomes == expected, [(test.nodeid, test.message) for test in ran.report.tests]
    assert not ran.records("note", topic="not_forked")
    assert {note["text"] for note in ran.records("note", topic="neutralised")} == set(case.notes)
    assert not (run_tree.root / "out.xml").exists()


def test_randomly_has_one_seed_in_all_processes(run_tree: Any) -> None:
    body = (
        "import pytest, random\n"
        "DRAWN = []\n"
        "@pytest.mark.parametrize('i', range(8))\n"
        "def test_draw(i): open('drawn', 'a').write('%d %s\\n' % (i, random.random()))\n"
    )
    config = enabled(run_tree, "pytest_randomly")
    files = {f"{name}/test_same.py": body.replace("'drawn'", f"'{name}.drawn'") for name in "ab"}
    ran = run_tree(files, config=config, units={"a/test_same.py": {"mode": "isolated"}}, gpus=2)
    assert set(ran.outcomes.values()) == {"passed"}
    (seed,) = {note["text"] for note in ran.records("note", topic="seed")}
    for name in "ab":
        mine = (run_tree.root / f"{name}.drawn").read_text()
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_randomly"}
        (run_tree.root / f"{name}.drawn").unlink()
        command = [run_tree.python, "-m", "pytest", "-q", seed, f"{name}/test_same.py"]
        subprocess.run(command, cwd=run_tree.root, env=env, check=True, capture_output=True, timeout=60)
        assert (run_tree.root / f"{name}.drawn").read_text() == mine


# -- pytest-cov --------------------------------------------------------------------------------------

PACKAGE = {
    "pkg/__init__.py": "from . import core\n",
    "pkg/core.py": "def early():\n    return 1\n"
    + "".join(f"def f{i}(x):\n    if x:\n        return {i}\n    return -{i}\n" for i in range(4)),
    "pkg/unused.py": "def unused():\n    return 1\n",
    "conftest.py": "import pkg\npkg.core.early()\n",
    **{f"test_{i}.py": f"import pkg\ndef test_1(): assert pkg.core.f{i}(1) == {i}\n" for i in range(3)},
    "test_3.py": "import subprocess, sys\n"
    "def test_1(): subprocess.run([sys.executable, '-c', 'import pkg; pkg.core.f3(0)'], check=True)\n",
}
COV = "[pytest]\npythonpath = .\naddopts = --cov=pkg --cov-report=term --cov-report=xml"
COVERAGE = {
    "lines": (COV, ""),
    "branches and contexts": (COV + " --cov-branch --cov-context=test", ""),
    "settings of the project's own": (
        COV,
        "[run]\nbranch = true\nrelative_files = true\nparallel = true\n"
        "data_file = own/data\nomit = */unused.py\n"
        "[report]\nfail_under = 100\n[paths]\nsource =\n    pkg\n    /elsewhere/pkg\n",
    ),
    "subprocesses": (COV, "[run]\npatch = subprocess\n"),
}
DUMP = """
import coverage, json, os, sys
data = coverage.CoverageData(sys.argv[1])
data.read()
def facts(file):
    contexts = {c for names in data.contexts_by_lineno(file).values() for c in names}
    return [sorted(data.lines(file)), sorted(data.arcs(file) or []), sorted(contexts)]
print(json.dumps({os.path.relpath(file): facts(file) for file in data.measured_files()}))
"""


def measured(python: str, root: Path, data: Path) -> Any:
    """{file: [lines, arcs, contexts]} of a coverage data file."""
    command = [python, "-c", DUMP, str(data)]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode", ["normal", "isolated"])
@pytest.mark.parametrize(("ini", "rc"), COVERAGE.values(), ids=COVERAGE)
def test_coverage_is_that_of_plain_pytest(run_tree: Any, ini: str, rc: str, mode: str) -> None:
    config = enabled(run_tree, "pytest_cov.plugin")
    files = {**PACKAGE, "pytest.ini": ini + "\n", **({".coveragerc": rc} if rc else {})}
    units = {f"test_{i}.py": {"mode": mode} for i in range(4)}
    env = {**config.node.env, "PYTHONPATH": str(run_tree.root)}
    config = replace(config, node=replace(config.node, env=env))
    ran = run_tree(files, config=config, config_file="pytest.ini", units=units, gpus=2)
    assert (set(ran.outcomes.values()), ran.report.verdict) == ({"passed"}, "passed")
    assert ran.report.coverage == ("shard-1/coverage/coverage.data",)
    assert [path.name for path in (run_tree.out / "shard-1/coverage").iterdir()] == ["coverage.data"]
    left = {path.name for name in (".coverage*", "coverage.xml", "own") for path in run_tree.root.glob(name)}
    assert left <= {".coveragerc"}
    mine = measured(run_tree.python, run_tree.root, run_tree.out / ran.report.coverage[0])
    command = [run_tree.python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    subprocess.run(command, cwd=run_tree.root, env={**os.environ, **env}, capture_output=True, timeout=120)
    plain = run_tree.root / ("own/data" if "own/data" in rc else ".coverage")
    assert mine == measured(run_tree.python, run_tree.root, plain)


def test_a_crash_loses_the_coverage_of_its_own_file_only(run_tree: Any) -> None:
    config = enabled(run_tree, "pytest_cov.plugin")
    crash = "import os, pkg\ndef test_crash():\n    pkg.core.f2(1)\n    os._exit(3)\n"
    files = {**PACKAGE, "pytest.ini": COV + "\n", "test_2.py": crash}
    del files["test_3.py"]
    # On one slot, the longest first: the process that crashes ran the other files before.
    units = {f"test_{i}.py": {"expected_seconds": 3.0 - i} for i in range(3)}
    ran = run_tree(files, config=config, config_file="pytest.ini", units=units, gpus=1)
    assert ran.outcomes["test_2.py::test_crash"] == "failed"
    lines, _arcs, _contexts = measured(run_tree.python, run_tree.root, run_tree.out / ran.report.coverage[0])[
        "pkg/core.py"
    ]
    assert {2, 5, 9} <= set(lines)
    assert 13 not in lines


def test_coverage_that_can_not_be_merged_is_said_with_the_place_of_its_parts(run_tree: Any) -> None:
    config = enabled(run_tree, "pytest_cov.plugin")
    break_it = "import os\nos.makedirs('../out/shard-1/coverage/coverage.data', exist_ok=True)\n"
    files = {**PACKAGE, "pytest.ini": COV + "\n", "conftest.py": break_it}
    only = {name: text for name, text in files.items() if name not in ("test_1.py", "test_2.py", "test_3.py")}
    ran = run_tree(only, config=config, config_file="pytest.ini", gpus=1)
    assert (ran.report.verdict, ran.report.coverage) == ("passed", ())
    (warning,) = ran.records("note", topic="coverage")
    assert "they are in coverage/coverage.parts" in warning["text"]
    assert list((run_tree.out / "shard-1/coverage/coverage.parts").iterdir())
