"""Small trees that import a real torch (CPU), through the local backend; `scripts/test --torch` makes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuci.config.model import Config, Node
from gpuci.execution.local.devices import Devices
from gpuci.execution.local.run import LocalRun, Options
from gpuci.model import Plan, Root, Shard, ShardRun, TestResult, Unit
from gpuci.results.build import build_report

GPUS = 8
# For a whole file: what hangs is red, not endless. Nothing here takes more than a few seconds.
LIMIT_SECONDS = 120.0


class _Nobody:
    """Watches no run."""

    def feed(self, shard: int, record: object) -> None:
        """Nothing to show."""

    def tick(self, now: float) -> None:
        """Nothing to redraw."""


@dataclass
class Ran:
    """What came of a run."""

    tests: dict[str, TestResult]
    runs: list[ShardRun]

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcome by node id."""
        return {nodeid: test.outcome for nodeid, test in self.tests.items()}

    @property
    def complaints(self) -> str:
        """What the tests that did not pass said."""
        red = [test for test in self.tests.values() if test.outcome != "passed"]
        return "\n".join(f"{test.nodeid} {test.outcome}: {test.message}\n{test.output}" for test in red)

    def records(self, kind: str) -> list[dict[str, Any]]:
        """Records of the journal."""
        return [record for run in self.runs for record in run.records if record["kind"] == kind]


RunTorch = Callable[..., Ran]


def plan_of(files: Mapping[str, str], mode: str) -> Plan:
    """One shard with a unit per test file, the first expected to take longest: they start in this order."""
    tests = [path for path in files if Path(path).name.startswith("test_")]
    units = [
        Unit(f"u{i}", ".", path, "all", mode, 1, "default", float(len(tests) - i), LIMIT_SECONDS)
        for i, path in enumerate(tests)
    ]
    return Plan(
        config={},
        sha=None,
        event="manual",
        roots=(Root(".", config_file="pytest.ini", gpu_isolation="mask"),),
        targets=(),
        units=tuple(units),
        shards=(Shard(1, "default", tuple(unit.id for unit in units), 1.0),),
        cpu_units=(),
        skipped=(),
        makespan_seconds=1.0,
        lower_bound_seconds=1.0,
        unknown_durations=0,
    )


@pytest.fixture(scope="session")
def torch_python() -> str:
    """A Python with torch, or a skip that says why there is none."""
    python = os.environ.get("GPUCI_TORCH_PYTHON")
    if not python:
        pytest.skip(os.environ.get("GPUCI_NO_TORCH", "needs --torch"))
    return python


@pytest.fixture
def run_torch(tmp_path: Path, torch_python: str) -> RunTorch:
    """Write a tree, run its test files in a mode on pretended GPUs."""

    def run(
        files: Mapping[str, str], *, mode: str, gpus: int = GPUS, preload: Sequence[str] = ("torch",)
    ) -> Ran:
        root, out = tmp_path / "tree", tmp_path / "out"
        out.mkdir()
        for path, text in {"pytest.ini": "[pytest]\n", **files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        plan = plan_of(files, mode)
        config = Config(
            node=Node(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, preload=tuple(preload)),
            container={"pythonpath": ["."]},  # for modules of the tree that are preloaded
        )
        devices = Devices((tuple(map(str, range(gpus))),), pretended=True)
        options = Options(root, out, "run", torch_python, devices, 2, tmp_path / "scratch")
        runs = LocalRun(plan, config, options, _Nobody()).run()
        report = build_report(plan, runs, seconds=1.0, setup_seconds=0.0)
        return Ran({test.nodeid: test for test in report.tests}, runs)

    return run
