"""`engine: xdist`: small trees through the real pytest-xdist, with our records, devices and limits."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from gpuci.config.model import Node

SHOW = "import os, pytest\n"
XDIST = replace(Node(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}), engine="xdist")


@pytest.fixture
def run(run_tree: Any, test_python: str) -> Any:
    """Run a tree with `engine: xdist`."""
    found = subprocess.run([test_python, "-c", "import xdist"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"{test_python} has no pytest-xdist")

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
