"""A shard that never got to a cluster still leaves its results; what it asks of GitHub before."""

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.github.server import Server
from tests.fakes.github.state import Repository, State, Token

from gpuci.cli import main
from gpuci.config.model import Config
from gpuci.errors import ConfigError
from gpuci.github.step import Step
from gpuci.model import Plan, Report, ShardRun
from gpuci.results import runs_document
from gpuci.results.build import build_report
from gpuci.steps import clean_up_gpu_shard, run_gpu_shard, shard_plan

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


def test_runs_json_holds_what_the_job_of_all_shards_needs(environ: dict[str, str]) -> None:
    run_gpu_shard.run(step_of(environ))
    document = json.loads((Path(environ["GPUCI_OUT"]) / "runs.json").read_text())
    (run,) = runs_document.from_document(document).runs
    assert (run.index, run.attempt, run.records) == (1, 1, ())
    assert run.verdict is not None
    assert run.verdict["verdict"] == "config_error"


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


def test_a_signal_while_results_are_written_costs_none(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub sends SIGTERM 7.5 s after SIGINT, whatever we do then."""

    def signalled(*args: Any, **kwargs: Any) -> Report:
        os.kill(os.getpid(), signal.SIGINT)
        return build_report(*args, **kwargs)

    monkeypatch.setattr(run_gpu_shard, "build_report", signalled)
    assert run_gpu_shard.run(step_of(environ)) == 2
    assert sorted(path.name for path in Path(environ["GPUCI_OUT"]).glob("*.json")) == [
        "report.json",
        "runs.json",
    ]


@pytest.mark.parametrize(("shard", "code"), [("all", 1), ("1", 0)])
def test_whether_any_test_ran_is_asked_of_all_shards_together(
    shard: str, code: int, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An expression may fit no test of a shard, and its other tests may all skip: the gate sees the rest."""

    def nothing_ran(plan: Plan, runs: object, **options: Any) -> Report:
        skipped = tuple(ShardRun(one.index, (), {"verdict": "passed"}) for one in plan.shards)
        return build_report(replace(plan, units=(), shards=()), skipped, **options)

    monkeypatch.setattr(run_gpu_shard, "build_report", nothing_ran)
    assert run_gpu_shard.run(step_of({**environ, "GPUCI_SHARD": shard})) == code


@dataclass
class OnGitHub:
    """A commit of a pull request that GitHub holds, planned; nothing of it is on this machine."""

    server: Server
    sha: str
    environ: dict[str, str]

    def run(self, token: str = "job-token", **changed: str) -> int:
        """The exit code."""
        return run_gpu_shard.run(step_of({**self.environ, **changed}, TOKEN=token))

    def read(self, name: str) -> dict[str, Any]:
        """A document that it left."""
        document: dict[str, Any] = json.loads((Path(self.environ["GPUCI_OUT"]) / name).read_text())
        return document

    def approve(self, sha: str) -> None:
        """Put an approval on record."""
        record = {"context": "gpuci/approved", "state": "success", "created_at": "2026-11-20T12:00:00Z"}
        told = {"description": "approved by @maria (label)"}
        self.server.state.repositories[0].statuses[sha] = [{**record, **told}]


@pytest.fixture
def github(environ: dict[str, str], tmp_path: Path) -> Iterator[OnGitHub]:
    """The tree of `environ` as the head of a pull request; its directory is not there any more."""
    tree, bare = Path(environ.pop("GPUCI_TREE")), tmp_path / "shop.git"
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "first")):
        subprocess.run(["git", "-C", str(tree), *command], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(tree), str(bare)], check=True)
    sha = subprocess.run(
        ["git", "-C", str(bare), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    tree.rename(tmp_path / "elsewhere")
    pull = {"number": 7, "head": {"sha": sha}, "base": {"sha": sha}}
    (tmp_path / "event.json").write_text(json.dumps({"action": "labeled", "pull_request": pull}))
    repository = Repository("owner/name", git=str(bare))
    token = Token({"contents": "read", "statuses": "read"})
    with Server(State([repository], {"job-token": token})) as server:
        more = {
            "GPUCI_SHA": sha,
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_API_URL": server.url,
            "GITHUB_SERVER_URL": server.url,
            "GITHUB_RUN_ATTEMPT": "1",
        }
        yield OnGitHub(server, sha, {**environ, **more})


def test_without_an_approval_nothing_is_fetched_and_nothing_submitted(github: OnGitHub) -> None:
    assert github.run() == 8
    report = github.read("report.json")
    assert (report["verdict"], report["counts"]) == ("unauthorized", {"not_finished": 2})
    assert github.sha in report["shards"][0]["reason"]
    assert github.read("runs.json")["runs"][0]["verdict"]["verdict"] == "unauthorized"
    assert [(seen.method, seen.path) for seen in github.server.requests] == [
        ("GET", f"/repos/owner/name/commits/{github.sha}/statuses")
    ]


def test_an_approved_commit_is_fetched_by_its_id(github: OnGitHub) -> None:
    """And then needs a way to the cluster, of which this configuration says nothing."""
    github.approve(github.sha)
    assert github.run() == 2
    report = github.read("report.json")
    assert "login" in report["shards"][0]["reason"]
    assert report["warnings"] == []
    paths = [seen.path for seen in github.server.requests]
    assert paths[0] == f"/repos/owner/name/commits/{github.sha}/statuses"
    assert {path.rpartition("/")[2] for path in paths[1:]} == {"refs", "git-upload-pack"}


def test_without_permission_to_ask_it_says_which(
    github: OnGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    github.server.state.tokens["job-token"] = Token({"contents": "read"})
    assert github.run() == 2
    assert "statuses: read" in capsys.readouterr().err


def test_the_step_says_whether_anything_can_be_left_on_the_cluster(github: OnGitHub, tmp_path: Path) -> None:
    files = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    github.run(GITHUB_ACTIONS="true", **files)
    lines = (tmp_path / "output").read_text().splitlines()
    assert (lines[1], lines[4]) == ("unauthorized", "true")
    assert [line.partition("<<")[0] for line in lines[::3]] == ["verdict", "nothing-left"]
    assert "shard 1" in (tmp_path / "summary").read_text()


def test_a_plan_for_another_commit_is_refused(github: OnGitHub, tmp_path: Path) -> None:
    plan = json.loads(Path(github.environ["GPUCI_PLAN"]).read_text())
    Path(github.environ["GPUCI_PLAN"]).write_text(json.dumps({**plan, "sha": "f" * 40}))
    with pytest.raises(ConfigError, match=f"for the commit {'f' * 40}"):
        github.run()
    assert not (tmp_path / "out").exists()


def test_a_plan_that_another_job_put_there_is_refused(github: OnGitHub, tmp_path: Path) -> None:
    """It would say which program gets the key, so nothing of it counts."""
    path = Path(github.environ["GPUCI_PLAN"])
    digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    github.run(GPUCI_PLAN_DIGEST=digest, GPUCI_OUT=str(tmp_path / "good"))
    assert (tmp_path / "good/report.json").exists()
    plan = json.loads(path.read_text())
    plan["config"]["slurm"]["credential-command"] = ["cat"]
    path.write_text(json.dumps(plan))
    with pytest.raises(ConfigError, match="not what calculate-shards made"):
        github.run(GPUCI_PLAN_DIGEST=digest)
    with pytest.raises(ConfigError, match="not what calculate-shards made"):
        clean_up_gpu_shard.run(step_of({**github.environ, "GPUCI_PLAN_DIGEST": digest}))
    assert not (tmp_path / "out").exists()


TAG, DIGEST = "registry.example.org/train:1", f"registry.example.org/train@sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("runtime", "configured", "given", "used"),
    [
        ("podman", TAG, "", TAG),
        ("podman", TAG, TAG, TAG),
        ("podman", TAG, DIGEST, DIGEST),
        ("podman", "", DIGEST, DIGEST),
        ("podman", TAG, f"{TAG}2", "by digest"),
        ("podman", "", f"x y@sha256:{'a' * 64}", "by digest"),
        ("podman", "", f"--privileged@sha256:{'a' * 63}", "by digest"),
        ("podman", "", f"--privileged@sha256:{'a' * 64}", "by digest"),
        ("none", "", DIGEST, "runtime is none"),
    ],
    ids=["none", "same", "digest", "none before", "tag", "blank", "short", "an option", "no container"],
)
def test_an_image_is_given_by_digest(runtime: str, configured: str, given: str, used: str) -> None:
    config = Config(container={"runtime": runtime, "image": configured})
    if "/" in used:
        assert shard_plan.with_image(config, given).container["image"] == used
    else:
        with pytest.raises(ConfigError, match=used):
            shard_plan.with_image(config, given)
