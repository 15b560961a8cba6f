"""Scenarios of code by people with write access: it runs without an approval, and none is recorded."""

from __future__ import annotations

import json
from collections import Counter

from tests.cluster.example import EXPECTED
from tests.e2e.harness import events
from tests.e2e.harness.act import Ran
from tests.e2e.harness.caller import CONFIGURATION
from tests.e2e.harness.outcomes import COUNTS, counted, passed
from tests.e2e.harness.scenario import DISPATCH, TRUSTED, scenario
from tests.e2e.harness.scenarios import KERNELS, touch
from tests.e2e.harness.stage import PROTECTED, Stage

NIGHTLY = {
    f"packages/trainer/tests/test_schedule.py::{name}"
    for name in ("test_full_run", "test_full_run_on_two_devices")
}
FIRST_PUSH = "0" * 40


def open_to(stage: Stage, *branches: str) -> None:
    """The environment admits other branches besides."""
    protected = {**PROTECTED, "branch_policies": ["main", *branches]}
    stage.repository.environments["gpu"] = protected


def trusted(stage: Stage, ran: Ran, sha: str, *, shards: int = 1) -> None:
    """Green, and by nobody's approval."""
    passed(stage, ran, sha, shards=shards)
    assert "gpuci/approved" not in stage.statuses(sha)


def nightly(stage: Stage) -> set[str]:
    """Outcomes of the nightly tests."""
    return {test["outcome"] for test in stage.report()["tests"] if test["nodeid"] in NIGHTLY}


@scenario("mirror-branch", TRUSTED, shards={"max": 1})
def mirror_branch(stage: Stage) -> list[Ran]:
    """A pull request's commit is pushed to a branch: it runs, with the default branch's configuration."""
    open_to(stage, "gpuci/*")
    own = json.dumps({"packages": ["lib"], "slurm": {"login": ["login.example.com"], "user": "sam"}})
    changes = {**touch(stage, KERNELS), CONFIGURATION: own}
    sha = stage.caller.commit(changes, on=stage.caller.main, branch="gpuci/pr-12")
    stage.repository.branches["gpuci/pr-12"] = sha
    stage.pushed(sha, "PUSHED")
    ran = stage.run(events.push(stage.repository, "gpuci/pr-12", FIRST_PUSH, sha, "wim"))
    trusted(stage, ran, sha)
    counted(stage)
    return [ran]


@scenario("merge-group", TRUSTED, shards={"max": 1})
def merge_group(stage: Stage) -> list[Ran]:
    """The merge queue asks: its commit runs, with a configuration of its own, for what it changes."""
    open_to(stage, "gh-readonly-queue/main/*")
    base = stage.caller.main
    own = json.loads(stage.caller.text(CONFIGURATION))
    own["shards"] = {"min-tests": 1, "max": 2}
    changes = {**touch(stage, KERNELS), CONFIGURATION: json.dumps(own)}
    sha = stage.caller.commit(changes, on=base, branch=f"gh-readonly-queue/main/pr-12-{base}")
    stage.pushed(sha, "QUEUED")
    ran = stage.run(events.merge_group(stage.repository, base, sha, "github-merge-queue[bot]"))
    trusted(stage, ran, sha, shards=2)
    return [ran]


@scenario("schedule", TRUSTED, shards={"max": 1})
def schedule(stage: Stage) -> list[Ran]:
    """At night: every test of the default branch, those marked nightly too."""
    ran = stage.run(events.schedule(stage.repository, "maria"))
    trusted(stage, ran, stage.caller.main)
    more = Counter(EXPECTED["scheduled_run"])
    more.subtract(EXPECTED["run"])
    assert stage.report()["counts"] == Counter(COUNTS) + more
    assert nightly(stage) == {"passed"}
    return [ran]


@scenario("dispatch-everything", DISPATCH, shards={"max": 1})
def dispatch_everything(stage: Stage) -> list[Ran]:
    """Somebody starts the workflow without a pull request: every test of that branch, none marked nightly."""
    ran = stage.run(events.dispatch(stage.repository, "wim", pull_request="", sha=""))
    trusted(stage, ran, stage.caller.main)
    counted(stage)
    assert nightly(stage) == {"skipped"}
    return [ran]
