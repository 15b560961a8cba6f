"""Behind scripts/gpu_tests_passed.py: what all jobs came to, told once. Standard library only.

It never fails for what the jobs left: whatever is missing or broken has a row of the gate's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuci.errors import ConfigError, GpuciError
from gpuci.execution.directories import write_document, write_text
from gpuci.github import comment, gate_text
from gpuci.github.client import Client, client_of
from gpuci.github.events import subject_of
from gpuci.github.gate import UNPROTECTED, Decision, Problem, decide
from gpuci.github.needs import facts_of
from gpuci.github.step import Step
from gpuci.model import Plan, Report, ShardRun
from gpuci.reporting import annotation, junit, summary
from gpuci.reporting import document as report_document
from gpuci.reporting.links import Links
from gpuci.results.artifacts import Found, collect, collect_one
from gpuci.results.build import build_report
from gpuci.steps import gate_input
from gpuci.steps.gate_input import GateInput
from gpuci.steps.plan_file import read_plan
from gpuci_node.contract import EXIT_CODES

VARIABLES = gate_input.VARIABLES
_WRITES = ("statuses", "pull-requests")


@dataclass(frozen=True)
class _Outcome:
    """What is to be told. `sha` and `pull_request` say where; `report` is None if no test could run.

    `problem`: what the job that let nothing run says of it. `earlier`: which results are of earlier attempts.
    """

    decision: Decision
    report: Report | None
    sha: str
    pull_request: int | None
    links: Links
    problem: Problem
    earlier: list[str]


def run(step: Step) -> int:
    """Decide and tell; the exit code is the verdict's, 0 if a policy accepts it. Raises ConfigError."""
    given = gate_input.read(step)
    step.output("prefix", given.use.prefix)
    outcome = _judge(step, given)
    faults: list[GpuciError] = []
    kept = _set_status(step, given, outcome, faults)
    notes = gate_text.remarks(outcome.decision, partial=given.partial, kept=kept, problem=outcome.problem)
    notes += [*outcome.earlier, *gate_text.named(given.use)]
    _leave(step, outcome, notes)
    for fault in faults:  # before the tests take all annotations that a step has
        step.error(fault.words(), title="gpuci: the commit status could not be set")
    for mistake in given.mistakes:
        step.error(mistake.words(), title="gpuci: an input that makes no sense")
    _annotate(step, outcome, told=given.single_job and bool(outcome.problem.what))
    _keep_comment(step, given, outcome, notes)
    red = EXIT_CODES["infra"] if faults else EXIT_CODES["config_error"] if given.mistakes else 0
    return outcome.decision.exit_code or red


# -- what it came to ---------------------------------------------------------------------------------


def _judge(step: Step, given: GateInput) -> _Outcome:
    sha, pull_request = _about(step, given)
    plan = _plan(step, given, sha)
    report, earlier = None, []
    if plan is not None and plan.shards and given.needs.ran and given.needs.approved:
        found = _found(given, plan)
        report, earlier = _report(plan, found), gate_text.earlier(found.attempts, given.attempt)
    facts = facts_of(given.needs, plan, report.verdict if report else None)
    decision = decide(facts, given.policies, given.needs.problems)
    problem = given.needs.told(decision.row)
    return _Outcome(decision, report, sha, pull_request, _links(step, given, sha), problem, earlier)


def _about(step: Step, given: GateInput) -> tuple[str, int | None]:
    """The commit and the pull request: as find-changed resolved them, else as the event tells.

    No commit for a run by hand that find-changed said nothing of: what a person typed may be no commit of
    that pull request, and GITHUB_SHA is the head of the branch that the run was started on.
    """
    if given.needs.sha:
        return given.needs.sha, given.needs.pull_request
    name = step.environ.get("GITHUB_EVENT_NAME", "")
    if name == "workflow_dispatch":
        return "", None
    try:
        subject = subject_of(name, step.event(), step.environ, sha=given.sha, pull_request=given.pull_request)
    except ConfigError as error:
        step.say(error.page())
        return "", None
    return subject.sha, subject.pull_request.number if subject.pull_request else None


def _plan(step: Step, given: GateInput, sha: str) -> Plan | None:
    """The plan of this commit; None if there is none, or none that can be read."""
    if given.needs.results["calculate-shards"] != "success":
        return None
    try:
        digest = given.needs.output("calculate-shards", "plan-digest")
        plan = read_plan(Path(given.plan), digest, then="run all jobs again")
    except GpuciError as error:
        step.error(error.words(), title="gpuci: plan.json")
        return None
    if plan.sha != sha:
        step.error(f"the plan is of commit {plan.sha}, the run is about {sha}", title="gpuci: plan.json")
        return None
    return plan


def _found(given: GateInput, plan: Plan) -> Found:
    directory = Path(given.results)
    if given.single_job:
        return collect_one(directory, plan)
    attempts = range(given.needs.plan_attempt, given.attempt + 1)
    return collect(directory, plan, attempts, given.use.prefix)


def _report(plan: Plan, found: Found) -> Report:
    """The results of all shards, held against the plan; the time is that of the longest shard."""
    seconds = max((_seconds(found.runs, shard.index) for shard in plan.shards), default=0.0)
    return build_report(
        plan,
        found.runs,
        seconds=seconds,
        setup_seconds=0.0,
        elsewhere=True,
        warnings=found.warnings,
        replaced=found.replaced,
    )


def _seconds(runs: Sequence[ShardRun], index: int) -> float:
    return sum(run.wall_seconds for run in runs if run.index == index)


def _links(step: Step, given: GateInput, sha: str) -> Links:
    environ = step.environ
    return Links(
        server=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        repository=environ.get("GITHUB_REPOSITORY", ""),
        sha=sha,
        run=environ.get("GITHUB_RUN_ID", ""),
        attempt=environ.get("GITHUB_RUN_ATTEMPT") or "1",
        root=given.root,
    )


# -- telling it --------------------------------------------------------------------------------------


def _set_status(step: Step, given: GateInput, outcome: _Outcome, faults: list[GpuciError]) -> bool:
    """Publish the result on the commit; True if one of an earlier run stays. What fails goes to `faults`."""
    decision = outcome.decision
    if not outcome.sha or decision.status == "keep":
        return False
    try:
        client = client_of(step, writes=_WRITES)
        if (given.partial or decision.status == "keep-final") and _is_final(client, given, outcome.sha):
            return True
        text = gate_text.status_text(decision, outcome.report, outcome.problem)
        state, text = (
            ("pending", gate_text.partial_text(decision)) if given.partial else (decision.state, text)
        )
        client.set_status(outcome.sha, given.use.context, state, text, outcome.links.run_url)
    except GpuciError as error:
        faults.append(error)
    return False


def _is_final(client: Client, given: GateInput, sha: str) -> bool:
    found = client.status(sha, given.use.context)
    return found is not None and found.state != "pending"


def _leave(step: Step, outcome: _Outcome, notes: list[str]) -> None:
    """The files of the report, the summary and the outputs."""
    decision, report = outcome.decision, outcome.report
    page = gate_text.page(decision, report, notes, outcome.links)
    folder = step.scratch() / "report"
    folder.mkdir()
    write_text(folder / "summary.md", page)
    if report is not None:
        whole = gate_text.final_report(decision, report)
        write_document(folder / "report.json", report_document.to_document(whole))
        write_text(folder / "junit.xml", junit.render(whole).decode("utf-8"))
    step.summary(page)
    step.output("verdict", decision.verdict)
    step.output("passed", "true" if decision.passed else "false")
    step.output("decision", decision.row.name)
    step.output("report", str(folder))


def _annotate(step: Step, outcome: _Outcome, *, told: bool) -> None:
    """`told`: a step before this one, in the same job, made an annotation of the error."""
    decision, report = outcome.decision, outcome.report
    why = gate_text.reason(decision, report, outcome.problem)
    text = "\n".join(filter(None, [why, gate_text.advice(decision, outcome.problem)]))
    title = f"GPU tests {summary.HEADLINES[decision.verdict]}"
    if decision.verdict == "passed" or (told and _failed_before(decision)):
        step.say(f"{title}: {text}")
    else:
        step.annotate("warning" if decision.accepted else "error", text, title=title)
    for one in annotation.render(report, outcome.links) if report else ():
        step.annotate(one.kind, one.text, title=one.title, file=one.file, line=one.line)


def _failed_before(decision: Decision) -> bool:
    return bool(decision.row.job) or decision.row.name == UNPROTECTED


def _keep_comment(step: Step, given: GateInput, outcome: _Outcome, notes: list[str]) -> None:
    """One comment on the pull request; what fails is a warning: the commit status is what counts."""
    told = given.needs.approved and outcome.decision.verdict not in ("cancelled", "unauthorized")
    if not (given.comment and told and outcome.pull_request) or outcome.decision.row.name == "unaffected":
        return
    try:
        _write_comment(step, given, outcome, outcome.pull_request, notes)
    except GpuciError as error:
        step.warning(error.words(), title="gpuci: the comment could not be written")


def _write_comment(step: Step, given: GateInput, outcome: _Outcome, number: int, notes: list[str]) -> None:
    links = outcome.links
    own = comment.marker(step.environ.get("GITHUB_WORKFLOW", ""), given.use.name, links.run, links.attempt)
    page = gate_text.page(outcome.decision, outcome.report, notes, links, limit_bytes=comment.COMMENT_BYTES)
    body = comment.body(own, page, links)
    client = client_of(step, writes=_WRITES)
    found = comment.find(client.comments(number), own, given.comment_author)
    if found is None:
        client.add_comment(number, body)
    elif found[1] <= own:
        client.edit_comment(found[0].id, body)
    else:
        step.say("the comment is of a newer run already: it stays")
