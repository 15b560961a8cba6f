"""Real runs of small trees through the local backend: no fake between the plan and the report."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, MarkerRule, Node
from gpuci.execution.local.devices import Devices
from gpuci.execution.local.run import LocalRun, Options
from gpuci.model import Plan, Report, Root, Shard, ShardRun, Unit
from gpuci.results.build import build_report

# Plugins that happen to be installed (pytest-timeout) would act before the keeper does.
PLAIN = Node(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
CONFIG = Config(markers=(*DEFAULT_MARKERS, MarkerRule("require_cuda_2gpu", gpus=2)), node=PLAIN)
PYTHONS = [path for path in os.environ.get("GPUCI_TEST_PYTHONS", "").split(os.pathsep) if path] or [
    sys.executable
]


class Recorder:
    """Keeps the records of a run as they come."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def feed(self, shard: int, record: dict[str, Any]) -> None:
        self.records.append(record)

    def tick(self, now: float) -> None:
        """Nothing to redraw."""


@dataclass
class Ran:
    """What came of a run."""

    report: Report
    runs: list[ShardRun]
    live: list[dict[str, Any]]

    @property
    def outcomes(self) -> dict[str, str]:
        return {test.nodeid: test.outcome for test in self.report.tests}

    def records(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        found = [record for run in self.runs for record in run.records if record["kind"] == kind]
        return [
            record for record in found if all(record.get(name) == value for name, value in fields.items())
        ]

    def test(self, nodeid: str) -> Any:
        return next(test for test in self.report.tests if test.nodeid == nodeid)


def plan_of(files: Mapping[str, str], units: Mapping[str, Mapping[str, Any]], root: Root) -> Plan:
    """One shard with a unit per test file; `units` changes fields of a file's unit."""
    tests = [path for path in files if Path(path).name.startswith("test_")]
    made = [
        Unit(f"u{i}", root.path, path, "all", "normal", 1, "default", 1.0, 60.0)
        for i, path in enumerate(tests)
    ]
    made = [replace(unit, **units.get(unit.file, {})) for unit in made]
    on_gpus = [unit.id for unit in made if unit.mode != "cpu"]
    return Plan(
        config={},
        sha=None,
        event="manual",
        roots=(root,),
        targets=(),
        units=tuple(made),
        shards=(Shard(1, "default", tuple(on_gpus), 1.0),) if on_gpus else (),
        cpu_units=tuple(unit.id for unit in made if unit.mode == "cpu"),
        skipped=(),
        makespan_seconds=1.0,
        lower_bound_seconds=1.0,
        unknown_durations=0,
    )


@dataclass
class Trees:
    """Writes a tree below `root` and runs its test files."""

    root: Path
    out: Path
    python: str
    config: Config = CONFIG

    def __call__(
        self,
        files: Mapping[str, str],
        *,
        units: Mapping[str, Mapping[str, Any]] | None = None,
        config: Config = CONFIG,
        gpus: int = 8,
        isolation: str = "mask",
        config_file: str | None = None,
    ) -> Ran:
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        self.out.mkdir(exist_ok=True)
        plan = plan_of(files, units or {}, Root(".", config_file=config_file, gpu_isolation=isolation))
        devices = Devices((tuple(map(str, range(gpus))),), pretended=True)
        options = Options(self.root, self.out, "run", self.python, devices, 2, self.root.parent / "scratch")
        recorder = Recorder()
        runs = LocalRun(plan, config, options, recorder).run()
        return Ran(build_report(plan, runs, seconds=1.0, setup_seconds=0.0), runs, recorder.records)


@pytest.fixture(params=PYTHONS, ids=lambda path: Path(path).parent.parent.name)
def test_python(request: pytest.FixtureRequest) -> str:
    """A Python with pytest for the test processes: one per version that `scripts/test` provides."""
    return str(request.param)


@pytest.fixture
def run_tree(tmp_path: Path, test_python: str) -> Trees:
    """Write a tree, run its test files, return the report."""
    return Trees(tmp_path / "tree", tmp_path / "out", test_python)
