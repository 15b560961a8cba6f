"""Faults at bad moments of warm processes: between tests, between files, before a fork is there."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

PASSES = "def test_1(): pass\n"
# Of what hangs and of what does not: a pytest starts within it on a busy machine too.
LIMIT = 6.0


def test_a_crash_in_a_teardown_is_its_tests_although_the_next_unit_has_a_skip(run_tree: Any) -> None:
    """The next unit is known, and what of it does not run is told, before the last teardown is over."""
    conftest = (
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if item.name == 'test_slow': item.add_marker('slow_nightly')\n"
        "@pytest.fixture\ndef crash():\n    yield\n"
        "    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    files = {
        "pytest.ini": "[pytest]\nmarkers = slow_nightly\n",
        "conftest.py": conftest,
        "test_a.py": "def test_1(): pass\ndef test_last(crash): pass\n",
        "test_b.py": "def test_slow(): pass\ndef test_2(): pass\n",
    }
    ran = run_tree(files, gpus=1, config_file="pytest.ini")
    assert ran.outcomes == {
        "test_a.py::test_1": "passed",
        "test_a.py::test_last": "failed",
        "test_b.py::test_slow": "skipped",
        "test_b.py::test_2": "passed",
    }
    starts = Counter(record["nodeid"] for record in ran.records("start"))
    assert set(starts.values()) == {1}


HANGS = {
    "a folder's conftest": {"b/sub/conftest.py": "import time; time.sleep(600)", "b/sub/test_x.py": PASSES},
    "a hook after collection": {
        "conftest.py": (
            "import time\ndef pytest_collection_modifyitems(items):\n    if len(items) > 1: time.sleep(600)\n"
        )
    },
}


@pytest.mark.parametrize("fork", ["auto", "never"])
@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_what_hangs_between_files_is_blamed_on_none_of_them(
    run_tree: Any, hang: dict[str, str], fork: str
) -> None:
    files = {"a/test_1.py": PASSES, "a/test_2.py": PASSES, **hang}
    units = {path: {"timeout_seconds": LIMIT} for path in files}
    config = replace(run_tree.config, node=replace(run_tree.config.node, fork=fork))
    ran = run_tree(files, gpus=1, units=units, config=config)
    expected = {"a/test_1.py::test_1": "passed", "a/test_2.py::test_1": "passed"}
    if "b/sub/test_x.py" in files:
        expected["b/sub/test_x.py"] = "collection_error"
    assert ran.outcomes == expected


def test_a_run_ends_when_its_last_file_hangs_beside_others_only(run_tree: Any) -> None:
    files = {
        "lib/heavy.py": (
            "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        ),
        "test_a.py": "import time; time.sleep(600)",
        "test_b.py": PASSES,
    }
    node = replace(run_tree.config.node, preload=("heavy",))
    config = replace(run_tree.config, node=node, container={"pythonpath": ["lib"]})
    units = {"test_a.py": {"timeout_seconds": 2.0}, "test_b.py": {"mode": "isolated"}}
    ran = run_tree(files, gpus=1, units=units, config=config)
    assert ran.outcomes == {"test_a.py": "collection_error", "test_b.py::test_1": "passed"}


def test_a_fork_that_hangs_is_given_up(run_tree: Any) -> None:
    head = "import os, time\nos.register_at_fork(before=lambda: time.sleep(600))\n"
    files = {"test_a.py": head + PASSES, "test_b.py": PASSES, "test_c.py": PASSES}
    units = {path: {"timeout_seconds": LIMIT} for path in files}
    ran = run_tree(files, gpus=1, units=units)
    assert set(ran.outcomes.values()) == {"passed"}
    assert len(ran.records("note", topic="not_forked")) == 1
