"""Every fault that ends, hangs or litters a process, twice in one run on eight slots.

Each test tells when it runs and where: no test is lost or run twice, no device is used by two, a worker's
name stays with its devices, and what is behind a fault runs in one process.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from tests.node.faults import FAULTS, Ran, Tree, living, plant, read_log

from gpuci.execution import jobs

SEEDS = (1, 2)
DEADLINE = 300.0  # of a whole run, which takes a fraction of it
WIDTHS = (1, 1, 1, 1, 2, 4)
BROKEN = {
    path: text
    for twin in "ab"
    for path, text in {
        f"conftest_{twin}/conftest.py": "raise RuntimeError('broken conftest')\n",
        f"conftest_{twin}/test_{twin}.py": "def test_1():\n    pass\n",
    }.items()
}
NOT_COLLECTED = dict.fromkeys([path for path in BROKEN if "/test_" in path], "collection_error")


@pytest.fixture
def deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that does not end by itself ends with the verdict `timeout`."""
    plain = jobs.job_document
    monkeypatch.setattr(
        jobs, "job_document", lambda *args, **more: {**plain(*args, **more), "deadline_seconds": DEADLINE}
    )


@pytest.mark.usefixtures("deadline")
@pytest.mark.parametrize("seed", SEEDS)
def test_crash_table(run_tree: Any, seed: int) -> None:
    tree = plant(FAULTS, seed, sound=6)
    chance = random.Random(seed)
    units = {path: {"gpus": chance.choice(WIDTHS), "expected_seconds": chance.random()} for path in tree.ends}
    ran = run_tree({**tree.files, **BROKEN}, config_file="pytest.ini", units=units)
    expected = {**tree.outcomes, **NOT_COLLECTED}
    assert ran.outcomes == expected
    assert (ran.report.verdict, ran.runs[0].problem) == ("failed", "")
    for nodeid, fault in tree.faults.items():
        assert fault.message in ran.test(nodeid).message, nodeid
    assert living(run_tree.root) == []
    check_places(read_log(run_tree.root), tree)
    assert Counter(record["nodeid"] for record in ran.records("end")) == Counter(expected.keys())


def check_places(told: list[Ran], tree: Tree) -> None:
    """Each test ran once, alone on the devices of its worker; a fault costs one more process at most."""
    assert Counter(test.nodeid for test in told) == Counter(tree.outcomes.keys())
    assert [test for test in told if not test.alone] == []
    assert [test for test in told if not named_after_its_devices(test)] == []
    processes = defaultdict(set)
    for test in told:
        processes[test.file].add(test.process)
    assert {file: len(found) for file, found in processes.items()} == {
        file: 1 + fault_ends for file, fault_ends in tree.ends.items()
    }


def named_after_its_devices(test: Ran) -> bool:
    """Worker gw<i> has device i and its neighbours above."""
    first = int(test.worker[len("gw") :])
    return test.devices == tuple(str(device) for device in range(first, first + len(test.devices)))
