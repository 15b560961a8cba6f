"""Scenarios of *Re-run failed jobs*: attempts of one run are put together."""

from __future__ import annotations

import html
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.harness.act import Ran
from tests.e2e.harness.again import Jobs, rerun, together
from tests.e2e.harness.events import Event
from tests.e2e.harness.outcomes import told
from tests.e2e.harness.product import dump, load
from tests.e2e.harness.scenario import scenario
from tests.e2e.harness.scenarios import BROKEN, SHARED, touch
from tests.e2e.harness.stage import LABELED, Stage

GATE: Jobs = {"gpu-tests-passed": ()}
# Containers of the bed have the network of their node.
ASKS = """

def test_that_a_service_answers():
    import socket

    socket.create_connection(("127.0.0.1", {port}), 5).close()
"""


def again(stage: Stage, event: Event, first: Ran, attempt: int, jobs: Jobs) -> Ran:
    """Run these jobs of a run again, and no other."""
    directory = stage.directory / f"product-{attempt}"
    shutil.copytree(stage.product.directory, directory)
    workflow = directory / ".github/workflows/gpu.yml"
    workflow.write_text(dump(rerun(load(workflow), first, jobs)))
    return stage.run(event, attempt=attempt, product=directory)


def record(stage: Stage, sha: str, state: str) -> None:
    """The approval is taken back, or given again, by another run of the workflow."""
    (old,) = (one for one in stage.repository.statuses[sha][:1] if one["context"] == "gpuci/approved")
    stage.repository.statuses[sha].append({**old, "id": 10**6, "state": state, "created_at": LABELED})


def results(report: Mapping[str, Any], shards: set[int]) -> list[Any]:
    """What a report says of the tests of these shards, to the microsecond."""
    return [test for test in report["tests"] if test["shard"] in shards]


def artifact(stage: Stage, shard: int, attempt: int) -> Path:
    """What a shard's job left."""
    return stage.stored(f"gpuci-shard-{shard}-attempt-{attempt}")


@scenario("re-run-failed-jobs", shards={"min-tests": 1, "max": 4})
def re_run_failed_jobs(stage: Stage) -> list[Ran]:
    """A test fails, and its shard alone runs again: refused while the approval is taken back, then green with
    the other shards' results of attempt 1; the gate alone, with a shard's results lost, is no pass."""
    with socket.socket() as service:
        service.bind(("127.0.0.1", 0))
        asks = stage.caller.text(BROKEN) + ASKS.format(port=service.getsockname()[1])
        pull = stage.open_pull({**touch(stage, SHARED), BROKEN: asks})
        event = stage.label(pull, "maria")
        first = stage.run(event)
        assert first.job("gpu-tests-passed").outputs["verdict"] == "failed", told(first)
        (red,) = (job.matrix["shard"] for job in first.of("gpu-tests") if job.outputs["verdict"] == "failed")
        jobs = {"gpu-tests": [red], **GATE}
        record(stage, pull.head_sha, "failure")
        refused = again(stage, event, first, 2, jobs)
        _nothing_submitted(stage, refused, pull.head_sha)
        record(stage, pull.head_sha, "success")
        service.listen()
        green = again(stage, event, first, 3, jobs)
    _put_together(stage, green, pull.head_sha, red)
    lost = min(set(range(1, 5)) - {red})
    shutil.rmtree(artifact(stage, lost, 1))
    late = again(stage, event, together(first, green, jobs), 4, GATE)
    _names_what_is_lost(stage, late, pull.head_sha, lost)
    return [first, refused, green, late]


def _nothing_submitted(stage: Stage, ran: Ran, sha: str) -> None:
    shard, gate = ran.job("gpu-tests"), ran.job("gpu-tests-passed")
    assert (shard.result, shard.outputs["verdict"]) == ("failure", "unauthorized"), told(ran)
    assert (gate.result, gate.outputs["verdict"]) == ("failure", "unauthorized"), told(ran)
    assert (shard.exit_codes, gate.exit_codes) == ({8}, {8})
    assert len(stage.submitted()) == 4
    assert stage.statuses(sha)["gpuci"][0] == "failure", "what a test said stays"


def _put_together(stage: Stage, ran: Ran, sha: str, red: int) -> None:
    assert ran.code == 0, told(ran)
    assert len(stage.submitted()) == 5
    assert stage.statuses(sha)["gpuci"][0] == "success"
    others = set(range(1, 5)) - {red}
    before, after = stage.report(1), stage.report(3)
    assert results(after, others) == results(before, others)
    assert len(results(after, others)) > 10
    assert {test["nodeid"] for test in results(after, {red})} == {
        test["nodeid"] for test in results(before, {red})
    }
    (comment,) = stage.comments()
    for text in (ran.job("gpu-tests-passed").summary, comment):
        assert "Results of earlier attempts: shard" in text, text
        assert "(attempt 1)." in text, text


def _names_what_is_lost(stage: Stage, ran: Ran, sha: str, lost: int) -> None:
    gate = ran.job("gpu-tests-passed")
    assert (gate.result, gate.outputs["verdict"]) == ("failure", "infra"), told(ran)
    page = html.unescape(gate.summary)
    assert f"shard {lost}: infra (its job left no results" in page, page
    state, text = stage.statuses(sha)["gpuci"]
    assert (state, text.partition(" (")[0]) == ("error", f"infra: shard {lost}: infra")
    assert len(stage.submitted()) == 5
