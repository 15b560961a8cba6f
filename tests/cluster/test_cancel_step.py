"""A run that is cancelled on GitHub, by the runner's own invocation: nothing stays on the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bed.handle import Bed
from tests.cluster.bed.processes import wait_for
from tests.cluster.runner_step import Planned, planned, until_empty

SHARDS = 3
LEASE_SECONDS = 20
# After the lease is found dead: the node ends its tests in order, and Slurm cleans up behind it.
AFTER_THE_LEASE_SECONDS = 30


@pytest.fixture
def work(bed: Bed, tmp_path: Path) -> Iterator[Planned]:
    """Three shards in containers, each of a test that only SIGKILL ends."""
    made = planned(bed, tmp_path, SHARDS, lease_seconds=LEASE_SECONDS)
    yield made
    left = [job.id for job in bed.queue() if job.name.startswith("gpuci-octo.cancelled-")]
    if left:
        bed.root("scancel", *left)


def test_a_cancelled_step_leaves_an_empty_queue_within_ten_seconds(work: Planned) -> None:
    step, names = work.step()
    assert wait_for(lambda: step.running(SHARDS), 90), step.log.read_text()
    emptied = until_empty(work, names, step.cancel, patience=60)
    assert len(emptied.jobs) == SHARDS
    assert (emptied.seconds < 10, emptied.code) == (True, 7), step.log.read_text()
    assert {f"gpuci-{job}" for job in emptied.jobs} & set(work.bed.containers()) == set()
    report = json.loads((step.out / "report.json").read_text())
    assert (report["verdict"], report["counts"]) == ("cancelled", {"not_finished": SHARDS})
    runs = json.loads((step.out / "runs.json").read_text())["runs"]
    assert [(run["index"], run["attempt"]) for run in runs] == [(1, 1), (2, 1), (3, 1)]
    assert "true" in (step.out.parent / "output").read_text().partition("nothing-left")[2]


@pytest.mark.parametrize("moment", ["at once", "when a job is there"])
def test_it_does_not_matter_when_it_is_cancelled(work: Planned, moment: str) -> None:
    step, names = work.step()
    if moment != "at once":
        assert wait_for(lambda: bool(work.jobs(names)), 60), step.log.read_text()
    emptied = until_empty(work, names, step.cancel, patience=60)
    assert emptied.seconds < 10, step.log.read_text()


def test_a_killed_step_is_cleaned_up_by_the_next_one(work: Planned) -> None:
    step, names = work.step()
    assert wait_for(lambda: step.running(SHARDS), 90), step.log.read_text()
    step.kill()
    assert len(work.jobs(names)) == SHARDS
    run = names.removesuffix("-").rpartition("-")[2]
    cleaning, _ = work.step("clean-up-gpu-shard", run)
    assert cleaning.process.wait(60) == 0, cleaning.log.read_text()
    assert work.jobs(names) == []


def test_without_anybody_left_the_lease_ends_the_jobs(work: Planned) -> None:
    """As after SIGKILL of everything on the runner."""
    step, names = work.step()
    assert wait_for(lambda: step.running(SHARDS), 90), step.log.read_text()

    def killed() -> int:
        step.kill()
        return step.process.wait()

    emptied = until_empty(work, names, killed, patience=LEASE_SECONDS + AFTER_THE_LEASE_SECONDS)
    assert (len(emptied.jobs), emptied.code) == (SHARDS, -9)
