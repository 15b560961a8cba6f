"""The whole chain on small trees, in process: configuration -> targets -> plan -> local run -> report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, Node
from gpuci.discovery.discover import discover
from gpuci.execution.local.devices import Devices
from gpuci.execution.local.run import LocalRun, Options
from gpuci.model import Report
from gpuci.planning.plan import make_plan
from gpuci.results.build import build_report

PYTHONS = [path for path in os.environ.get("GPUCI_TEST_PYTHONS", "").split(os.pathsep) if path] or [
    sys.executable
]
# As the cases were recorded: what pytest itself does, whatever else is installed.
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
DEVICES = Devices((tuple(map(str, range(8))),), pretended=True)

# One bad file is to cost only itself, in the plain session too.
PLAIN_OPTIONS = ("--continue-on-collection-errors",)
PLAIN_PYTEST = Path(__file__).with_name("plain_pytest.py")

RunTree = Callable[..., Report]
RunPlain = Callable[..., dict[str, str]]


class _Nobody:
    """Watches no run."""

    def feed(self, shard: int, record: object) -> None:
        """Nothing to show."""

    def tick(self, now: float) -> None:
        """Nothing to redraw."""


@pytest.fixture(params=PYTHONS, ids=lambda path: Path(path).parent.parent.name)
def test_python(request: pytest.FixtureRequest) -> str:
    """A Python with pytest for the test processes: one per version that `scripts/test` provides."""
    return str(request.param)


class Versions(NamedTuple):
    """(major, minor, …) of a Python and of the pytest that it has."""

    python: tuple[int, ...]
    pytest: tuple[int, ...]


@cache
def _versions(python: str) -> Versions:
    code = "import importlib.metadata as m, platform as p; print(p.python_version(), m.version('pytest'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Versions(*(tuple(map(int, re.findall(r"\d+", text))) for text in done.stdout.split()))


@pytest.fixture
def versions(test_python: str) -> Versions:
    """The versions of `test_python` and of its pytest."""
    return _versions(test_python)


@pytest.fixture
def run_tree(tmp_path: Path, test_python: str) -> RunTree:
    """Find, plan, run and report the tests of a directory, in one shard; with `cut`, functions are units."""

    def run(
        root: Path, *, args: tuple[str, ...] = (), packages: tuple[str, ...] = (".",), cut: bool = False
    ) -> Report:
        config = Config(
            packages=packages, markers=DEFAULT_MARKERS, node=Node(pytest_args=args, env=ENVIRONMENT)
        )
        manifest = discover(root, config, jobs=1)
        piece = config.shards.piece_seconds
        durations = {target.nodeid: piece + 1 for target in manifest.targets} if cut else {}
        plan = make_plan(manifest, config, durations=durations, shards=1, event="manual", sha=None)
        if cut:
            assert len(plan.units) > len({unit.file for unit in plan.units})
        out = tmp_path / "out"
        out.mkdir()
        options = Options(root, out, "run", test_python, DEVICES, 2, tmp_path / "scratch")
        runs = LocalRun(plan, config, options, _Nobody()).run()
        return build_report(plan, runs, seconds=1.0, setup_seconds=0.0)

    return run


@pytest.fixture
def run_plain(tmp_path: Path, test_python: str) -> RunPlain:
    """Run plain pytest in each root of a tree: node id (from the tree's top) -> pytest's own outcome."""

    def run(tree: Path, *, args: tuple[str, ...] = (), roots: tuple[str, ...] = (".",)) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, root in enumerate(roots):
            above = "" if root == "." else root + "/"
            out = tmp_path / f"plain-{number}.json"
            command = [test_python, str(PLAIN_PYTEST), str(out), *PLAIN_OPTIONS, *args]
            environ = {**os.environ, **ENVIRONMENT, "PYTHONHASHSEED": "0"}
            done = subprocess.run(
                command, cwd=tree / root, env=environ, capture_output=True, text=True, check=False
            )
            assert out.exists(), done.stdout + done.stderr
            outcomes: dict[str, str] = json.loads(out.read_text())
            found.update({above + nodeid: outcome for nodeid, outcome in outcomes.items()})
        return found

    return run


@pytest.fixture
def write_tree(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write files into a new directory."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path / "tree"
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return write
