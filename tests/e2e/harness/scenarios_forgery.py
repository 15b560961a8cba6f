"""A scenario in which a pull request's tests try to speak for others."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.example import EXPECTED
from tests.e2e.harness.act import Job, Ran
from tests.e2e.harness.outcomes import shards_of, told
from tests.e2e.harness.scenario import scenario
from tests.e2e.harness.scenarios import BREAKS, SHARED, touch
from tests.e2e.harness.stage import Stage
from tests.e2e.hostile import forging
from tests.runner_log import read_log

HOSTILE = "packages/data/tests/gpu/test_forging.py"
RED = {"collection_error", "failed", "error", "not_finished"}
# Commands that our steps give; with these the texts of tests stand in groups and annotations only.
OURS = {"add-mask", "endgroup", "error", "group", "notice", "remove-matcher", "stop-commands", "warning"}


@scenario("forgery", shards={"min-tests": 1, "max": 4})
def forgery(stage: Stage) -> list[Ran]:
    """Tests print commands, frames and records, and write to every file and pipe that they find: another
    shard's red test stays red, its good ones stay good, and the runner obeys nothing."""
    assert forging.BROKEN.endswith("::test_that_the_change_breaks")
    file = forging.BROKEN.partition("::")[0]
    pull = stage.open_pull(
        {
            **touch(stage, SHARED),
            file: f"{stage.caller.text(file)}\n\n{BREAKS}",
            HOSTILE: Path(forging.__file__).read_text(encoding="utf-8"),
        }
    )
    ran = stage.run(stage.label(pull, "maria"))
    others_are_right(stage, ran)
    assert stage.statuses(pull.head_sha)["gpuci"][0] == "failure"
    for job in ran.jobs:
        nothing_obeyed(job)
    return [ran]


def others_are_right(stage: Stage, ran: Ran) -> None:
    """Every test of another shard than the hostile ones' has its own outcome, once."""
    assert ran.job("gpu-tests-passed").outputs["verdict"] == "failed", told(ran)
    hostile, broken = shards_of(stage, HOSTILE), shards_of(stage, forging.BROKEN.partition("::")[0])
    assert len(hostile) == 1
    assert hostile.isdisjoint(broken), "the plan has both in one shard: nothing is shown"
    tests = [test for test in stage.report()["tests"] if test["shard"] not in hostile]
    outcomes = {test["nodeid"]: test["outcome"] for test in tests}
    assert len(outcomes) == len(tests) > sum(EXPECTED["run"].values()) / 2
    assert {nodeid for nodeid, outcome in outcomes.items() if outcome in RED} == {forging.BROKEN}
    assert outcomes[forging.VICTIM] == "passed"
    verdicts = {job.matrix["shard"]: job.outputs["verdict"] for job in ran.of("gpu-tests")}
    assert {shard for shard, verdict in verdicts.items() if verdict == "failed"} - hostile == broken
    assert {verdicts[shard] for shard in verdicts.keys() - hostile - broken} == {"passed"}
    speaking = {job.matrix["shard"] for job in ran.of("gpu-tests") if "FORGED" in job.raw}
    assert speaking == hostile, "the log does not show what those tests print"


def nothing_obeyed(job: Job) -> None:
    """The runner reads no command, and no problem matcher fires, by what tests wrote."""
    log = read_log(job.raw)
    tokens = {command.data for command in log.named("stop-commands")}
    assert [command for command in log.beside(*OURS, *tokens) if command.data not in tokens] == []
    assert [command for command in log.commands if "FORGED" in repr(command)] == []
    assert log.matched == []
    assert "FORGED" not in repr((job.outputs, job.summary))
    assert not any(text.startswith("FORGED") for _, text in job.annotations)
