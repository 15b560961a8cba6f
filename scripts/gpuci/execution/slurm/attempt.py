"""One try of one shard as the runner knows it, and what is to be done with it next. Pure.

Rules: unknown is not terminal, absence is not success (design: a failed query, a gap in accounting and an
unknown id are three things), and a job is known by its name and key, never by its id alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from gpuci.execution.log import LogReader
from gpuci.execution.slurm import states
from gpuci.execution.slurm.names import key_in
from gpuci.execution.slurm.options import asked_for
from gpuci.execution.slurm.states import QueueRow
from gpuci.model import Unit
from gpuci.results.journal import Record

SETTLE_SECONDS = 30.0  # after an ambiguous answer: slurmctld may still make the job of a request it took
LOST_SECONDS = 60.0  # the controller answers, but knows no such job any more
QUIET_SECONDS = 6.0  # a job is over: its log is complete when nothing came for so long (NFS caches 3 s)
MOST_SUBMISSIONS = 3
END_SECONDS = (
    900.0  # a log ended, and Slurm does not say so: its controller is away, or the job hangs in COMPLETING
)


class Do(Enum):
    """What is to be done with a try."""

    WAIT = "look again"
    SUBMIT = "submit it (again)"
    CANCEL = "cancel its job"
    FINISH = "it is over: bring its results"


@dataclass(frozen=True)
class Step:
    """What to do, why, and the verdict that this means (empty: Slurm and the node say it)."""

    do: Do
    reason: str = ""
    verdict: str = ""


@dataclass
class Attempt:
    """A try. Times are the runner's monotonic seconds; None: not yet."""

    index: int
    number: int
    name: str
    token: str
    key: str
    units: tuple[Unit, ...]
    log: LogReader
    exclude: tuple[str, ...] = ()
    offset: int = 0
    submit_at: float | None = 0.0  # when it is to be submitted; None: it was
    submissions: int = 0
    submitted: float | None = None  # the last submission that may have made a job
    row: QueueRow | None = None  # what the queue said last
    claim: str = "-"  # the id of the Slurm job that runs it
    withdrawn: bool = False  # no job of it can begin any more
    unseen_since: float | None = None  # the queue was asked and did not know it
    quiet_since: float = 0.0  # nothing new in the log
    terminal_since: float | None = None
    hopeless: str = ""  # the reason to wait for ever that was seen last
    held_by: str = ""  # another runner that has it by now
    ending: Step | None = None  # it is to end, or be cancelled, for this reason
    cancelled_at: float | None = None
    began: float | None = None  # its job was first seen running
    unanswered: int = 0  # times that what it left could not be had
    postponed: tuple[float, str] | None = None  # since when no submission is taken, and why
    asked: tuple[str, ...] = ()  # the options for sbatch

    @property
    def job_id(self) -> str:
        """The id of its job as far as it is known."""
        return self.claim if self.claim != "-" else (self.row.job_id if self.row else "")

    def own(self, rows: Sequence[QueueRow]) -> list[QueueRow]:
        """Rows with its name and its key."""
        return [row for row in rows if row.name == self.name and key_in(row.comment) == self.key]

    def is_to_cancel(self, now: float, again_seconds: float) -> bool:
        """Whether its job is to be cancelled now; again after some time, since scancel may have failed."""
        if self.ending is None or self.ending.do is not Do.CANCEL or self.terminal_since is not None:
            return False
        return self.cancelled_at is None or now - self.cancelled_at >= again_seconds

    def take_log(self, data: bytes, now: float) -> list[Record]:
        """New bytes of the log, and the records in them."""
        if data:
            self.offset += len(data)
            self.quiet_since = now
        return self.log.feed(data)


def own_row(attempt: Attempt, rows: Sequence[QueueRow]) -> QueueRow | None:
    """The row of this try: with its name and key; of several the one that runs, else one that is not over."""

    def rank(row: QueueRow) -> tuple[bool, bool, int]:
        number = int(re.split("[_+]", row.job_id)[0])
        return row.job_id == attempt.claim, not states.is_terminal(row.state), number

    return max(attempt.own(rows), key=rank, default=None)


def advance(attempt: Attempt, rows: Sequence[QueueRow] | None, now: float, queue_timeout: float) -> Step:
    """Take what the queue said (None: it did not answer) and decide. The log was taken before."""
    if attempt.held_by:
        return Step(Do.FINISH, f"another runner follows it now ({attempt.held_by})", "infra")
    if attempt.ending is not None and attempt.submitted is None:
        return Step(Do.FINISH)  # refused: there is no job
    if attempt.log.end_code is not None and now - attempt.quiet_since >= END_SECONDS:
        return Step(Do.FINISH, f"its log ended, and Slurm did not end the job for {END_SECONDS:g} s", "infra")
    if rows is None:
        return Step(Do.WAIT)
    attempt.row = own_row(attempt, rows) or attempt.row
    if own_row(attempt, rows) is None:
        return _unseen(attempt, now)
    attempt.unseen_since = None
    return _seen(attempt, now, queue_timeout)


def _seen(attempt: Attempt, now: float, queue_timeout: float) -> Step:
    row = attempt.row
    assert row is not None
    if states.is_terminal(row.state):
        if attempt.terminal_since is None:
            attempt.terminal_since = now
        return _complete(attempt, attempt.terminal_since, now)
    attempt.terminal_since = None
    if attempt.ending is not None:
        return Step(Do.WAIT)
    if not states.is_waiting(row.state):
        attempt.began = now if attempt.began is None else attempt.began
        return Step(Do.WAIT)
    return _waiting(attempt, row, now, queue_timeout)


def _waiting(attempt: Attempt, row: QueueRow, now: float, queue_timeout: float) -> Step:
    if states.waits_for_ever(row.reason):
        # Seen twice: while a job is made it can have a reason that is gone a moment later.
        if attempt.hopeless == row.reason:
            words = states.reason_text(row.reason)
            why = f"it would wait for ever: {words}{asked_for(words, attempt.asked)}"
            return Step(Do.CANCEL, why, states.verdict_of_reason(row.reason))
        attempt.hopeless = row.reason
        return Step(Do.WAIT)
    attempt.hopeless = ""
    if attempt.submitted is not None and now - attempt.submitted > queue_timeout:
        why = f"it waited longer than {queue_timeout:g} s: {states.reason_text(row.reason)}"
        return Step(Do.CANCEL, why, "queue_timeout")
    return Step(Do.WAIT)


def _unseen(attempt: Attempt, now: float) -> Step:
    """The queue answered and does not know the job: not made yet, lost by the controller, or long over."""
    if attempt.unseen_since is None:
        attempt.unseen_since = now
    if attempt.log.end_code is not None or attempt.terminal_since is not None:
        return Step(Do.FINISH)
    if attempt.ending is not None:
        if _may_come(attempt, now):
            return Step(Do.WAIT)
        return _complete(attempt, attempt.unseen_since, now)
    started = attempt.claim != "-" or attempt.offset > 0
    patience = SETTLE_SECONDS if attempt.row is None else LOST_SECONDS
    since = max(attempt.unseen_since, attempt.submitted or 0.0, attempt.quiet_since if started else 0.0)
    if now - since < patience:
        return Step(Do.WAIT)
    if started:
        return Step(Do.FINISH)  # what became of it, accounting and the node may know
    if attempt.submissions >= MOST_SUBMISSIONS:
        return Step(Do.FINISH, f"submitted {attempt.submissions} times, and Slurm knows no such job", "infra")
    return Step(Do.SUBMIT, "Slurm knows no such job")


def _may_come(attempt: Attempt, now: float) -> bool:
    """Whether a job that is to be cancelled may still be made: it was submitted, and never seen."""
    if attempt.submitted is None or attempt.row is not None:
        return False
    if attempt.ending is None or attempt.ending.do is not Do.CANCEL:
        return False
    return attempt.cancelled_at is None or now - attempt.submitted < SETTLE_SECONDS


def submission_overdue(attempt: Attempt, now: float, queue_timeout: float) -> Step | None:
    """How a try ends that Slurm did not take for so long; None: it does not."""
    if attempt.postponed is None or now - attempt.postponed[0] <= queue_timeout:
        return None
    why = f"it could not be submitted for {queue_timeout:g} s: {attempt.postponed[1]}"
    return Step(Do.FINISH, why, "queue_timeout")


def _complete(attempt: Attempt, over_since: float, now: float) -> Step:
    """Its job is over: is its log, too?"""
    quiet = now - max(over_since, attempt.quiet_since) >= QUIET_SECONDS
    never = attempt.withdrawn or (attempt.claim == "-" and attempt.offset == 0)
    at_once = attempt.log.end_code is not None or (never and attempt.ending is not None)
    return Step(Do.FINISH if at_once or quiet else Do.WAIT)
