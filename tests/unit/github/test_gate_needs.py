"""What GitHub says of jobs and steps, read strictly: nothing that is missing counts as done."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpuci.errors import ConfigError
from gpuci.github.gate import COLUMNS, JOBS, decide
from gpuci.github.needs import facts_of, read_needs
from gpuci.model import Plan, Shard, SkippedTest

SHA = "a" * 40
OUTPUTS: dict[str, dict[str, str]] = {
    "find-changed": {"sha": SHA, "affected": "true", "pull-request": "12", "everything": "false"},
    "wait-for-label": {"sha": SHA, "approved": "true"},
    "calculate-shards": {"artifact": "gpuci-plan-attempt-3"},
}
PLAN = Plan({}, SHA, "push", (), (), (), (Shard(1, "default", (), 1.0),), (), (), 1.0, 1.0, 0)
NOTHING = replace(PLAN, shards=())


def document(**changed: Any) -> dict[str, Any]:
    """All jobs were good; a mapping changes outputs of a job, a text its result, None removes it."""
    found: dict[str, Any] = {
        job: {"result": "success", "outputs": dict(OUTPUTS.get(job, {}))} for job in JOBS
    }
    for name, change in changed.items():
        job = name.replace("_", "-")
        if change is None:
            del found[job]
        elif isinstance(change, str):
            found[job]["result"] = change
        else:
            found[job]["outputs"] |= change
    return found


def facts(plan: Plan | None = PLAN, results: str | None = "passed", **changed: Any) -> dict[str, str]:
    return facts_of(read_needs(json.dumps(document(**changed))), plan, results)


@pytest.mark.parametrize(
    ("changed", "column", "value"),
    [
        pytest.param({}, "approved", "true", id="approved"),
        pytest.param({"wait_for_label": {"approved": "false"}}, "approved", "false", id="not approved"),
        pytest.param({"wait_for_label": {"approved": ""}}, "approved", "false", id="not told"),
        pytest.param({"wait_for_label": {"approved": "True"}}, "approved", "false", id="another word"),
        pytest.param({"wait_for_label": {"sha": "b" * 40}}, "approved", "false", id="another commit"),
        pytest.param(
            {"wait_for_label": {"sha": ""}, "find_changed": {"sha": ""}}, "approved", "false", id="no commit"
        ),
        pytest.param({}, "environment", "good", id="environment"),
        pytest.param(
            {"wait_for_label": {"decision": "environment-unprotected"}},
            "environment",
            "unprotected",
            id="open",
        ),
        pytest.param({}, "affected", "true", id="affected"),
        pytest.param({"find_changed": {"affected": "false"}}, "affected", "false", id="not affected"),
        pytest.param({"find_changed": {"affected": ""}}, "affected", "true", id="affected, if not told"),
        pytest.param({"build_image": {"push": "true"}}, "push", "true", id="to be pushed"),
        pytest.param({}, "push", "false", id="not to be pushed"),
        pytest.param({"push_image": "skipped"}, "push-image", "skipped", id="a result"),
        pytest.param({"push_image": None}, "push-image", "absent", id="no such job"),
    ],
)
def test_facts(changed: dict[str, Any], column: str, value: str) -> None:
    found = facts(**changed)
    assert found[column] == value
    assert found.keys() == COLUMNS.keys()
    assert all(found[name] in values for name, values in COLUMNS.items())


@pytest.mark.parametrize(
    ("plan", "everything", "fact"),
    [
        (None, "true", "lost"),
        (PLAN, "true", "shards"),
        (NOTHING, "true", "nothing-found"),
        (NOTHING, "", "nothing-found"),
        (NOTHING, "false", "nothing-due"),
        (replace(NOTHING, skipped=(SkippedTest("a::t", "nightly"),)), "true", "nothing-due"),
    ],
    ids=["lost", "shards", "nothing", "nothing, not told", "nothing of the change", "only skipped tests"],
)
def test_what_the_plan_says(plan: Plan | None, everything: str, fact: str) -> None:
    assert facts(plan, find_changed={"everything": everything})["plan"] == fact


def test_without_results_there_is_no_pass() -> None:
    assert decide(facts(results=None), {}).verdict == "infra"
    assert decide(facts(), {}).passed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ("{}", "find-changed is missing; wait-for-label is missing; calculate-shards is missing; gpu"),
        (json.dumps(document(gpu_tests=None)), "gpu-tests is missing"),
        (json.dumps({**document(), "lint": {"result": "success"}}), "no rule for the job 'lint'"),
        (json.dumps({**document(), "\n::error::": {}}), r"no rule for the job '\\n::error::'"),
        (json.dumps(document(gpu_tests="neutral")), "gpu-tests has the result 'neutral'"),
        (json.dumps({**document(), "gpu-tests": None}), "gpu-tests has the result ''"),
        (json.dumps({**document(), "gpu-tests": {"outcome": "success"}}), "gpu-tests has the result ''"),
    ],
    ids=[
        "empty", "a list", "deep", "no job", "one is missing", "one too many", "a hostile name",
        "a result of later", "no object", "of steps",
    ],
)  # fmt: skip
def test_what_can_t_be_judged_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_needs(text)


def test_steps_of_one_job() -> None:
    steps: dict[str, Any] = {job: {"outcome": "success", "outputs": {}} for job in JOBS if "image" not in job}
    steps["gpu-tests"] |= {"outcome": "failure", "conclusion": "success"}
    steps["environment"] = {"outcome": "failure", "outputs": {}}
    needs = read_needs(json.dumps(steps), steps=True)
    assert needs.results == {
        **dict.fromkeys(JOBS, "success"),
        "gpu-tests": "failure",
        "build-image": "absent",
        "push-image": "absent",
    }
    assert needs.ran


@pytest.mark.parametrize(
    ("told", "number"), [("12", 12), ("", None), ("-1", None), ("\u0661", None), ("9" * 30, None)]
)
def test_the_pull_request(told: str, number: int | None) -> None:
    needs = read_needs(json.dumps(document(find_changed={"pull-request": told})))
    assert needs.pull_request == number


@pytest.mark.parametrize(
    ("artifact", "attempt"), [("gpuci-plan-attempt-3", 3), ("", 1), ("plan", 1), ("x-attempt-x", 1)]
)
def test_the_attempt_of_the_plan(artifact: str, attempt: int) -> None:
    needs = read_needs(json.dumps(document(calculate_shards={"artifact": artifact})))
    assert needs.plan_attempt == attempt


@pytest.mark.parametrize("outputs", [None, [], {"sha": 3}, {"sha": None}], ids=repr)
def test_outputs_that_are_no_texts_are_not_set(outputs: Any) -> None:
    found = {**document(), "find-changed": {"result": "success", "outputs": outputs}}
    assert read_needs(json.dumps(found)).sha == ""
