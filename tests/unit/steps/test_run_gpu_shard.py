"""A shard that never got to a cluster still leaves a report."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from gpuci.cli import main
from gpuci.github.step import Step
from gpuci.steps import run_gpu_shard

CONFIG = "packages: [.]\nprofiles:\n  node: {gpus: 1}\n"
TESTS = "import pytest\n\npytestmark = pytest.mark.gpu\ndef test_a(): pass\ndef test_b(): pass\n"


@pytest.fixture
def environ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What a step gives the program for a tree of two tests; the configuration names no login node."""
    tree = tmp_path / "tree"
    (tree / ".github").mkdir(parents=True)
    (tree / ".github/gpuci.yml").write_text(CONFIG)
    (tree / "test_x.py").write_text(TESTS)
    assert main(["plan", str(tree), "--json"]) == 0
    plan = tmp_path / "plan.json"
    plan.write_text(capsys.readouterr().out)
    return {
        "GPUCI_PLAN": str(plan),
        "GPUCI_SHARD": "all",
        "GPUCI_TREE": str(tree),
        "GPUCI_OUT": str(tmp_path / "out"),
        "GITHUB_REPOSITORY": "owner/name",
        "GITHUB_RUN_ID": "1",
    }


def step_of(environ: dict[str, str], **secrets: str) -> Step:
    """The step as its entry makes it."""
    return Step("run-gpu-shard", environ, {f"GPUCI_{name}": value for name, value in secrets.items()})


def test_what_keeps_it_from_the_cluster_is_the_verdict_of_its_tests(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_gpu_shard.run(step_of(environ))
    report = json.loads((Path(environ["GPUCI_OUT"]) / "report.json").read_text())
    assert (code, report["verdict"]) == (2, "config_error")
    assert {test["nodeid"]: test["outcome"] for test in report["tests"]} == {
        "test_x.py::test_a": "not_finished",
        "test_x.py::test_b": "not_finished",
    }
    assert "error: " in capsys.readouterr().err
    assert report["shards"][0]["reason"]


def test_what_the_delivered_tree_lacks_stands_in_the_report(environ: dict[str, str]) -> None:
    subprocess.run(["git", "init", "-q", environ["GPUCI_TREE"]], check=True)
    (Path(environ["GPUCI_TREE"]) / ".gitignore").write_text("test_*\n")
    run_gpu_shard.run(step_of(environ))
    report = json.loads((Path(environ["GPUCI_OUT"]) / "report.json").read_text())
    assert [warning.split(",")[0] for warning in report["warnings"]] == [
        "nothing is committed here yet: all 2 files are delivered as here",
        "planned",
    ]


def test_a_run_that_is_cancelled_before_it_reaches_the_cluster_leaves_a_report(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(run_gpu_shard, "_archive", stopped)
    code = run_gpu_shard.run(step_of(environ))
    report = json.loads((Path(environ["GPUCI_OUT"]) / "report.json").read_text())
    assert (code, report["verdict"]) == (7, "cancelled")
