"""Small trees through keeper, starter and pytest: devices, workers, options, isolation, deferrals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuci.config.model import Profile

SHOW = "import os, pytest\n"


def test_a_process_sees_its_slot_and_is_told_who_it_is(run_tree: Any) -> None:
    ran = run_tree(
        {
            "test_a.py": SHOW
            + "COLLECTING = os.environ['CUDA_VISIBLE_DEVICES']\n"
            + "def test_collection_sees_all(): assert COLLECTING == '0,1,2,3'\n"
            + "def test_mask():\n"
            + "    assert os.environ['CUDA_VISIBLE_DEVICES'] == os.environ['GPUCI_GPUS'] == '0'\n"
            + "def test_worker(worker_id, pytestconfig):\n"
            + "    assert worker_id == os.environ['PYTEST_XDIST_WORKER'] == 'gw0'\n"
            + "    assert pytestconfig.workerinput['workercount'] == 4\n"
            + "def test_directory(tmp_path): assert not list(tmp_path.iterdir())\n"
        },
        gpus=4,
    )
    assert set(ran.outcomes.values()) == {"passed"}, [test.output for test in ran.report.tests]


def test_by_worker_index_all_devices_stay_visible(run_tree: Any) -> None:
    body = SHOW + "def test_all(): assert os.environ['CUDA_VISIBLE_DEVICES'] == '0,1,2,3'\n"
    ran = run_tree({f"test_{name}.py": body for name in "abcd"}, gpus=4, isolation="worker-index")
    assert set(ran.outcomes.values()) == {"passed"}
    pairs = {(record["slot"], tuple(record["gpus"])) for record in ran.records("start")}
    assert all(gpus == (slot[2:],) for slot, gpus in pairs)


def test_a_shard_gets_the_devices_of_its_profile_where_others_have_more(run_tree: Any) -> None:
    body = SHOW + "def test_two(): assert os.environ['CUDA_VISIBLE_DEVICES'] == '0,1'\n"
    config = replace(run_tree.config, profiles=(Profile("default", gpus=2), Profile("big", gpus=4)))
    ran = run_tree({"test_a.py": body}, config=config, gpus=4, units={"test_a.py": {"mode": "serial"}})
    assert ran.outcomes == {"test_a.py::test_two": "passed"}
    assert ran.records("job")[0]["gpus"] == ["0", "1"]


def test_a_cpu_unit_sees_no_device(run_tree: Any) -> None:
    body = SHOW + "def test_none(): assert os.environ['CUDA_VISIBLE_DEVICES'] == ''\n"
    ran = run_tree({"test_a.py": body}, units={"test_a.py": {"mode": "cpu", "gpus": 0}})
    assert ran.outcomes == {"test_a.py::test_none": "passed"}
    assert ran.report.shards[0].index == 0


WIDER = {
    "a mark that a hook adds": (
        "def test_wide(): assert len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')) == 8\n",
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if 'wide' in item.name: item.add_marker('require_cuda_8gpu')\n",
        ("passed", 8),
    ),
    "a mark of one parameter": (
        "@pytest.mark.parametrize('n', [pytest.param(2, marks=pytest.mark.require_cuda_2gpu)])\n"
        "def test_wide(n): assert len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')) == n\n",
        "",
        ("passed", 2),
    ),
    "a serial mark": (
        "@pytest.mark.sequential\ndef test_wide(): assert os.environ['GPUCI_GPUS'].count(',') == 7\n",
        "",
        ("passed", 8),
    ),
    "a skip in the body": (
        "def test_wide():\n"
        "    if len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')) < 4: pytest.skip('needs 4 GPUs')\n",
        "",
        ("passed", 8),
    ),
    "a skip in a fixture": (
        "@pytest.fixture\n"
        "def four():\n"
        "    if len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')) < 4: pytest.skip('too few CUDA devices')\n"
        "def test_wide(four): pass\n",
        "",
        ("passed", 8),
    ),
    "a skip that more GPUs do not help": (
        "def test_wide(): pytest.skip('this GPU is too old')\n",
        "",
        ("skipped", 8),
    ),
    "a skip that has nothing to do with GPUs": (
        "def test_wide(): pytest.skip('no network')\n",
        "",
        ("skipped", 1),
    ),
    "a condition that collection evaluated": (
        "@pytest.mark.skipif(True, reason='GPU too old')\ndef test_wide(): pass\n",
        "",
        ("skipped", 1),
    ),
}


@pytest.mark.parametrize(("body", "conftest", "expected"), WIDER.values(), ids=WIDER)
def test_going_wider(run_tree: Any, body: str, conftest: str, expected: tuple[str, int]) -> None:
    files = {
        "pytest.ini": "[pytest]\nmarkers =\n    require_cuda_8gpu\n    require_cuda_2gpu\n    sequential\n",
        "conftest.py": conftest,
        "test_a.py": SHOW + body + "def test_narrow(): assert os.environ['GPUCI_GPUS'] == '0'\n",
    }
    ran = run_tree(files, config_file="pytest.ini")
    wide = next(test for test in ran.report.tests if "test_wide" in test.nodeid)
    assert (wide.outcome, len(wide.gpus)) == expected, wide.output
    assert wide.slot == "gw0"
    assert ran.outcomes["test_a.py::test_narrow"] == "passed"
    assert len(ran.records("end")) == 2


FAKE_TORCH = {
    "torch.py": (
        "import os\n"
        "class cuda:\n"
        "    seen = None\n"
        "    def init(): cuda.seen = os.environ['CUDA_VISIBLE_DEVICES']\n"
        "    def is_initialized(): return cuda.seen is not None\n"
    )
}


def test_cuda_that_is_initialised_while_collecting_gets_a_process_that_is_masked_from_its_start(
    run_tree: Any,
) -> None:
    body = "import torch\ntorch.cuda.init()\ndef test_1(): assert torch.cuda.seen == '0'\n"
    files = {**FAKE_TORCH, "pytest.ini": "[pytest]\npythonpath = .\n", "test_a.py": body}
    ran = run_tree(files, config_file="pytest.ini")
    assert ran.outcomes == {"test_a.py::test_1": "passed"}
    assert [note["text"] for note in ran.records("note", topic="gpu_isolation")] == [
        "CUDA was initialised while collecting: a new process, masked from its start"
    ]


def test_options_that_would_break_a_run_are_taken_away_and_named(run_tree: Any) -> None:
    files = {
        "pytest.ini": "[pytest]\naddopts = -x -n 2 --dist=loadfile --maxfail=1 -k 'not unwanted'\n",
        "test_a.py": "def test_1(): assert 0\ndef test_2(): pass\ndef test_unwanted(): assert 0\n",
    }
    ran = run_tree(files, config_file="pytest.ini")
    assert ran.outcomes == {
        "test_a.py::test_1": "failed",
        "test_a.py::test_2": "passed",
        "test_a.py::test_unwanted": "deselected",
    }
    named = [note["text"] for note in ran.records("note", topic="neutralised")]
    assert named == ["-x", "-n 2", "--dist=loadfile", "--maxfail=1"]


@pytest.mark.parametrize("args", [("-k", "a and"), ("--no-such-option",)], ids=" ".join)
def test_arguments_that_pytest_refuses_are_said_in_its_words(run_tree: Any, args: tuple[str, ...]) -> None:
    config = replace(run_tree.config, node=replace(run_tree.config.node, pytest_args=args))
    ran = run_tree({"test_a.py": "def test_1(): pass\n"}, config=config)
    assert ran.outcomes == {"test_a.py": "collection_error"}
    (told,) = ran.report.tests
    assert "rong expression" in told.message + told.output or "--no-such-option" in told.message + told.output


@pytest.mark.parametrize("plugin", ["rerunfailures", "benchmark"])
def test_plugins_that_act_on_being_a_worker_when_configured_are_told_later(
    run_tree: Any, plugin: str
) -> None:
    files = {
        f"{plugin}.py": "def pytest_configure(config): assert not hasattr(config, 'workerinput')\n",
        "pytest.ini": f"[pytest]\naddopts = -p {plugin}\n",
        "test_a.py": "def test_1(pytestconfig): assert pytestconfig.workerinput['workerid'] == 'gw0'\n",
    }
    env = {**run_tree.config.node.env, "PYTHONPATH": str(run_tree.root)}
    config = replace(run_tree.config, node=replace(run_tree.config.node, env=env))
    ran = run_tree(files, config=config, config_file="pytest.ini")
    assert ran.outcomes == {"test_a.py::test_1": "passed"}


def test_pythonpath_reaches_the_tests_and_what_they_start(run_tree: Any) -> None:
    files = {
        "lib/of_ours.py": "",
        "test_a.py": "import subprocess, sys\n"
        "def test_here(): import of_ours\n"
        "def test_below(): subprocess.run([sys.executable, '-c', 'import of_ours, theirs'], check=True)\n",
        "theirs/theirs.py": "",
    }
    env = {**run_tree.config.node.env, "PYTHONPATH": str(run_tree.root / "theirs")}
    node = replace(run_tree.config.node, env=env)
    config = replace(run_tree.config, node=node, container={"pythonpath": ["lib"]})
    ran = run_tree(files, config=config)
    assert set(ran.outcomes.values()) == {"passed"}, [test.output for test in ran.report.tests]


def test_configuration_above_the_tree_has_no_effect(run_tree: Any, tmp_path: Any) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('above ROOT')\n")
    assert run_tree({"test_a.py": "def test_1(): pass\n"}).outcomes == {"test_a.py::test_1": "passed"}


@pytest.mark.parametrize(("isolate", "processes"), [("file", 1), ("test", 3)])
def test_an_isolated_unit_shares_its_process_with_nothing(
    run_tree: Any, isolate: str, processes: int
) -> None:
    body = SHOW + "".join(f"def test_{i}(record_property): print(os.getpid())\n" for i in range(3))
    body += "@pytest.fixture(autouse=True)\ndef tell():\n    open('pids', 'a').write('%d\\n' % os.getpid())\n"
    ran = run_tree(
        {"test_a.py": body},
        units={"test_a.py": {"mode": "isolated"}},
        config=replace(run_tree.config, node=replace(run_tree.config.node, isolate=isolate)),
    )
    assert list(ran.outcomes.values()) == ["passed"] * 3
    assert len(set((run_tree.root / "pids").read_text().split())) == processes


def test_units_of_one_file_run_what_they_select(run_tree: Any) -> None:
    body = "import pytest\n@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): pass\ndef test_b(): pass\n"
    ran = run_tree({"test_a.py": body}, units={"test_a.py": {"select": {"except": ["test_a.py::test_a"]}}})
    assert [record["nodeid"] for record in ran.records("end")] == ["test_a.py::test_b"]
    (collected,) = ran.records("collected")
    assert len(collected["ids"]) == 3


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("def test_1(): pass", "passed"),
        ("def test_1(): assert 0", "failed"),
        ("def test_1(no_such_fixture): pass", "error"),
        ("@pytest.fixture\ndef f():\n    yield\n    assert 0\ndef test_1(f): pass", "error"),
        ("@pytest.fixture\ndef f():\n    yield\n    assert 0\ndef test_1(f): assert 0", "failed"),
        ("@pytest.mark.skip\ndef test_1(): pass", "skipped"),
        ("@pytest.mark.xfail\ndef test_1(): assert 0", "xfailed"),
        ("@pytest.mark.xfail\ndef test_1(): pass", "xpassed"),
        ("@pytest.mark.xfail(strict=True)\ndef test_1(): pass", "failed"),
        ("def test_1(): pytest.xfail('known')", "xfailed"),
        ("import sys\ndef test_1(): sys.exit(3)", "failed"),
        (
            "import unittest\nclass TestA(unittest.TestCase):\n    @unittest.expectedFailure\n"
            "    def test_1(self): assert 0",
            "xfailed",
        ),
    ],
)
def test_outcomes(run_tree: Any, body: str, outcome: str) -> None:
    assert list(run_tree({"test_a.py": "import pytest\n" + body}).outcomes.values()) == [outcome]
