"""What GitHub says of the jobs before the gate -> facts for its table. Pure.

Source: docs.github.com, "Contexts": `needs.<job_id>` has `result` and `outputs`; `steps.<step_id>` has
`outcome` (before `continue-on-error`), `conclusion` and `outputs`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuci.errors import ConfigError
from gpuci.github.gate import JOBS, RESULTS, UNPROTECTED, Problem, Row
from gpuci.model import Plan
from gpuci_node.contract import VERDICTS


@dataclass(frozen=True)
class Needs:
    """The result of each job of `JOBS`, and the outputs of those that are there."""

    results: Mapping[str, str]
    outputs: Mapping[str, Mapping[str, str]]

    def output(self, job: str, name: str) -> str:
        """An output of a job; empty if it was not set."""
        return self.outputs.get(job, {}).get(name, "")

    @property
    def sha(self) -> str:
        """The commit that the run is about; empty if find-changed did not tell."""
        return self.output("find-changed", "sha")

    @property
    def pull_request(self) -> int | None:
        """The number of the pull request, None without one."""
        text = self.output("find-changed", "pull-request")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None

    @property
    def approved(self) -> bool:
        """Whether this very commit was let through."""
        told = self.output("wait-for-label", "approved") == "true"
        return told and self.sha != "" and self.output("wait-for-label", "sha") == self.sha

    @property
    def problems(self) -> dict[str, Problem]:
        """The errors that jobs ended with, of those that tell."""
        told = {job: self.output(job, "problem") for job in JOBS if self.results[job] == "failure"}
        return {job: read_problem(text) for job, text in told.items() if text}

    def told(self, row: Row) -> Problem:
        """What the job that a row of the gate's table is about says of it itself; empty if nothing."""
        if row.job:
            return self.problems.get(row.job, Problem())
        return Problem(what=self.output("wait-for-label", "reason"))

    @property
    def environment(self) -> str:
        """Whether wait-for-label refused the environment of the key; it has no other fault of that name."""
        refused = self.output("wait-for-label", "decision") == UNPROTECTED
        return "unprotected" if refused else "good"

    @property
    def ran(self) -> bool:
        """Whether gpu-tests can have left results."""
        return self.results["gpu-tests"] in ("success", "failure", "cancelled")

    @property
    def plan_attempt(self) -> int:
        """The attempt of the run in which the plan was made; results of earlier ones are not about it."""
        text = self.output("calculate-shards", "artifact").rpartition("-attempt-")[2]
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1


def read_needs(text: str, *, steps: bool = False) -> Needs:
    """`toJSON(needs)`, or with `steps` `toJSON(steps)`; raises ConfigError naming all that is wrong.

    Jobs that the gate has no rule for are refused, as nobody says what is expected of them; other steps are
    not looked at.
    """
    document = _document(text)
    known = {name: value for name, value in document.items() if name in JOBS}
    unknown = [] if steps else [f"it has no rule for the job {name!a}" for name in document.keys() - JOBS]
    missing = [
        f"{name} is missing" for name, values in JOBS.items() if name not in known and "absent" not in values
    ]
    key = "outcome" if steps else "result"
    results = {name: _result(value, key) for name, value in known.items()}
    strange = [
        f"{name} has the {key} {result!a:.40}" for name, result in results.items() if result not in RESULTS
    ]
    problems = [*missing, *sorted(unknown), *strange]
    if problems:
        raise ConfigError(
            f"the gate can't judge these {'steps' if steps else 'jobs'}: {'; '.join(problems)}",
            why=f"it decides by the results of {', '.join(JOBS)}",
            then="let the job have just these in `needs`, by these names, and pass `${{ toJSON(needs) }}`",
        )
    return Needs(
        {name: results.get(name, "absent") for name in JOBS},
        {name: _outputs(value) for name, value in known.items()},
    )


def read_problem(text: str) -> Problem:
    """The output `problem` of an action: verdict, what happened and what to do, a line each."""
    verdict, *rest = text.split("\n")
    if verdict not in VERDICTS:
        return Problem(what=text)
    what, then, *_ = [*rest, "", ""]
    return Problem(verdict, what, then)


def facts_of(needs: Needs, plan: Plan | None, results: str | None) -> dict[str, str]:
    """A value for each column of the gate's table. `results`: the verdict of all shards, if there is one."""
    return {
        **needs.results,
        "affected": _flag(needs.output("find-changed", "affected") != "false"),
        "approved": _flag(needs.approved),
        "environment": needs.environment,
        "push": _flag(needs.output("build-image", "push") == "true"),
        "plan": _plan_fact(needs, plan),
        "results": results or "infra",
    }


def _plan_fact(needs: Needs, plan: Plan | None) -> str:
    if plan is None:
        return "lost"
    if plan.shards:
        return "shards"
    empty = not (plan.units or plan.skipped)
    return (
        "nothing-found" if empty and needs.output("find-changed", "everything") != "false" else "nothing-due"
    )


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ConfigError(
            "the input needs is no JSON object",
            why="it holds the results of the jobs that the gate decides by",
            then="pass `${{ toJSON(needs) }}`",
        )
    return document


def _result(value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _outputs(value: Any) -> dict[str, str]:
    outputs = value.get("outputs") if isinstance(value, dict) else None
    if not isinstance(outputs, dict):
        return {}
    return {name: text for name, text in outputs.items() if isinstance(text, str)}


def _flag(value: bool) -> str:
    return "true" if value else "false"
