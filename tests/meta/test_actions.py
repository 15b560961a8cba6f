"""Every action and workflow keeps the rules of action_rules.py, and each rule sees what breaks it."""

from __future__ import annotations

import copy
import importlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.meta import action_rules as rules

import action_docs
import checks

CLONE = Path(__file__).resolve().parents[2]
NAMES = (
    "build-image", "calculate-shards", "find-changed", "gpu-tests-passed", "push-image", "run-gpu-shard",
    "tag-image", "wait-for-label",
)  # fmt: skip
FILES = sorted(CLONE.glob("actions/*/action.yml"))
ROOT = CLONE / "action.yml"
WORKFLOWS = sorted(CLONE.glob(".github/workflows/*.yml"))
GPU = CLONE / ".github" / "workflows" / "gpu.yml"
EXAMPLES = sorted(CLONE.glob("examples/workflows/*.yml"))
# Programs whose argument makes another step of them.
MODES = {("run_gpu_shard", "clean-up"): "clean_up_gpu_shard"}
# They only see their own code.
CHECKS_OUT = {"ci.yml", "release.yml"}
MAX_PROGRAM_LINES = 40


def name(path: Path) -> str:
    return str(path.relative_to(CLONE))


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def actions() -> dict[str, Mapping[str, Any]]:
    """Name -> action; the root action has the empty name."""
    return {"": load(ROOT), **{path.parent.name: load(path) for path in FILES}}


def documented_variables(program: str, mode: str) -> set[str]:
    """The GPUCI_ variables that a step's module says it reads."""
    module = importlib.import_module(f"gpuci.steps.{MODES.get((program, mode), program)}")
    return {variable for variable in module.VARIABLES if variable.startswith("GPUCI_")}


def test_the_actions_of_the_design_are_there() -> None:
    assert {path.parent.name for path in FILES} >= set(NAMES)


@pytest.mark.parametrize(
    "rule",
    [
        rules.names_and_words,
        rules.outputs_come_from_steps,
        rules.inputs_reach_the_program,
        rules.set_up_and_cache,
    ],
    ids=lambda rule: rule.__name__,
)
@pytest.mark.parametrize("path", [ROOT, *FILES], ids=name)
def test_an_action_keeps_the_rules(path: Path, rule: Callable[[rules.Document], Iterable[str]]) -> None:
    assert list(rule(load(path))) == []


@pytest.mark.parametrize("path", [ROOT, *FILES], ids=name)
def test_an_action_runs_programs_of_ours_only(path: Path) -> None:
    action = load(path)
    assert list(rules.run_lines(action, root=path == ROOT)) == []
    for _, program, _ in rules.programs(action):
        file = CLONE / "scripts" / f"{program}.py"
        assert file.is_file()
        assert os.access(file, os.X_OK), f"{name(file)} is not executable"
        assert len(file.read_text().splitlines()) <= MAX_PROGRAM_LINES


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_step_sets_what_its_module_documents(path: Path) -> None:
    action = load(path)
    assert action["name"] == f"gpuci {path.parent.name}"
    for step, program, mode in rules.programs(action):
        if program != "set_up":
            assert rules.variables(step) == documented_variables(program, mode)


@pytest.mark.parametrize("path", [ROOT, *FILES], ids=name)
def test_an_action_sets_up_an_environment_if_a_program_of_it_needs_packages(path: Path) -> None:
    used = {program for _, program, _ in rules.programs(load(path))}
    texts = [(CLONE / "scripts" / f"{program}.py").read_text() for program in used - {"set_up"}]
    assert ("set_up" in used) == any("needs_packages=False" not in text for text in texts)


# A digest is of a file that came from another job; a tree is for runs without GitHub.
NOT_OF_THE_ROOT = {"GPUCI_CHANGES_DIGEST", "GPUCI_PLAN_DIGEST", "GPUCI_TREE"}


def test_the_root_action_sets_all_that_is_read_and_nothing_else() -> None:
    for step, program, mode in rules.programs(load(ROOT)):
        if program != "set_up":
            read = documented_variables(program, mode)
            assert rules.variables(step) - NOT_OF_THE_ROOT == read - NOT_OF_THE_ROOT, program


def test_the_root_action_submits_only_what_is_approved_and_its_last_step_decides() -> None:
    steps = {step["id"]: step for step in rules.steps_of(load(ROOT)) if "id" in step}
    approved = "steps.wait-for-label.outputs.approved == 'true'"
    assert approved in steps["calculate-shards"]["if"].split(" && ")
    assert steps["gpu-tests"]["if"] == "steps.calculate-shards.outputs.shards > 0"
    assert steps["gpu-tests"]["continue-on-error"] is True
    assert [*steps][-1] == "gpu-tests-passed"
    assert steps["gpu-tests-passed"]["if"] == "always()"


@pytest.mark.parametrize("path", [ROOT, *FILES], ids=name)
def test_an_action_is_pinned_and_has_no_checkout(path: Path) -> None:
    text = path.read_text()
    assert [*rules.pins(text), *rules.no_checkout(text)] == []
    assert list(rules.secrets_stay(rules.steps_of(load(path)))) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_a_workflow_keeps_the_rules(path: Path) -> None:
    text, workflow = path.read_text(), load(path)
    assert list(rules.pins(text, own=True)) == []
    assert list(rules.workflow_frame(workflow)) == []
    assert list(rules.calls(workflow, actions())) == []
    if path.name not in CHECKS_OUT:
        assert list(rules.no_checkout(text)) == []
        steps = [step for job in workflow["jobs"].values() for step in job.get("steps", [])]
        assert list(rules.secrets_stay(steps)) == []


def test_few_findings_of_linters_are_ignored_and_each_with_a_reason() -> None:
    """zizmor's behind the line, or in a comment right above it; no file of settings ignores others."""
    ignored = list(checks.ACTIONLINT_IGNORES.items())
    for path in (ROOT, *FILES, *WORKFLOWS, *EXAMPLES):
        lines = ["", *path.read_text().splitlines()]
        for above, line in itertools.pairwise(lines):
            if match := re.search(r"# zizmor: ignore\[[a-z-]+\](.*)", line):
                ignored.append((name(path), match[1].strip() or above.partition("#")[2].strip()))
    assert len(ignored) <= 5
    assert all(reason for _, reason in ignored), ignored
    settings = ("zizmor.yml", "zizmor.yaml", "actionlint.yml", "actionlint.yaml")
    assert [file for file in settings if list(CLONE.glob(file)) + list(CLONE.glob(f".github/{file}"))] == []


def test_the_gate_needs_every_job() -> None:
    assert list(rules.gate_needs_all(load(GPU), "gpu-tests-passed")) == []


def test_the_permissions_of_the_jobs_are_those_of_the_documents() -> None:
    rows = re.findall(
        r"^\| ([a-z-]+) \| .* \| (`.*`) \|$", (CLONE / "docs" / "github.md").read_text(), re.MULTILINE
    )
    told = {job: dict(re.findall(r"`([a-z-]+): ([a-z]+)`", cell)) for job, cell in rows}
    jobs = load(GPU)["jobs"]
    assert {job: told.get(job) for job in jobs} == {job: jobs[job]["permissions"] for job in jobs}


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_grants_what_the_jobs_ask_for(path: Path) -> None:
    """GitHub starts no job of a called workflow that asks for more than its caller has."""
    asked: dict[str, str] = {}
    for job in load(GPU)["jobs"].values():
        asked |= {scope: level for scope, level in job["permissions"].items() if asked.get(scope) != "write"}
    for job in load(path)["jobs"].values():
        if "gpu.yml" in job.get("uses", ""):
            assert job["permissions"] == asked


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_has_runs_that_fill_the_cache(path: Path) -> None:
    """`pull_request_target` may only read it, and a caller's `cache-mode` holds for all jobs that it calls
    (github.blog, "Control GitHub Actions cache access with cache-mode", 2026-09-10)."""
    text = path.read_text()
    events = yaml.safe_load(text)[True]  # YAML 1.1 reads the key `on` as true
    assert events["push"] == {"branches": ["main"]}
    assert "cache-mode" not in text


@pytest.mark.parametrize("path", [*EXAMPLES, *(file.with_name("README.md") for file in FILES)], ids=name)
def test_an_example_uses_inputs_that_there_are(path: Path) -> None:
    if path.suffix == ".md":
        blocks = re.findall(r"^```ya?ml\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
        assert any(f"actions/{path.parent.name}@" in block for block in blocks), "no example of a step"
    else:
        blocks = [path.read_text()]
    for block in blocks:
        assert list(rules.pins(block)) == []
        for step in steps_in(yaml.safe_load(block)):
            assert list(rules.call(step, actions())) == []


def steps_in(node: object) -> Iterable[dict[str, Any]]:
    """Every step that uses one of our actions, wherever it stands in an example."""
    if isinstance(node, dict):
        if re.match(r"org/gpuci(?!/\.github)", str(node.get("uses", ""))):
            yield node
        for value in node.values():
            yield from steps_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from steps_in(value)


def test_the_documents_show_what_the_files_say() -> None:
    stale = {}
    for path in action_docs.documents(CLONE):
        text = path.read_text()
        if action_docs.render(text, path, CLONE) != text:
            stale[name(path)] = "run scripts/action_docs.py"
    assert stale == {}


@pytest.mark.parametrize("path", FILES, ids=name)
def test_the_page_of_an_action_has_its_tables(path: Path) -> None:
    page = path.with_name("README.md").read_text()
    assert "<!-- inputs -->" in page
    assert "<!-- outputs -->" in page


GOOD: dict[str, Any] = yaml.safe_load(r"""
name: gpuci x
description: Does something.
inputs:
  a-name: {description: One thing., required: true}
  token: {description: Another thing., default: "${{ github.token }}"}
outputs:
  result: {description: What came out., value: "${{ steps.run.outputs.result }}"}
runs:
  using: composite
  steps:
    - id: environment
      shell: bash
      env: {PYTHONPATH: ""}
      run: exec sh "$GITHUB_ACTION_PATH/../../scripts/with_python.sh" python3 -I "$GITHUB_ACTION_PATH/../../scripts/set_up.py"
    - uses: actions/cache@55cc8345863c7cc4c66a329aec7e433d2d1c52a9
      if: steps.environment.outputs.ready != 'true'
      with: {path: "${{ steps.environment.outputs.path }}", key: "${{ steps.environment.outputs.key }}"}
    - id: run
      name: Do it
      shell: bash
      env: {PYTHONPATH: "", GPUCI_A_NAME: "${{ inputs.a-name }}", GPUCI_TOKEN: "${{ inputs.token }}"}
      run: exec sh "$GITHUB_ACTION_PATH/../../scripts/with_python.sh" python3 -I "$GITHUB_ACTION_PATH/../../scripts/x.py"
""")  # noqa: E501
BAD_ACTIONS: dict[str, tuple[Any, str, Any, str]] = {
    "snake case": (rules.names_and_words, "inputs/a_b", {"description": "A.", "default": ""}, "kebab-case"),
    "no description": (rules.names_and_words, "inputs/token/description", None, "token has no description"),
    "two sentences": (rules.names_and_words, "description", "One. Two.", "the action its description"),
    "no full stop": (rules.names_and_words, "outputs/result/description", "What", "not one sentence"),
    "required and default": (rules.names_and_words, "inputs/token/required", True, "either a default"),
    "neither": (rules.names_and_words, "inputs/a-name/required", False, "either a default"),
    "a number": (rules.names_and_words, "inputs/token/default", 0, "no text: quote it"),
    "output of nothing": (rules.outputs_come_from_steps, "runs/steps/2/id", "go", "the step 'run'"),
    "a run line": (rules.run_lines, "runs/steps/2/run", "python3 x.py", "this run line is not"),
    "an expression": (rules.run_lines, "runs/steps/2/run", "${{ inputs.a-name }}", "this run line is not"),
    "another shell": (rules.run_lines, "runs/steps/2/shell", "sh", "not bash"),
    "pythonpath": (rules.run_lines, "runs/steps/2/env/PYTHONPATH", "x", "PYTHONPATH"),
    "wrong name": (
        rules.inputs_reach_the_program,
        "runs/steps/2/env/GPUCI_B",
        "${{ inputs.token }}",
        "call it",
    ),
    "unused": (rules.inputs_reach_the_program, "inputs/b", {}, "no step reads b"),
    "undeclared": (
        rules.inputs_reach_the_program,
        "runs/steps/2/env/GPUCI_C",
        "${{ inputs.c }}",
        "not declared",
    ),
    "cache key": (rules.set_up_and_cache, "runs/steps/1/with/key", "x", "actions/cache has"),
    "cache in vain": (rules.set_up_and_cache, "runs/steps/1/if", "true", "actions/cache needs"),
    "no cache": (rules.set_up_and_cache, "runs/steps/1/uses", "actions/x@1", "go together"),
    "id of set-up": (rules.set_up_and_cache, "runs/steps/0/id", "x", "the id environment"),
    "a key": (
        lambda action: rules.secrets_stay(rules.steps_of(action)),
        "runs/steps/2/env/GPUCI_KEY",
        "${{ inputs.ssh-private-key }}",
        "Do it: inputs.ssh-private-key is in a step",
    ),
}


def spoiled(document: Mapping[str, Any], place: str, value: object) -> dict[str, Any]:
    """A copy with another value at `a/b/0/c`."""
    copied = copy.deepcopy(dict(document))
    node: Any = copied
    *path, last = place.split("/")
    for part in path:
        node = node[int(part) if isinstance(node, list) else part]
    node[last] = value
    return copied


@pytest.mark.parametrize(("rule", "place", "value", "told"), BAD_ACTIONS.values(), ids=BAD_ACTIONS)
def test_a_rule_sees_a_spoiled_action(rule: Any, place: str, value: object, told: str) -> None:
    assert list(rule(GOOD)) == []
    found = list(rule(spoiled(GOOD, place, value)))
    assert len(found) == 1
    assert told in found[0]


GOOD_WORKFLOW: dict[str, Any] = yaml.safe_load("""
permissions: {}
jobs:
  one:
    permissions: {contents: read}
    timeout-minutes: 1
    steps:
      - {uses: $/actions/x, with: {a-name: y}}
      - {run: "true"}
  gate: {needs: [one], if: always(), permissions: {}, timeout-minutes: 1, steps: []}
  behind: {needs: [gate], permissions: {}, timeout-minutes: 1, steps: []}
""")


def gate(workflow: rules.Document) -> Iterable[str]:
    return rules.gate_needs_all(workflow, "gate")


def calls(workflow: rules.Document) -> Iterable[str]:
    return rules.calls(workflow, {"x": GOOD})


BAD_WORKFLOWS: dict[str, tuple[Any, str, Any, str]] = {
    "permissions": (rules.workflow_frame, "permissions", {"contents": "read"}, "permissions: {}"),
    "of a job": (rules.workflow_frame, "jobs/one/permissions", None, "one: no permissions"),
    "no limit": (rules.workflow_frame, "jobs/x", {"permissions": {}}, "x: no timeout-minutes"),
    "expression": (rules.workflow_frame, "jobs/one/steps/1/run", "echo ${{ github.ref }}", "use env"),
    "long run": (rules.workflow_frame, "jobs/one/steps/1/run", "a\nb\nc\nd\n", "more than 3 lines"),
    "unneeded": (gate, "jobs/two", {}, "gate does not need two"),
    "gate can be skipped": (gate, "jobs/gate/if", "success()", "can be skipped"),
    "gate is a matrix": (gate, "jobs/gate/strategy", {"matrix": {}}, "no matrix"),
    "unknown input": (calls, "jobs/one/steps/0/with/b", "1", "one: $/actions/x has no input b"),
    "missing input": (calls, "jobs/one/steps/0/with", {}, "needs the input a-name"),
    "unknown action": (calls, "jobs/one/steps/0/uses", "$/actions/y", "there is no action"),
}


@pytest.mark.parametrize(("rule", "place", "value", "told"), BAD_WORKFLOWS.values(), ids=BAD_WORKFLOWS)
def test_a_rule_sees_a_spoiled_workflow(rule: Any, place: str, value: object, told: str) -> None:
    assert list(rule(GOOD_WORKFLOW)) == []
    found = list(rule(spoiled(GOOD_WORKFLOW, place, value)))
    assert len(found) == 1
    assert told in found[0]


SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"uses: actions/cache@{SHA} # v6.1.0", None),
        (f"- uses: org/gpuci/actions/x@{SHA} # v1.0.0", None),
        ("uses: $/actions/x", None),
        ("uses: actions/cache@v6", "not pinned"),
        (f"uses: actions/cache@{SHA[:12]} # v6.1.0", "not pinned"),
        (f"uses: actions/cache@{SHA}", "names its version"),
        (f"uses: actions/cache@{SHA} # v6", "names its version"),
        ("uses: ./actions/x", "not pinned"),
    ],
)
def test_the_rule_sees_a_pin(line: str, told: str | None) -> None:
    found = list(rules.pins(f"steps:\n  {line}\n", own=True))
    assert len(found) == (told is not None)
    assert not told or told in found[0]
