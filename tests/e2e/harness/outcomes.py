"""What scenarios assert of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tests.cluster.example import EXPECTED
from tests.e2e.harness.act import Ran
from tests.e2e.harness.scenario import readable
from tests.e2e.harness.stage import Stage

JOBS = ("find-changed", "wait-for-label", "build-image", "calculate-shards", "gpu-tests", "gpu-tests-passed")
SHARDS = 12
# Of examples/monorepo, whose expected.json counts what its 20 tests of the cpu pool give here (38) too.
COUNTS = {"passed": 185, "xpassed": 1, "xfailed": 3, "skipped": 16, "elsewhere": 20}
assert sum(EXPECTED["run"].values()) == sum(COUNTS.values()) - 20 + 38


def passed(
    stage: Stage, ran: Ran, sha: str, *, jobs: Iterable[str] = JOBS, shards: int = SHARDS, tries: int = 0
) -> None:
    """Green: each job, the check, and as many submissions as shards and second tries."""
    assert ran.code == 0, told(ran)
    assert ran.results == {name: {"success"} for name in jobs}, told(ran)
    assert len(ran.of("gpu-tests")) == shards
    assert ran.job("gpu-tests-passed").outputs["verdict"] == "passed"
    assert stage.statuses(sha)["gpuci"][0] == "success"
    assert len(stage.submitted()) == shards + tries, stage.submitted()


def counted(stage: Stage) -> None:
    """Each test of the example came out as it is known to."""
    assert stage.report()["counts"] == COUNTS


def refused(
    stage: Stage, ran: Ran, sha: str, row: str, *words: str, check: str = "pending", red: bool = False
) -> None:
    """Nothing is submitted or approved by this run; a row of the table and the summary's words say why.

    `check` is the state of the commit's status `gpuci`, empty if it has none. The example for labels has
    `policy-unauthorized: pass`: only the status tells that the commit waits. Others are `red`.
    """
    assert {"build-image", "calculate-shards", "gpu-tests"}.isdisjoint(ran.results), told(ran)
    gate = ran.results.get("gpu-tests-passed")
    assert (ran.code != 0, gate) == (red, {"failure" if red else "success"}), told(ran)
    assert ran.job("gpu-tests-passed").outputs["verdict"] == "unauthorized", told(ran)
    door = ran.job("wait-for-label")
    assert (door.outputs["decision"], door.outputs["approved"]) == (row, "false"), told(ran)
    assert stage.submitted() == []
    assert stage.statuses(sha).get("gpuci", ("",))[0] == check, stage.statuses(sha)
    for word in words:
        assert word in door.summary, door.summary


def shards_of(stage: Stage, file: str) -> set[int]:
    """The shards that the plan gives a file's tests to."""
    plan = json.loads((stage.stored("gpuci-plan-attempt-1") / "plan.json").read_text())
    units = {unit["id"] for unit in plan["units"] if unit["file"] == file}
    return {shard["index"] for shard in plan["shards"] if units & set(shard["units"])}


def told(ran: Ran) -> str:
    """What a person would read to find out why."""
    return "\n".join(f"== {job.name} {dict(job.matrix)}: {job.result}\n{readable(job)}" for job in ran.jobs)
