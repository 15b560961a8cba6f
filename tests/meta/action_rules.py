"""What holds for every action and workflow of ours, as rules: a loaded file -> what is wrong with it. Pure.

Each rule says in words what to do about it; tests/meta/test_actions.py applies them, and shows each a file
that breaks it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

Document: TypeAlias = Mapping[str, Any]

_KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PROGRAM = (
    r'exec sh "\$GITHUB_ACTION_PATH/{up}scripts/with_python\.sh" python3 -I '
    r'"\$GITHUB_ACTION_PATH/{up}scripts/(?P<program>[a-z_]+)\.py"(?: (?P<mode>[a-z-]+))?'
)
RUN_OF_AN_ACTION = re.compile(_PROGRAM.format(up=r"\.\./\.\./"))
RUN_OF_THE_ROOT = re.compile(_PROGRAM.format(up=""))
_USES = re.compile(r"^\s*(?:- )?uses:\s*(\S+)(?:\s+#\s*(\S+))?\s*$", re.MULTILINE)
_PINNED = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+@[0-9a-f]{40}")
_VERSION = re.compile(r"v\d+\.\d+\.\d+")
_INPUT = re.compile(r"\$\{\{ inputs\.([a-z0-9-]+) \}\}")
_SECRET = re.compile(r"secrets\.[A-Za-z_-]+|inputs\.(?:ssh-private-key|ssh-certificate|registry-password)")
CACHE = {"path": "${{ steps.environment.outputs.path }}", "key": "${{ steps.environment.outputs.key }}"}
NOT_READY = "steps.environment.outputs.ready != 'true'"
# Who may see which secret: the steps that connect to the cluster, those that speak to the registry.
CONNECTING = {"run-gpu-shard", "clean-up-gpu-shard"}
OF_IMAGES = {"build-image", "push-image", "tag-image"}
MAX_RUN_LINES = 3


def steps_of(action: Document) -> list[Document]:
    """The steps of a composite action."""
    return list(action["runs"]["steps"])


def programs(action: Document) -> Iterator[tuple[Document, str, str]]:
    """(step, program, mode) of each step that runs one of ours."""
    for step in steps_of(action):
        text = step.get("run", "")
        match = RUN_OF_AN_ACTION.fullmatch(text) or RUN_OF_THE_ROOT.fullmatch(text)
        if match:
            yield step, match["program"], match["mode"] or ""


def variables(step: Document) -> set[str]:
    """The GPUCI_ variables that a step sets."""
    return {name for name in step.get("env", {}) if name.startswith("GPUCI_")}


def variable_of(name: str) -> str:
    """The variable that carries an input."""
    return f"GPUCI_{name.upper().replace('-', '_')}"


def one_sentence(text: object) -> str:
    """What keeps a description from being one sentence that a table can hold, empty if nothing."""
    if not isinstance(text, str) or not text.strip():
        return "has no description"
    plain = text.strip()
    if "\n" in plain or not plain.endswith(".") or re.search(r"[.!?] [A-Z]", plain) or len(plain) > 160:
        return "its description is not one sentence, of at most 160 characters with a full stop"
    return ""


def names_and_words(action: Document) -> Iterator[str]:
    """Names in kebab-case, one sentence each, and `required` exactly where there is no default."""
    if wrong := one_sentence(action.get("description")):
        yield f"the action {wrong}"
    for kind in ("inputs", "outputs"):
        for name, entry in (action.get(kind) or {}).items():
            if not _KEBAB.fullmatch(name):
                yield f"{kind}: {name} is not in kebab-case"
            if wrong := one_sentence(entry.get("description")):
                yield f"{kind}: {name} {wrong}"
    for name, entry in (action.get("inputs") or {}).items():
        if ("default" in entry) == bool(entry.get("required")):
            yield f"inputs: {name} needs either a default or `required: true`"
        if not isinstance(entry.get("default", ""), str):
            yield f"inputs: the default of {name} is no text: quote it"


def outputs_come_from_steps(action: Document) -> Iterator[str]:
    """An output that names no step is always empty, and nobody says so."""
    known = {step.get("id") for step in steps_of(action)}
    for name, entry in (action.get("outputs") or {}).items():
        for step in re.findall(r"steps\.([a-z-]+)\.outputs", entry.get("value", "")):
            if step not in known:
                yield f"outputs: {name} is made of the step {step!r}, which there is not"


def run_lines(action: Document, *, root: bool = False) -> Iterator[str]:
    """One program a step, by path, in the step's own process, without the caller's PYTHONPATH.

    By the variable: `github.action_path` names the host's directory in a job that runs in a container
    (actions/runner, issue 2185).
    """
    form = RUN_OF_THE_ROOT if root else RUN_OF_AN_ACTION
    for step in steps_of(action):
        if "run" not in step:
            continue
        if not form.fullmatch(step["run"]):
            yield f"this run line is not `exec sh …/with_python.sh python3 -I …/PROGRAM.py`: {step['run']!r}"
        if step.get("shell") != "bash":
            yield f"{step.get('name')}: shell is {step.get('shell')!r}, not bash"
        if step.get("env", {}).get("PYTHONPATH") != "":
            yield f'{step.get("name")}: env has no `PYTHONPATH: ""`; a file of the tree could be a module'


def inputs_reach_the_program(action: Document) -> Iterator[str]:
    """Each input is one variable of a step, each variable of the same name as its input."""
    used: set[str] = set()
    for step, _, _ in programs(action):
        for variable in sorted(variables(step)):
            used |= set(_INPUT.findall(step["env"][variable]))
            match = _INPUT.fullmatch(step["env"][variable])
            if match and variable_of(match[1]) != variable:
                yield f"{variable} carries the input {match[1]}: call it {variable_of(match[1])}"
    for name in sorted((action.get("inputs") or {}).keys() - used):
        yield f"inputs: no step reads {name}"
    for name in sorted(used - (action.get("inputs") or {}).keys()):
        yield f"a step reads the input {name}, which is not declared"


def set_up_and_cache(action: Document) -> Iterator[str]:
    """The environment's step and the cache belong together, in this order."""
    steps = steps_of(action)
    names = [program for _, program, _ in programs(action)]
    caches = [step for step in steps if step.get("uses", "").startswith("actions/cache@")]
    if ("set_up" in names) != bool(caches):
        yield "set_up.py and actions/cache go together"
    for step in caches:
        if step.get("with") != CACHE:
            yield f"actions/cache has `with: {step.get('with')}`, not {CACHE}"
        if step.get("if") != NOT_READY:
            yield f"actions/cache needs `if: {NOT_READY}`: a runner of one's own may have it already"
    for step, program, _ in programs(action):
        if program == "set_up" and (step.get("id") != "environment" or variables(step)):
            yield "the step of set_up.py has the id environment, and no input"


def pins(text: str, *, own: bool = False) -> Iterator[str]:
    """Actions by full SHA with the version as a comment; with `own` also this repository's by `$/`.

    That is the commit which is running, in called workflows and composite actions too; runner >= 2.336.0, and
    not on Enterprise Server (github.blog, "Reference same-repository actions with self-repository syntax").
    """
    for used, comment in _USES.findall(text):
        if own and re.fullmatch(r"\$/actions/[a-z-]+", used):
            continue
        if not _PINNED.fullmatch(used):
            yield f"{used} is not pinned to a full SHA"
        elif not _VERSION.fullmatch(comment):
            yield f"{used} has no comment that names its version: # v1.2.3"


def no_checkout(text: str) -> Iterator[str]:
    """Code under test is data: nothing of it is checked out where our jobs run."""
    if "actions/checkout" in text:
        yield "actions/checkout: the commit is fetched into a bare repository and read from there"


def secrets_stay(steps: Collection[Document]) -> Iterator[str]:
    """A secret stands in the environment of the steps that need it, and nowhere else."""
    for step in steps:
        run = step.get("run", "")
        match = RUN_OF_AN_ACTION.fullmatch(run) or RUN_OF_THE_ROOT.fullmatch(run)
        name = match["program"].replace("_", "-") if match else step.get("uses", "").rpartition("/")[2]
        for secret in sorted(set(_SECRET.findall(str(step)))):
            if name not in (OF_IMAGES if "registry" in secret.lower() else CONNECTING):
                yield f"{step.get('name')}: {secret} is in a step that has no use for it"


def workflow_frame(workflow: Document) -> Iterator[str]:
    """No permission by default, each job's own ones, a limit of time, and runs that a person can read."""
    if workflow.get("permissions") != {}:
        yield "the workflow does not say `permissions: {}`"
    for name, job in workflow["jobs"].items():
        if not isinstance(job.get("permissions"), dict):
            yield f"{name}: no permissions of its own"
        if "uses" not in job and "timeout-minutes" not in job:
            yield f"{name}: no timeout-minutes"
        for step in job.get("steps", []):
            if "${{" in step.get("run", ""):
                yield f"{name}: an expression in a run line is text of somebody else's in a shell: use env"
            if len(step.get("run", "").splitlines()) > MAX_RUN_LINES:
                yield f"{name}: a run of more than {MAX_RUN_LINES} lines; make it a program"


def reachable(jobs: Document, name: str) -> set[str]:
    """The jobs that `name` waits for, directly or not."""
    direct = jobs[name].get("needs", [])
    needs = {direct} if isinstance(direct, str) else set(direct)
    return needs.union(*(reachable(jobs, other) for other in needs))


def gate_needs_all(workflow: Document, gate: str) -> Iterator[str]:
    """A job that the gate doesn't need can fail unseen; only those behind the gate may be left out.

    A skipped job satisfies a required check, and a skipped matrix never reports the names of its jobs
    (docs.github.com, "Troubleshooting required status checks").
    """
    jobs = workflow["jobs"]
    if jobs[gate].get("if") != "always()" or "strategy" in jobs[gate]:
        yield f"{gate}: it has `if: always()` and is no matrix, or it can be skipped"
    behind = {name for name in jobs if gate in reachable(jobs, name)}
    for name in sorted(jobs.keys() - {gate} - behind - set(jobs[gate]["needs"])):
        yield f"{gate} does not need {name}"


def calls(workflow: Document, actions: Mapping[str, Document]) -> Iterator[str]:
    """Steps give our actions inputs that they have, and all that they require."""
    for name, job in workflow["jobs"].items():
        for step in job.get("steps", []):
            used = step.get("uses", "")
            if re.match(r"\$/actions/|org/gpuci", used):
                yield from (f"{name}: {wrong}" for wrong in call(step, actions))


def call(step: Document, actions: Mapping[str, Document]) -> Iterator[str]:
    """What is wrong with a step that uses one of our actions."""
    match = re.fullmatch(r"(?:\$/|org/gpuci/?)(?:actions/)?([a-z-]*)(?:@\S+)?", step["uses"])
    action = actions.get(match[1] if match else step["uses"])
    if action is None:
        yield f"there is no action {step['uses']}; there are {', '.join(sorted(actions))}"
        return
    declared, given = action.get("inputs") or {}, step.get("with", {})
    for name in sorted(given.keys() - declared.keys()):
        yield f"{step['uses']} has no input {name}"
    for name, entry in declared.items():
        if entry.get("required") and name not in given:
            yield f"{step['uses']} needs the input {name}"
