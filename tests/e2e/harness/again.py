"""*Re-run failed jobs*, which act doesn't know: gpu.yml as GitHub runs it then. Pure.

Source: docs.github.com, "Re-running workflows and jobs": jobs that failed and those that need them run again;
the others keep their result, their outputs and their artifacts. The steps of what runs are those of gpu.yml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tests.e2e.harness.act import Ran
from tests.e2e.harness.product import Document

# In an output of a job: an output of its step, one of another job as product.py writes it, the attempt.
KNOWN = re.compile(
    r"\$\{\{ (?:steps\.[\w-]+\.outputs\.(?P<step>[\w-]+)"
    r"|\(needs\.[\w-]+\.result != 'skipped' && needs\.(?P<job>[\w-]+)\.outputs\.(?P<output>[\w-]+) \|\| ''\)"
    r"|github\.run_attempt) \}\}"
)

Jobs = Mapping[str, Sequence[int]]  # job -> shards of its matrix, none if it has no matrix


def rerun(workflow: Document, first: Ran, again: Jobs) -> Document:
    """The workflow of a later attempt: only the jobs of `again` run.

    `workflow` is one that act can run; `first` is what the other jobs keep, whose outputs are of attempt 1.
    """
    jobs = {
        name: _only(job, again[name]) if name in again else _kept(name, job, first)
        for name, job in workflow["jobs"].items()
    }
    return {**workflow, "jobs": jobs}


def together(before: Ran, ran: Ran, again: Jobs) -> Ran:
    """What GitHub shows after an attempt: `ran` of the jobs that ran again, `before` of the others."""
    new = [job for job in ran.jobs if job.name in again]
    names = {(job.name, repr(job.matrix)) for job in new}
    old = [job for job in before.jobs if (job.name, repr(job.matrix)) not in names]
    return Ran(ran.code, [*old, *new], ran.text)


def _only(job: Document, shards: Sequence[int]) -> Document:
    if "strategy" not in job:
        return job
    return {**job, "strategy": {**job["strategy"], "matrix": {"shard": list(shards)}}}


def _kept(name: str, job: Document, first: Ran) -> Document:
    """A job that does nothing, and has the result and the outputs of attempt 1."""
    of_first = first.of(name)
    kept = {"runs-on": "ubuntu-latest", "steps": [{"run": "true"}]}
    if not of_first:
        return {**kept, "if": False}
    assert not any(one.exit_codes for one in of_first), f"{name} would be run again"
    told = of_first[0].outputs
    outputs = {key: _output(text, told, first) for key, text in job.get("outputs", {}).items()}
    return {**kept, "outputs": outputs}


def _output(text: str, told: Mapping[str, str], first: Ran) -> str:
    def value(known: re.Match[str]) -> str:
        if known["job"]:
            return first.job(known["job"]).outputs.get(known["output"], "")
        return told.get(known["step"], "") if known["step"] else "1"

    assert "${{" not in KNOWN.sub("", text), f"not modelled: {text}"
    return KNOWN.sub(value, text)
