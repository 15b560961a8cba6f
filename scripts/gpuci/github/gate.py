"""What the jobs before the gate came to -> the verdict of the run. A table, pure.

A job that was skipped, cancelled or lost is never a pass by itself: each row says what it is. Tests that
failed are a fact, also if somebody stopped the run then. The first row all of whose conditions hold counts;
the last one has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuci_node.contract import EXIT_CODES, VERDICTS

# docs.github.com, "Contexts": `needs.<job_id>.result`. `absent`: the workflow has no such job.
RESULTS = ("success", "failure", "cancelled", "skipped")
JOBS: Mapping[str, tuple[str, ...]] = {
    "find-changed": RESULTS,
    "wait-for-label": RESULTS,
    "build-image": (*RESULTS, "absent"),
    "push-image": (*RESULTS, "absent"),
    "calculate-shards": RESULTS,
    "gpu-tests": RESULTS,
}
# What is known of a run, and the values that each can have.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    **JOBS,
    "affected": ("true", "false"),  # a GPU test can be affected by the change
    "approved": ("true", "false"),  # this very commit was approved, or needs no approval
    "environment": ("good", "unprotected"),  # unprotected: wait-for-label refused that of the key
    "push": ("true", "false"),  # an image was built that has to be pushed
    "plan": ("shards", "nothing-due", "nothing-found", "lost"),
    "results": VERDICTS,  # of all shards, held against the plan
}
Facts = Mapping[str, str]
UNPROTECTED = "environment-unprotected"
BY_RESULTS = "(results)"  # the verdict is that of the results


@dataclass(frozen=True)
class Row:
    """`when` has the values of columns that it is about. `text` is what people read, `then` what to do.

    `status` is what happens to the commit status: it becomes the `result`, or that of an earlier run stays if
    it was final (`keep-final`), or it stays whatever it is (`keep`).
    """

    name: str
    when: Mapping[str, tuple[str, ...]]
    verdict: str
    status: str
    text: str
    then: str = ""

    @property
    def job(self) -> str:
        """The job that failed, if the row is about one; else empty."""
        job = self.name.removesuffix("-failed")
        return job if job in JOBS and job != self.name else ""


@dataclass(frozen=True)
class Problem:
    """The error that a job ended with, as it tells it: its verdict, what happened, and what to do."""

    verdict: str = ""
    what: str = ""
    then: str = ""


@dataclass(frozen=True)
class Decision:
    """The verdict of a run; `passed` says whether it is good, `accepted` that only a policy made it so."""

    row: Row
    verdict: str
    passed: bool
    accepted: bool

    @property
    def exit_code(self) -> int:
        """0 for what is good, else as the table of gpuci_node.contract says."""
        return 0 if self.passed else EXIT_CODES[self.verdict]

    @property
    def then(self) -> str:
        """What to do now, as far as the row tells; empty if nothing is to be done."""
        return THEN[self.verdict] if self.row.verdict == BY_RESULTS else self.row.then

    @property
    def status(self) -> str:
        """The rule of the commit status, as in `Row`; results too can say that nothing was approved."""
        by_verdict = {"unauthorized": "keep", "cancelled": "keep-final"}
        return by_verdict.get(self.verdict, self.row.status)

    @property
    def state(self) -> str:
        """The commit status that it makes: success, failure, or error if no test is to blame."""
        if self.passed:
            return "success"
        return "failure" if self.verdict in ("failed", "timeout", "config_error") else "error"


# Verdicts of an error of a job before gpu-tests that say more than the table.
PROBLEM_VERDICTS = ("config_error", "infra")
# Verdicts that a policy may accept. A red test or a wrong configuration is never good.
POLICIES = ("unauthorized", "infra", "queue_timeout", "preempted")

_QUIET = ("success", "skipped", "absent")
AGAIN = "run the failed jobs again"
LOG = "the log of that job says why"


def _cancelled(job: str, status: str) -> Row:
    return Row(
        f"{job}-cancelled",
        {job: ("cancelled",)},
        "cancelled",
        status,
        f"{job} was cancelled",
        "a newer run may have taken its place; else run all jobs again",
    )


ROWS: tuple[Row, ...] = (
    _cancelled("find-changed", "keep-final"),
    Row(
        "find-changed-failed",
        {"find-changed": ("failure",)},
        "config_error",
        "keep-final",
        "it is not known what the change can break: find-changed failed",
        LOG,
    ),
    Row(
        "find-changed-skipped",
        {"find-changed": ("skipped",)},
        "config_error",
        "keep-final",
        "find-changed did not run",
        "take the condition off that job: it decides itself, and skips nothing silently",
    ),
    Row(
        "unaffected",
        {"affected": ("false",), **{job: _QUIET for job in JOBS if job != "find-changed"}},
        "passed",
        "keep-final",
        "no GPU test can be affected by this change",
    ),
    _cancelled("wait-for-label", "keep-final"),
    Row(
        UNPROTECTED,
        {"wait-for-label": ("failure",), "environment": ("unprotected",)},
        "config_error",
        "keep-final",
        "the environment of the cluster's key is not protected, so nothing may run",
        "under Settings > Environments give it the key, and the default branch as only deployment branch",
    ),
    Row(
        "wait-for-label-failed",
        {"wait-for-label": ("failure",)},
        "config_error",
        "keep-final",
        "it could not be found out whether this commit is approved: wait-for-label failed",
        LOG,
    ),
    Row(
        "wait-for-label-skipped",
        {"wait-for-label": ("skipped",)},
        "config_error",
        "keep-final",
        "wait-for-label did not run",
        "take the condition off that job: nothing may run that it did not let through",
    ),
    Row(
        "unauthorized",
        {"approved": ("false",)},
        "unauthorized",
        "keep",
        "nobody approved this commit",
        "the summary of wait-for-label says who can, and how",
    ),
    _cancelled("build-image", "keep-final"),
    Row(
        "build-image-failed",
        {"build-image": ("failure",)},
        "config_error",
        "result",
        "build-image failed, so no test ran",
        LOG,
    ),
    Row(
        "build-image-skipped",
        {"build-image": ("skipped",)},
        "infra",
        "result",
        "build-image did not run, so no test did",
        "take the condition off that job, or leave the job out if the image is built elsewhere",
    ),
    _cancelled("push-image", "keep-final"),
    Row(
        "push-image-failed",
        {"push-image": ("failure",)},
        "infra",
        "result",
        "the image was built and could not be pushed, so no test ran",
        f"{LOG}; {AGAIN}",
    ),
    Row(
        "push-image-skipped",
        {"push-image": ("skipped", "absent"), "push": ("true",)},
        "infra",
        "result",
        "the image was built and not pushed, so no node can have it",
        "let push-image run when the output `push` of build-image is true",
    ),
    _cancelled("calculate-shards", "keep-final"),
    Row(
        "calculate-shards-failed",
        {"calculate-shards": ("failure",)},
        "config_error",
        "result",
        "the tests could not be planned: calculate-shards failed",
        LOG,
    ),
    Row(
        "calculate-shards-skipped",
        {"calculate-shards": ("skipped",)},
        "infra",
        "result",
        "calculate-shards did not run, so no test did",
        "run all jobs again; if it happens again, look at that job's condition",
    ),
    Row(
        "plan-lost",
        {"plan": ("lost",)},
        "infra",
        "result",
        "the plan did not reach the gate: without it nobody can say which results are missing",
        "run all jobs again",
    ),
    Row(
        "failed-before-cancelled",
        {"gpu-tests": ("cancelled",), "results": ("failed",)},
        BY_RESULTS,
        "result",
        "gpu-tests was cancelled, and tests had failed before",
    ),
    _cancelled("gpu-tests", "keep-final"),
    Row(
        "nothing-found",
        {"plan": ("nothing-found",)},
        "failed",
        "result",
        "there is no test in the tree: a run that was asked for and ran nothing is not a pass",
        "name the directories of tests in `packages` of .github/gpuci.yml",
    ),
    Row(
        "nothing-due",
        {"plan": ("nothing-due",), "gpu-tests": ("skipped",)},
        "passed",
        "keep-final",
        "none of the tests that were asked for needs a GPU in this run",
    ),
    Row(
        "not-planned",
        {"plan": ("nothing-due",)},
        "infra",
        "result",
        "gpu-tests ran, though the plan has no shard",
        "run all jobs again",
    ),
    Row(
        "gpu-tests-skipped",
        {"gpu-tests": ("skipped",)},
        "infra",
        "result",
        "gpu-tests did not run, though the plan has shards",
        "run all jobs again; if it happens again, look at that job's condition",
    ),
    Row(
        "results-disagree",
        {"gpu-tests": ("failure",), "results": ("passed",)},
        "infra",
        "result",
        "all results are good, and yet a job of gpu-tests failed",
        f"{LOG}; {AGAIN}",
    ),
    Row("results", {}, BY_RESULTS, "result", ""),
)

# What to do about the results, by their verdict.
THEN: Mapping[str, str] = {
    "config_error": "the log of gpu-tests says which setting, and what to do",
    "unauthorized": "the approval was taken back before the shards began: approve the commit again",
    "cancelled": f"a newer run may have taken its place; else {AGAIN}",
    "failed": "",  # the failing tests say it
    "timeout": "raise slurm.time-limit or node.timeout if the tests may take that long",
    "infra": f"no test is to blame: {AGAIN}, which repeats only the shards without a result",
    "preempted": f"other jobs took the nodes twice: {AGAIN}, or use a partition that does not preempt",
    "queue_timeout": f"the cluster is full: {AGAIN} later, or raise slurm.queue-timeout",
    "passed": "",
}


def decide(
    facts: Facts, policies: Mapping[str, bool], problems: Mapping[str, Problem] | None = None
) -> Decision:
    """The verdict for facts that have a value of each column; `policies` says which verdicts are accepted.

    `problems`: the errors of jobs; the verdict of the one that the row is about counts, where it is known.
    """
    row = next(row for row in ROWS if all(facts[name] in values for name, values in row.when.items()))
    told = (problems or {}).get(row.job, Problem()).verdict
    known = told if told in PROBLEM_VERDICTS else row.verdict
    verdict = facts["results"] if row.verdict == BY_RESULTS else known
    # A shard can forge its verdict: one that says `unauthorized` must not hide what the others say.
    forged = verdict == "unauthorized" and row.verdict == BY_RESULTS
    # Before the approval only the policy about it counts: else a broken find-changed would make a green.
    early = verdict != "unauthorized" and facts["approved"] == "false"
    accepted = verdict in POLICIES and policies.get(verdict, False) and not (forged or early)
    return Decision(row, verdict, verdict == "passed" or accepted, accepted)
