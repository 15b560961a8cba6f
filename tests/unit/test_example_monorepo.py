"""The example without gpuci: its counts under plain pytest, and whether its proof catches a wrong node."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "monorepo"
EXPECTED = json.loads((EXAMPLE / "expected.json").read_text())
PYTHONS = os.environ.get("GPUCI_TEST_PYTHONS", sys.executable).split(os.pathsep)
ALL_DEVICES = "0,1,2,3,4,5,6,7"

# What gpuci runs of each package: `serving` takes two sessions, modes.yml leaves out most of `legacy`.
SESSIONS = {
    "data": [["tests"]],
    "models": [["tests"]],
    "kernels": [["tests"]],
    "trainer": [["tests"]],
    "serving": [["tests", "--ignore=tests/rpc"], ["tests/rpc"]],
    "legacy": [
        [
            "tests/test_checkpoint_format.py",
            "tests/test_v1_api.py::test_version",
            "tests/test_migration.py::TestReader",
        ]
    ],
}
SKIPPED_BY_MODE = 10
NIGHTLY = 2

# Counts results the way gpuci does: one per node id, a failing teardown is an error.
RECORDER = """
import json, os

seen = {}

def pytest_runtest_logreport(report):
    if hasattr(report, "context"):
        return
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = {"skipped": "xfailed", "passed": "xpassed"}[outcome]
    if outcome == "failed" and report.when != "call":
        outcome = "error"
    if report.when == "call" or outcome != "passed":
        seen[report.nodeid] = outcome

def pytest_collectreport(report):
    if report.outcome != "passed":
        seen[report.nodeid] = {"failed": "collection_error"}.get(report.outcome, report.outcome)

def pytest_sessionfinish():
    with open(os.environ["RECORDS"], "w") as file:
        json.dump(seen, file)
"""


class Package:
    """Runs pytest in a package of the example."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "recorder.py").write_text(RECORDER)
        self.records = folder / "records.json"

    def outcomes(self, package: str, *args: str, python: str = sys.executable, **env: str) -> dict[str, str]:
        """Run one session; returns node id -> outcome, with `path` instead of node id for a whole file."""
        self.records.unlink(missing_ok=True)
        command = [python, "-m", "pytest", "-p", "recorder", "-p", "no:cacheprovider", "-q", *args]
        result = subprocess.run(
            [*command, "-o", "addopts=", "-W", "error", "--continue-on-collection-errors"],
            cwd=EXAMPLE / "packages" / package,
            env={**self._environment(), **env},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert self.records.exists(), result.stdout + result.stderr
        return dict(json.loads(self.records.read_text()))

    def _environment(self) -> dict[str, str]:
        ours = ("PYTEST", "PYTHON", "GPUCI", "CUDA")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return {
            **kept,
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # pytest-randomly would change the order
            "TMPDIR": str(self.folder),
            "RECORDS": str(self.records),
        }


@pytest.fixture
def run(tmp_path: Path) -> Package:
    return Package(tmp_path)


@pytest.mark.parametrize("python", PYTHONS)
def test_counts_under_plain_pytest(run: Package, python: str) -> None:
    counts = Counter({"skipped": SKIPPED_BY_MODE})
    for package, sessions in SESSIONS.items():
        for args in sessions:
            counts.update(run.outcomes(package, *args, python=python).values())
    assert counts == EXPECTED["scheduled_run"]
    counts.update(passed=-NIGHTLY, skipped=NIGHTLY)
    assert counts == EXPECTED["run"]


@pytest.mark.parametrize(
    ("fault", "package", "file", "red"),
    [
        ("fail", "data", "tests/gpu/test_pinned_memory.py", "failed"),
        ("teardown", "trainer", "tests/test_loop.py", "error"),
        ("collection", "serving", "tests/test_batcher.py", "collection_error"),
    ],
)
def test_fault_changes_the_counts_as_expected(
    run: Package, fault: str, package: str, file: str, red: str
) -> None:
    sound = Counter(run.outcomes(package, file).values())
    faulty = Counter(run.outcomes(package, file, EXAMPLE_FAULTS=fault).values())
    assert faulty[red] == 1
    counts = Counter(EXPECTED["run"])
    counts.subtract(sound)
    counts.update(faulty)
    assert +counts == EXPECTED["faults"][fault]


def test_faults_add_up() -> None:
    for names, counts in EXPECTED["faults"].items():
        total = Counter(EXPECTED["run"])
        for name in names.split(","):
            total.update(EXPECTED["faults"][name])
            total.subtract(EXPECTED["run"])
        assert +total == counts, names


def test_unknown_fault_is_refused(run: Package) -> None:
    outcomes = run.outcomes("serving", "tests/test_batcher.py", EXAMPLE_FAULTS="hnag")
    assert list(outcomes.values()) == ["collection_error"]


@pytest.mark.parametrize(
    ("package", "test", "granted", "visible", "worker", "outcome"),
    [
        ("models", "tests/test_shapes.py::test_parameters_add_up", "5", "5", "gw5", "passed"),
        ("models", "tests/test_shapes.py::test_parameters_add_up", "5", "4", "gw5", "error"),
        ("models", "tests/test_shapes.py::test_parameters_add_up", "5", "5,6", "gw5", "error"),
        ("models", "tests/test_shapes.py::test_parameters_add_up", "5", "", "gw5", "error"),
        ("models", "tests/test_shapes.py::test_parameters_add_up", "5", "5", "gw13", "error"),
        ("models", "tests/test_shapes.py::test_parameters_add_up", "5", "5", "gw4", "error"),
        ("models", "tests/test_parallel.py::test_peer_copy", "2,3", "2,3", "gw2", "passed"),
        ("models", "tests/test_parallel.py::test_peer_copy", "2", "2", "gw2", "error"),
        (
            "kernels",
            "tests/test_allreduce.py::test_ring_sums_everything",
            "0,1,2,3",
            "0,1,2,3",
            "gw0",
            "error",
        ),
        ("serving", "tests/test_port.py::test_port_is_free_again", "0,1,2,3", "0,1,2,3", "gw0", "error"),
        ("serving", "tests/test_port.py::test_port_is_free_again", ALL_DEVICES, ALL_DEVICES, "gw0", "passed"),
        ("trainer", "tests/test_worker.py::test_number_is_the_device", "3", ALL_DEVICES, "gw3", "passed"),
        ("trainer", "tests/test_worker.py::test_number_is_the_device", "3", ALL_DEVICES, "gw2", "error"),
        ("trainer", "tests/test_worker.py::test_number_is_the_device", "3", "3", "gw3", "skipped"),
        ("trainer", "tests/test_worker.py::test_number_is_the_device", "3", ALL_DEVICES, "gw11", "error"),
        ("trainer", "tests/test_distributed.py::test_four_devices", "4,5,6,7", ALL_DEVICES, "gw4", "passed"),
        ("trainer", "tests/test_distributed.py::test_four_devices", "4,5,6,7", ALL_DEVICES, "gw5", "error"),
        ("trainer", "tests/test_config.py::test_defaults", "", "", "gw0", "passed"),
        ("trainer", "tests/test_config.py::test_defaults", "0", "0", "gw0", "error"),
        ("trainer", "tests/test_config.py::test_defaults", "", "", "gw8", "error"),
        ("data", "tests/unit/test_sharding.py::ShardTest::test_index_is_checked", "", "", "gw0", "passed"),
        ("data", "tests/unit/test_sharding.py::ShardTest::test_index_is_checked", "", "0", "gw0", "error"),
    ],
)
def test_proof(
    run: Package, package: str, test: str, granted: str, visible: str, worker: str, outcome: str
) -> None:
    node = {"GPUCI_NODE": "node", "GPUCI_GPUS": granted, "CUDA_VISIBLE_DEVICES": visible}
    workers = {"PYTEST_XDIST_WORKER": worker, "PYTEST_XDIST_WORKER_COUNT": "8"}
    assert run.outcomes(package, test, **node, **workers) == {test: outcome}


@pytest.mark.parametrize(
    ("node", "devices", "outcome"),
    [("node", "1", "error"), ("node", "0,1", "error"), ("node", "2", "passed"), ("another", "1", "passed")],
    ids=["same device", "overlap", "another device", "another node"],
)
def test_device_in_use(run: Package, node: str, devices: str, outcome: str) -> None:
    test = "tests/test_shapes.py::test_parameters_add_up"
    locks = run.folder / f"gpuci-example-locks-{os.getuid()}"
    locks.mkdir()
    with open(locks / "node-1", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        slot = {"GPUCI_NODE": node, "GPUCI_GPUS": devices, "CUDA_VISIBLE_DEVICES": devices}
        slot |= {"PYTEST_XDIST_WORKER": f"gw{devices[0]}", "PYTEST_XDIST_WORKER_COUNT": "8"}
        assert run.outcomes("models", test, **slot) == {test: outcome}
