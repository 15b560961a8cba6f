"""A try that is over -> its results here, and what they mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuci.errors import GpuciError
from gpuci.execution.outputs import Outputs, read_outputs
from gpuci.execution.slurm import fate, fetched, messages, states
from gpuci.execution.slurm.answers import Brought, Details, Garbled
from gpuci.execution.slurm.attempt import Attempt, Step
from gpuci.execution.slurm.fate import Fate
from gpuci.execution.slurm.remote import Cluster
from gpuci.execution.transport.connection import LinkLost
from gpuci.model import ShardRun
from gpuci.results.journal import is_number

_SETTLE_SECONDS = (
    15.0  # for the login node to see what the compute node wrote (NFS attribute caches: 3 to 60 s)
)
_PAUSE_SECONDS = 0.5
MOST_UNANSWERED = 3  # times that polls were answered, and what a try left could not be had
NOTHING = Brought()


class Unanswered(GpuciError):
    """The cluster did not say what became of a try. It may in a while."""


@dataclass(frozen=True)
class Ended:
    """What became of a try."""

    run: ShardRun
    fate: Fate


class Finish:
    """Brings results of tries into their folders. `pause` waits some seconds."""

    def __init__(self, cluster: Cluster, pause: Callable[[float], None]) -> None:
        self._cluster = cluster
        self._pause = pause

    def bring(self, attempts: Sequence[Attempt]) -> dict[str, Brought]:
        """For `collect`: what there is of several tries in one round trip, as far as it comes."""
        try:
            return self._cluster.bring({each.name: each.job_id for each in attempts}) if attempts else {}
        except (GpuciError, Garbled):
            return {}

    def collect(
        self, attempt: Attempt, step: Step, folder: Path, now: float, brought: Brought = NOTHING
    ) -> Ended:
        """Fetch, read and judge.

        Raises Unanswered a few times if the cluster does not answer: that is no end of a job, and changes
        no result. Then what the log brought has to do.
        """
        try:
            outputs, problems = self._outputs(attempt, folder, brought.data)
            facts = self._facts(attempt, brought.details)
        except Unanswered:
            attempt.unanswered += 1
            raise
        fated = self._judge(attempt, step, outputs, facts)
        run = ShardRun(
            index=attempt.index,
            records=outputs.records,
            verdict=outputs.verdict,
            wall_seconds=_wall(attempt, outputs, now),
            queue_seconds=_queue(attempt, facts),
            attempt=attempt.number,
            problem="; ".join(problems),
            node=attempt.row.node if attempt.row else "",
            fate=fated.verdict,
            reason=fated.reason,
        )
        return Ended(run, fated)

    def without_fetching(self, attempt: Attempt, step: Step, folder: Path, now: float) -> Ended:
        """The same from the log alone, when there is no time."""
        outputs = read_outputs(folder, attempt.log)
        fated = Fate(step.verdict, step.reason, retry=False, exclude=None)
        run = ShardRun(
            index=attempt.index,
            records=tuple(attempt.log.records),
            verdict=outputs.verdict,
            wall_seconds=_wall(attempt, outputs, now),
            attempt=attempt.number,
            fate=step.verdict,
            reason=step.reason,
        )
        return Ended(run, fated)

    def _outputs(self, attempt: Attempt, folder: Path, data: bytes | None) -> tuple[Outputs, list[str]]:
        """Fetch, unless it was brought, until journal and verdict agree, or time is up."""
        until = time.monotonic() + _SETTLE_SECONDS
        fetches = data is None or bool(fetched.unpack(data, folder))
        problems: list[str] = []
        while True:
            if fetches:
                problems = self._fetch(attempt, folder)
            outputs = read_outputs(folder, attempt.log)
            claims_more = attempt.log.verdict is not None and outputs.problem
            if not claims_more or problems or time.monotonic() > until:
                return outputs, problems
            if fetches:
                self._pause(_PAUSE_SECONDS)
            fetches = True

    def _fetch(self, attempt: Attempt, folder: Path) -> list[str]:
        try:
            return fetched.unpack(self._cluster.fetch(attempt.name), folder)
        except GpuciError as error:
            if isinstance(error, LinkLost) and _patient(attempt):
                raise Unanswered(error.what) from error
            return [f"its results can't be brought here: {error.what}"]

    def _facts(self, attempt: Attempt, details: Details | None) -> states.JobFacts | None:
        """What Slurm says of its job: the controller, else the accounting; None if neither knows it."""
        if not attempt.job_id:
            return None
        try:
            details = details or self._cluster.details(attempt.job_id, attempt.name)
            if details.code == 0:
                return states.parse_job(details.text)
        except LinkLost as error:
            if _patient(attempt):
                raise Unanswered(error.what) from error
            return None
        except (GpuciError, Garbled):
            return None
        facts = states.from_accounting(details.accounting, attempt.name, attempt.key)
        message = messages.explain(details.text, details.code)
        if facts is None and message.kind != "gone" and _patient(attempt):
            raise Unanswered(message.what)
        return facts

    def _judge(self, attempt: Attempt, step: Step, outputs: Outputs, facts: states.JobFacts | None) -> Fate:
        imposed = attempt.ending or step
        if imposed.verdict:
            return Fate(imposed.verdict, imposed.reason, retry=False, exclude=None)
        began = bool(outputs.records)
        return fate.judge(facts, outputs.verdict, outputs.problem, attempt.log.text, began=began)


def _patient(attempt: Attempt) -> bool:
    """Whether to ask again; how a cancelled job ended changes nothing."""
    return attempt.ending is None and attempt.unanswered < MOST_UNANSWERED


def _wall(attempt: Attempt, outputs: Outputs, now: float) -> float:
    verdict = outputs.verdict or {}
    started: Any = verdict.get("started")
    ended: Any = verdict.get("ended")
    if is_number(started) and is_number(ended):
        return max(0.0, float(ended) - float(started))
    return 0.0 if attempt.began is None else now - attempt.began


def _queue(attempt: Attempt, facts: states.JobFacts | None) -> float:
    """Seconds between submission and start by Slurm's clock, else as they were seen from here."""
    if facts is not None and facts.submit_time is not None and facts.start_time is not None:
        return max(0.0, facts.start_time - facts.submit_time)
    if attempt.began is None or attempt.submitted is None:
        return 0.0
    return max(0.0, attempt.began - attempt.submitted)
