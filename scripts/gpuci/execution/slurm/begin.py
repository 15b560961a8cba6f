"""Tries -> job directories and Slurm jobs. Submits once: looks before, and after an answer that is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuci.errors import GpuciError
from gpuci.execution.slurm import messages
from gpuci.execution.slurm.answers import Garbled, Held, Submitted
from gpuci.execution.slurm.attempt import Attempt, Do, Step
from gpuci.execution.slurm.interrupts import Interrupted
from gpuci.execution.slurm.launch import Launch
from gpuci.execution.slurm.options import asked_for
from gpuci.execution.slurm.remote import Cluster
from gpuci.execution.transport.connection import LinkLost
from gpuci.results.verdict import shard_name

HEARD_SECONDS = 60  # a runner that follows a job writes its lease each 15 s or more often
_AGAIN_SECONDS = 10.0  # to a controller that is away, or that takes no more jobs for now


class Beginning:
    """Makes and submits the jobs of a run."""

    def __init__(self, cluster: Cluster, launch: Launch, node: str, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._launch = launch
        self._node = node
        self._say = say
        self._told = False
        self._why_not = ""  # what was said last of submissions that are not taken

    def create(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Make the job directories; what a runner that is gone had begun is taken over.

        Raises GpuciError if another runner follows one of these shards now.
        """
        made: list[Attempt] = []
        left = list(attempts)
        while left:  # a second time only behind a runner that was gone before it had made them all
            jobs = {attempt.name: self._launch.files(attempt) for attempt in left}
            created, held = self._cluster.create(self._launch.tree, self._node, jobs)
            by_name = {each.name: each for each in held}
            there = [attempt for attempt in left if attempt.name in created | by_name.keys()]
            made += [self._take_over(attempt, by_name.get(attempt.name)) for attempt in there]
            left = [attempt for attempt in left if attempt not in there]
        return made

    def _take_over(self, attempt: Attempt, held: Held | None) -> Attempt:
        if held is None or held.holder == self._cluster.owner:
            return attempt
        who = shard_name(attempt.index)
        if held.age < HEARD_SECONDS:
            raise _followed(who, f"it was heard {held.age} s ago")
        if not self._cluster.adopt(held):
            raise _followed(who, "it was quicker just now")
        self._say(f"{who}: a runner that is gone since {held.age} s began it; it goes on from there")
        return self._launch.adopted(attempt, held.token)

    def submit(self, attempts: Sequence[Attempt], now: float) -> None:
        """Submit those whose time has come; what became of it is noted in each."""
        waiting = [each for each in attempts if each.submit_at is not None and each.ending is None]
        due = [each for each in waiting if each.submit_at is not None and each.submit_at <= now]
        if not due:
            return
        try:
            submitted, queue_error = self._cluster.submit({attempt.name: attempt.key for attempt in due})
        except (LinkLost, Garbled) as error:
            if isinstance(error, LinkLost) and not error.sent:
                return  # still due
            self._say("no answer to the submission: the queue will tell what became of it")
            for attempt in due:
                _may_exist(attempt, now)
            return
        except Interrupted:
            for attempt in due:  # the login node goes on with what it has begun
                _may_exist(attempt, now)
            raise
        if queue_error is not None:
            self._not_now(due, messages.explain(queue_error, 1), now)
        taken = [answer.name for answer in submitted if not answer.code]
        if taken and not self._told:
            self._told = True
            jobs = "1 job" if len(taken) == 1 else f"{len(taken)} jobs"
            self._say(f"submitted {jobs}, called like {taken[0]}")
        by_name = {attempt.name: attempt for attempt in due}
        for answer in submitted:
            if answer.name in by_name:
                self._note(by_name[answer.name], answer, now)

    def _note(self, attempt: Attempt, answer: Submitted, now: float) -> None:
        if answer.code is None or answer.code == 0:
            _may_exist(attempt, now)
            return
        message = messages.explain(answer.text, answer.code)
        if message.kind == "ambiguous":
            self._say(f"{shard_name(attempt.index)}: {message.what}: the queue will tell if it was taken")
            _may_exist(attempt, now)
        elif message.kind in ("down", "later"):
            self._postpone([attempt], message, now)
        else:
            _refuse(attempt, message)

    def _not_now(self, due: Sequence[Attempt], message: messages.Message, now: float) -> None:
        """The queue could not be looked at. What never worked in this run, and is refused, will not work."""
        if message.kind != "refused" or self._told:
            self._postpone(due, message, now)
            return
        for attempt in due:
            _refuse(attempt, message)

    def _postpone(self, attempts: Sequence[Attempt], message: messages.Message, now: float) -> None:
        if message.what != self._why_not:
            self._why_not = message.what
            self._say(f"{message.what}: asked again each {_AGAIN_SECONDS:g} s")
        for attempt in attempts:
            attempt.submit_at = now + _AGAIN_SECONDS
            attempt.postponed = (attempt.postponed or (now, ""))[0], message.what


def _refuse(attempt: Attempt, message: messages.Message) -> None:
    attempt.submit_at = None
    said = "; ".join(filter(None, (message.why, message.then)))
    text = f"{message.what}{asked_for(said, attempt.asked)}; {said}"
    attempt.ending = Step(Do.FINISH, text, "config_error")


def _may_exist(attempt: Attempt, now: float) -> None:
    attempt.submit_at, attempt.submitted = None, now
    attempt.submissions += 1
    attempt.unseen_since = attempt.postponed = None


def _followed(who: str, how: str) -> GpuciError:
    return GpuciError(
        f"{who} of this run is followed by another runner ({how})",
        why="the same attempt of the same run was started twice",
        then="let that one finish, or cancel it; its jobs were not touched",
    )
