"""What holds for gpu.yml beside the rules of all workflows: by hand, behind what, with which secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).resolve().parents[2] / ".github" / "workflows" / "gpu.yml"
TEXT = FILE.read_text()
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
EVENTS = WORKFLOW[True]  # YAML 1.1 reads the key `on` as true
CALLED = EVENTS["workflow_call"]["inputs"]
BY_HAND = EVENTS["workflow_dispatch"]["inputs"]
RUNS_CODE = "build-image"
# What this workflow leaves as it is: its token is the job's, its commits are GitHub's, its jobs are several.
LEFT_OUT = {
    "build-image": {"builder"},
    "gpu-tests-passed": {"comment-author", "single-job"},
    "run-gpu-shard": {"tree"},
}
SUBMITS = "gpu-tests"


def literal(value: object) -> str:
    """A default as an expression writes it."""
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def places(name: str) -> list[str]:
    """The expressions that read an input."""
    found = re.findall(r"\$\{\{.*?\}\}|^ +(?:&& )?inputs\..*$", TEXT, re.MULTILINE)
    return [place for place in found if re.search(rf"inputs\.{name}\b(?!-)", place)]


@pytest.mark.parametrize("name", [name for name in CALLED if CALLED[name]["default"] != ""])
def test_by_hand_an_input_that_nobody_gives_is_its_default(name: str) -> None:
    """`workflow_dispatch` declares few of them; what it doesn't is null: `''`, `0` and `false` at once."""
    default = CALLED[name]["default"]
    # A default that is true needs a test that null passes.
    whole = (
        f"format('{{0}}', inputs.{name}) != 'false'"
        if default is True
        else f"inputs.{name} || {literal(default)}"
    )
    assert places(name)
    for place in places(name):
        assert whole in place


def test_what_can_be_given_by_hand_is_an_input_of_the_call_too() -> None:
    assert set(BY_HAND) == {"pull-request", "sha", "packages", "test-expression", "shards"}
    for name, given in BY_HAND.items():
        assert given["type"] == CALLED[name]["type"]


def test_one_job_names_the_environment_and_an_earlier_one_checks_that_environment() -> None:
    assert [name for name, job in JOBS.items() if "environment" in job] == [SUBMITS]
    (step,) = (step for step in JOBS["wait-for-label"]["steps"] if step.get("id") == "wait-for-label")
    assert step["with"]["environment"] == JOBS[SUBMITS]["environment"]
    assert "wait-for-label" in JOBS[SUBMITS]["needs"]


@pytest.mark.parametrize(
    ("job", "condition"),
    [
        ("build-image", "needs.wait-for-label.outputs.approved == 'true'"),
        ("calculate-shards", "needs.wait-for-label.outputs.approved == 'true'"),
        (SUBMITS, "needs.wait-for-label.outputs.approved == 'true'"),
        (SUBMITS, "needs.build-image.result == 'success'"),
        (SUBMITS, "needs.calculate-shards.result == 'success'"),
        ("tag-image", "needs.gpu-tests-passed.outputs.verdict == 'passed'"),
        ("tag-image", "needs.find-changed.outputs.trusted == 'true'"),
    ],
)
def test_a_job_runs_only_if(job: str, condition: str) -> None:
    """Each of these alone keeps it from running: they are joined by `&&`, and what is in brackets aside."""
    outside = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "()", JOBS[job]["if"])
    assert "||" not in outside
    assert condition in re.split(r"\s*&&\s*", outside.strip())


@pytest.mark.parametrize(
    "step",
    [step for job in JOBS.values() for step in job["steps"] if step.get("uses", "").startswith("$/")],
    ids=lambda step: step["uses"].rpartition("/")[2],
)
def test_a_step_gives_its_action_every_input(step: dict[str, Any]) -> None:
    """One that is forgotten keeps its default, and nobody is told."""
    name = step["uses"].rpartition("/")[2]
    declared = yaml.safe_load((FILE.parents[2] / "actions" / name / "action.yml").read_text())["inputs"]
    assert declared.keys() - step["with"].keys() - {"token"} == LEFT_OUT.get(name, set())


def test_an_approval_can_be_taken_back_whatever_became_of_find_changed() -> None:
    """In each shape: a job or step without such an `if` is skipped when what it needs failed."""
    even_then = "success() || (always() && github.event.action == 'unlabeled')"
    root = yaml.safe_load((FILE.parents[2] / "action.yml").read_text())["runs"]["steps"]
    one_by_one = yaml.safe_load((FILE.parents[2] / "tests/e2e/consumer/gpu.yml").read_text())["jobs"]
    (step,) = (step for step in root if step.get("id") == "wait-for-label")
    for asks in (JOBS["wait-for-label"], one_by_one["wait-for-label"], step):
        assert asks["if"] == even_then


def test_each_name_that_a_run_or_a_repository_has_once_carries_the_use() -> None:
    """Artifacts are of the run, a concurrency group is of the repository."""
    uploads = [
        step["with"]["name"]
        for job in JOBS.values()
        for step in job["steps"]
        if step["uses"].startswith("actions/upload-artifact@")
    ]
    assert len(uploads) == 5
    group = JOBS[SUBMITS]["concurrency"]["group"]
    for name in (*uploads, group):
        assert re.match(r"\$\{\{ (needs|steps)\.[a-z-]+\.outputs\.prefix \}\}", name), name


def test_a_shard_that_fails_ends_no_other() -> None:
    assert JOBS[SUBMITS]["strategy"]["fail-fast"] is False


def test_the_job_that_runs_a_stranger_s_dockerfile_writes_nothing_others_read() -> None:
    assert JOBS[RUNS_CODE]["cache-mode"] == "read"
    assert set(JOBS[RUNS_CODE]["permissions"].values()) == {"read"}
    assert "secrets.registry-password" not in str(JOBS[RUNS_CODE])
