"""Behind scripts/calculate_shards.py: a commit and what changed in it -> plan.json and a matrix of shards.

The commit is data here: fetched into a bare repository, unpacked, read, and neither imported nor run.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from gpuci.changes.document import from_document
from gpuci.changes.model import Changes
from gpuci.changes.narrow import narrowed
from gpuci.config.model import Config
from gpuci.discovery.discover import discover
from gpuci.discovery.roots import expand
from gpuci.durations import read as duration_file
from gpuci.durations.parse import Durations
from gpuci.errors import ConfigError
from gpuci.execution.directories import write_document
from gpuci.execution.slurm.limits import limits_of
from gpuci.github.step import Step
from gpuci.model import Manifest, Plan
from gpuci.planning import document as plan_document
from gpuci.planning.plan import make_plan
from gpuci.reporting import plan_markdown, plan_text
from gpuci.reporting.text import plural
from gpuci.repository.fetch import Repository
from gpuci.repository.unpack import unpack
from gpuci.steps import plan_input, proposed
from gpuci.steps.plan_file import digest_of, read_left
from gpuci.steps.plan_input import PlanInput

VARIABLES = plan_input.VARIABLES


def run(step: Step) -> int:
    """Plan the tests that the change can affect; none is no error, and an empty matrix."""
    given = plan_input.read(step.environ)
    changes = _changes(given)
    repository = _repository(step, given)
    tree = _tree(step, given, repository)
    if changes is not None and changes.proposed:
        proposed.check(repository, given.sha, given.root, changes.proposed, step.scratch() / "proposed")
    found = _tests(step, given, tree)
    due = found if changes is None or changes.everything else narrowed(found, changes.packages)
    plan = _plan(given, tree, due)
    plan = replace(plan, notes=(*_told(changes, found, due), *plan.notes))
    path = step.scratch() / "plan.json"
    write_document(path, plan_document.to_document(plan))
    step.say(plan_text.render(plan))
    step.summary(plan_markdown.render(plan, limits_of(plan, given.config)))
    _answer(step, plan, path)
    return 0


def _repository(step: Step, given: PlanInput) -> Repository:
    """One with the commit in it."""
    server = step.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    url = f"{server}/{step.environ.get('GITHUB_REPOSITORY', '')}"
    repository = Repository(step.scratch() / "repository", say=step.say)
    repository.fetch(url, step.secret("TOKEN"), [given.sha])
    return repository


def _tree(step: Step, given: PlanInput, repository: Repository) -> Path:
    """ROOT of the commit as files."""
    tree = step.scratch() / "tree"
    done = unpack(repository, given.sha, given.root, tree)
    for path in done.refused:
        step.say(f"{path}: a link out of the tree is not followed")
    for path in done.submodules:
        step.say(f"{path}: a submodule, whose files are not read")
    return tree


def _tests(step: Step, given: PlanInput, tree: Path) -> Manifest:
    """What is there; raises ConfigError if that is nothing, which is never what was meant."""
    try:
        manifest = discover(tree, given.config)
    except ConfigError as broken:
        what = broken.what.replace(str(tree), f"{given.root!r} of commit {given.sha[:12]}")
        raise ConfigError(what, why=broken.why, then=broken.then) from broken
    step.say(
        f"found {plural(len(manifest.targets), 'test function')} in {plural(len(manifest.files), 'file')}"
    )
    for entry, paths in expand(tree, given.config.packages).items():
        if not paths:
            step.warning(f"packages: {entry} matches nothing in the tree")
    for error in manifest.errors:
        path = os.path.normpath(f"{given.root}/{error.path}")
        step.warning(f"{error.message} (planned whole: pytest will say more)", file=path, line=error.line)
    if not manifest.files:
        raise ConfigError(
            f"there are no test files in {', '.join(given.config.packages)}",
            why="a run that was asked for and finds nothing to test is no pass",
            then="correct `packages` of .github/gpuci.yml, or the input packages",
        )
    return manifest


def _changes(given: PlanInput) -> Changes | None:
    """What find-changed found; None if nobody asked it. Raises ConfigError."""
    if not given.changes:
        return None
    left = read_left(
        Path(given.changes), given.changes_digest, maker="find-changed", then="run find-changed first"
    )
    changes = from_document(left)
    if changes.head != given.sha:
        raise ConfigError(
            f"changes.json is of the commit {changes.head}, and the plan is for {given.sha}",
            why="it is from another run, or of another attempt",
            then="run find-changed again, for this commit",
        )
    return changes


def _told(changes: Changes | None, found: Manifest, due: Manifest) -> list[str]:
    """How far the change reaches, for the notes of the plan."""
    if changes is None:
        return []
    if changes.everything:
        return [f"every test is due: {', '.join(changes.because) or 'nothing to compare with'}"]
    left = len(found.targets) - len(due.targets)
    return [f"{left} of {plural(len(found.targets), 'test function')} left out: the change can't affect them"]


def _plan(given: PlanInput, tree: Path, manifest: Manifest) -> Plan:
    known = _durations(given.config, tree)
    return make_plan(
        manifest,
        given.config,
        durations=known.seconds,
        needs=known.needs,
        shards=given.shards,
        event=given.event,
        sha=given.sha,
    )


def _durations(config: Config, tree: Path) -> Durations:
    """What earlier runs measured, of the file that the configuration names, if it is there."""
    file = config.durations["file"]
    return duration_file.read(tree / file) if file and os.path.lexists(tree / file) else Durations()


def _answer(step: Step, plan: Plan, path: Path) -> None:
    gpu_tests = sum(unit.tests for unit in plan.units if unit.mode != "cpu")
    step.output("matrix", json.dumps([shard.index for shard in plan.shards]))
    step.output("shards", str(len(plan.shards)))
    step.output("plan", str(path))
    step.output("plan-digest", digest_of(path.read_bytes()))
    step.output("tests", str(gpu_tests))
    step.output("makespan-seconds", f"{plan.makespan_seconds:.0f}")
