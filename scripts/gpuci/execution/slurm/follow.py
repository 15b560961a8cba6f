"""How often to look, and what to call what was seen. Pure: times are given (monotonic seconds)."""

from __future__ import annotations

from collections.abc import Sequence

from gpuci.execution.slurm import states
from gpuci.execution.slurm.attempt import Attempt
from gpuci.model import ShardState

RUNNING_SECONDS = 1.0
ENDING_SECONDS = 0.25  # a job that is about to be over
MOST_ENDING = 60  # polls so soon after each other: a job can be COMPLETING for hours
QUEUE_SECONDS = 5.0  # between questions to slurmctld while all run: each makes it list every job that it has
FIRST_SECONDS, LONGEST_SECONDS, GROWTH = 1.0, 15.0, 1.4  # while all wait, and while nobody answers
WAITS_SECONDS = 10.0  # in the queue before it is told why: most reasons of the first moment mean nothing


class Clock:
    """Intervals between polls; remembers since when there was no answer, and what was said of it."""

    def __init__(self, lease_seconds: float = 300.0) -> None:
        # A lease is to be renewed a few times before it ends.
        self._longest = min(LONGEST_SECONDS, lease_seconds / 4)
        self._waiting = FIRST_SECONDS
        self._backoff = FIRST_SECONDS
        self._silent_since: float | None = None
        self._said = ""
        self._states: list[str] = []
        self._asked: float | None = None
        self._skipped = False
        self._ending = 0

    def asks_queue(self, attempts: Sequence[Attempt], now: float) -> bool:
        """Whether a poll is to ask Slurm too: not each time while all run, when their logs say enough."""
        steady = all(attempt.began is not None and not _is_ending(attempt) for attempt in attempts)
        self._skipped = steady and self._asked is not None and now - self._asked < QUEUE_SECONDS
        if not self._skipped:
            self._asked = now
        return not self._skipped

    def heard(self, now: float) -> None:
        """An answer came."""
        self._silent_since = None
        self._backoff = FIRST_SECONDS

    def silent(self, now: float) -> float:
        """No answer came: for how many seconds now."""
        self._asked = None
        if self._silent_since is None:
            self._silent_since = now
        return now - self._silent_since

    def backoff(self) -> float:
        """Seconds until the next attempt to reach the cluster."""
        seconds, self._backoff = self._backoff, min(self._longest, self._backoff * GROWTH)
        return seconds

    def is_news(self, text: str) -> bool:
        """Whether this was not what was said last; the empty text is for all is well."""
        said, self._said = self._said, text
        return text != said

    def interval(self, attempts: Sequence[Attempt], news: bool) -> float:
        """Seconds until the next look: often while something runs, ever more seldom while all wait."""
        self._ending = self._ending + 1 if any(map(_is_ending, attempts)) else 0
        if self._ending and self._skipped:
            return 0.0  # the log says so: what does Slurm?
        if self._ending:
            return ENDING_SECONDS if self._ending <= MOST_ENDING else RUNNING_SECONDS
        if any(attempt.began is not None or attempt.claim != "-" for attempt in attempts):
            return RUNNING_SECONDS
        before, self._states = (
            self._states,
            [attempt.row.state if attempt.row else "" for attempt in attempts],
        )
        if news or before != self._states:
            self._waiting = FIRST_SECONDS
        seconds, self._waiting = self._waiting, min(self._longest, self._waiting * GROWTH)
        return seconds


def _is_ending(attempt: Attempt) -> bool:
    over = attempt.log.end_code is not None or attempt.log.verdict is not None
    return over or attempt.terminal_since is not None or attempt.ending is not None


def state_of(attempt: Attempt, monotonic_zero: float) -> ShardState:
    """Where a try is, for people; `monotonic_zero` is the epoch second at which our monotonic clock was 0."""
    row = attempt.row
    submitted = None if attempt.submitted is None else monotonic_zero + attempt.submitted
    if row is None:
        return ShardState("planned") if submitted is None else ShardState("submitted", since=submitted)
    if states.is_terminal(row.state):
        return ShardState("running", f"{row.node}, its results are fetched" if row.node else "")
    if states.is_waiting(row.state):
        return ShardState("waiting", "" if row.reason == "None" else row.reason, submitted)
    return ShardState("running", row.node)


def worth_telling(attempt: Attempt, now: float) -> str:
    """Slurm's reason for a try that is in the queue for a while, or nothing."""
    row = attempt.row
    if row is None or attempt.submitted is None or now - attempt.submitted < WAITS_SECONDS:
        return ""
    # `advance` tells, and ends, what would wait for ever.
    waits = states.is_waiting(row.state) and not states.waits_for_ever(row.reason)
    return row.reason if waits else ""
