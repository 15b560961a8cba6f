"""What a decision says to people: the job's summary, and the commit status. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpuci.github.approval import Decision
from gpuci.github.approval_facts import Facts, asks, is_pull_event
from gpuci.reporting.links import Links
from gpuci.reporting.text import inline_code, one_line

_SHOWN = 12
_WORKFLOW = re.compile(r"[^@]*/\.github/workflows/([A-Za-z0-9._-]+\.ya?ml)@.*")


@dataclass(frozen=True)
class Place:
    """Where a summary points to. `head`: the pull request's head as far as is known, else the run's commit.
    `workflow`: the file's name, empty if the runner does not tell it."""

    links: Links
    number: int | None
    head: str
    workflow: str = ""


def summary(decision: Decision, facts: Facts, place: Place) -> str:
    """The Markdown of the step; names and reasons in it are code, which is never structure or a mention."""
    parts = [f"### gpuci: {_title(decision, facts)}", f"{_commit(place)}: {inline_code(decision.reason)}"]
    if decision.advice:
        parts.append(f"What to do: {inline_code(decision.advice)}")
    if _can_be_approved(decision) and place.number is not None:
        parts.append("\n".join(_doors(facts, place, place.number)))
    return "\n\n".join(parts) + "\n"


def status_text(decision: Decision, facts: Facts, number: int | None) -> str:
    """The description of the pending status `gpuci`."""
    if decision.approved:
        return f"{one_line(decision.reason).partition(',')[0]}; the tests run"
    label = f"label {facts.label}" if facts.label else "the label"
    return f"waits for approval: {label}, or gpuci approve {number}"


def log_line(decision: Decision, sha: str) -> str:
    """One line of the log."""
    end = "may run" if decision.approved else "nothing runs"
    return f"{end} ({decision.row}): {decision.reason} [{sha}]"


def workflow_file(reference: str) -> str:
    """`owner/name/.github/workflows/gpu.yml@refs/heads/main` -> `gpu.yml`; empty for anything else."""
    found = _WORKFLOW.fullmatch(reference)
    return found[1] if found else ""


def _title(decision: Decision, facts: Facts) -> str:
    if decision.approved:
        return "approved"
    if decision.fault:
        return "the environment is not protected"
    if decision.row == "nothing-affected":
        return "nothing to approve"
    if decision.record == "revoke":
        return "the approval is taken back"
    return "not approved" if asks(facts) else "waits for approval"


def _can_be_approved(decision: Decision) -> bool:
    return not decision.approved and not decision.fault and decision.row != "nothing-affected"


def _commit(place: Place) -> str:
    links = place.links
    return f"[`{links.sha[:_SHOWN]}`]({links.commit_url})"


def _doors(facts: Facts, place: Place, number: int) -> Iterator[str]:
    """How a commit gets its approval."""
    page = f"{place.links.server}/{place.links.repository}/actions"
    page += f"/workflows/{place.workflow}" if place.workflow else ""
    diff = f"{place.links.server}/{place.links.repository}/pull/{number}/files"
    yield f"Somebody with **write access** (triage is not enough) looks at [the change]({diff}), and either"
    yield ""
    label = (
        f"sets the label {inline_code(facts.label)}, {facts.quiet_seconds:g} s or more after the last push"
        if facts.configured
        else "sets the label that asks for the tests"
    )
    by_hand = (
        f"runs `gpuci approve {number} {place.head}`",
        f"runs [the workflow]({page}) by hand, with `{number}` and `{place.head}`",
    )
    # The door that this run came through is there for sure.
    if is_pull_event(facts):
        doors = [label, *(f"{door}, if the workflow has `workflow_dispatch`" for door in by_hand)]
    else:
        doors = [*by_hand, f"{label}, if the workflow listens to labels"]
    yield from (f"- {door}{', or' if door != doors[-1] else ''}" for door in doors)
