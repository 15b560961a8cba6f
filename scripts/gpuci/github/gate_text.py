"""The gate's decision in words: status, summary, log. Pure; texts of tests stand in inline code or blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuci.github.gate import AGAIN, BY_RESULTS, LOG, UNPROTECTED, Decision, Problem
from gpuci.github.use import Use
from gpuci.model import Report
from gpuci.reporting import markdown, summary
from gpuci.reporting.links import Links
from gpuci.reporting.text import inline_code, one_line
from gpuci.results.verdict import shard_names

PARTIAL = "Only a part of the tests was asked for: the commit status waits for all that are due."
KEPT = "The commit has a result of an earlier run, which stays."
NOTHING = Problem()


def reason(decision: Decision, report: Report | None, problem: Problem = NOTHING) -> str:
    """Why the verdict is what it is; may hold texts of tests. `problem`: what the job that failed says.

    Its own words come first: the status has room for little more.
    """
    row = decision.row
    if row.verdict == BY_RESULTS and report is not None:
        return report.reason
    if problem.what and row.job:
        return f"{problem.what} ({row.job} failed)"
    return (problem.what if row.name == UNPROTECTED else "") or row.text


def advice(decision: Decision, problem: Problem = NOTHING) -> str:
    """What to do now: what the error itself says, else what the table does; empty if there is nothing."""
    if not decision.row.job:
        return decision.then
    if decision.verdict != "infra":
        # The log says no more than the error does.
        return problem.then or ("" if problem.what else decision.then)
    told = problem.then or ("" if problem.what else LOG)
    return told if AGAIN in told else "; ".join(filter(None, [told, AGAIN]))


def status_text(decision: Decision, report: Report | None, problem: Problem = NOTHING) -> str:
    """The description of the commit status: `2 failed, 236 passed`; who sets it cuts it."""
    told = reason(decision, report, problem)
    if decision.row.verdict == BY_RESULTS and report is not None and summary.said_by_counts(report):
        told = summary.counts_text(report.counts)
        if told.partition(",")[0].endswith(f" {summary.label(decision.verdict)}"):
            return told  # it starts with the verdict
    by = f" accepted by policy-{decision.verdict.replace('_', '-')}" if decision.accepted else ""
    return one_line(f"{summary.label(decision.verdict)}{by}: {told}")


def partial_text(decision: Decision) -> str:
    """The description of the commit status, which stays pending, after a run of some tests."""
    return f"a run of some tests: {summary.label(decision.verdict)}; those that are due did not all run"


def final_report(decision: Decision, report: Report) -> Report:
    """The report with the run's own verdict, which can be worse than that of its results."""
    return replace(report, verdict=decision.verdict, reason=reason(decision, report))


def remarks(
    decision: Decision, *, partial: bool = False, kept: bool = False, problem: Problem = NOTHING
) -> list[str]:
    """Markdown to stand below the verdict; `problem` is what the job that let nothing through says of it."""
    job = "wait-for-label" if decision.row.name in ("unauthorized", UNPROTECTED) else decision.row.job
    why = f"{job}: {inline_code(problem.what)}" if job and problem.what else ""
    beside = f"{decision.row.text}." if decision.row.verdict == BY_RESULTS and decision.row.text else ""
    now = advice(decision, problem)
    # Words of an error can quote anything.
    then = f"**What now:** {inline_code(now) if problem.then else f'{now}.'}" if now else ""
    policy = f"`policy-{decision.verdict.replace('_', '-')}` lets this pass." if decision.accepted else ""
    notes = [why, beside, then, policy, PARTIAL if partial else "", KEPT if kept and not partial else ""]
    return [note for note in notes if note]


def earlier(attempts: Mapping[int, int], attempt: int) -> list[str]:
    """A remark about the shards whose results are of an attempt before this one; none if all are of it."""
    old = sorted({number for number in attempts.values() if number != attempt})
    told = [
        f"{shard_names([index for index, of in sorted(attempts.items()) if of == number])} (attempt {number})"
        for number in old
    ]
    return [f"Results of earlier attempts: {'; '.join(told)}."] if told else []


def named(use: Use) -> list[str]:
    """A remark about which of several uses this is; none for the only one."""
    return [f"This is {inline_code(use.context)}."] if use.name else []


def page(
    decision: Decision, report: Report | None, notes: list[str], links: Links, *, limit_bytes: int = 1_000_000
) -> str:
    """The summary as Markdown: the report, or what there is to say when no test ran."""
    if report is not None:
        whole = final_report(decision, report)
        return markdown.render(whole, limit_bytes=limit_bytes, links=links, remarks=notes)
    head = f"## {summary.sign(decision.verdict)} GPU tests {summary.HEADLINES[decision.verdict]}"
    text = decision.row.text[:1].upper() + decision.row.text[1:]
    return "\n\n".join([head, f"{text}.", *notes]) + "\n"
