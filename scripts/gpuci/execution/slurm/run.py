"""Run the shards of a plan as Slurm jobs: one process follows them all."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gpuci.config.model import Config
from gpuci.errors import GpuciError
from gpuci.execution import jobs, node_package
from gpuci.execution.delivery.archive import Archive
from gpuci.execution.delivery.cleaning import clean
from gpuci.execution.delivery.remote import deliver
from gpuci.execution.directories import cannot_write
from gpuci.execution.slurm import follow, states
from gpuci.execution.slurm.answers import Brought, Garbled, Poll
from gpuci.execution.slurm.attempt import Attempt, Do, Step, advance, submission_overdue
from gpuci.execution.slurm.begin import Beginning
from gpuci.execution.slurm.finish import NOTHING, Ended, Finish, Unanswered
from gpuci.execution.slurm.interrupts import Interrupted, Interrupts
from gpuci.execution.slurm.launch import Identity, Launch
from gpuci.execution.slurm.options import settings_for
from gpuci.execution.slurm.remote import Cluster
from gpuci.execution.slurm.states import QueueRow
from gpuci.execution.transport.connection import Connection, LinkLost
from gpuci.model import Plan, ShardRun, ShardState
from gpuci.results.ownership import shard_folder
from gpuci.results.retry import remaining_after
from gpuci.results.verdict import shard_name

_CANCEL_AGAIN_SECONDS = 10.0
NOTHING_SUBMITTED = "stopped before anything was submitted"
_LAST_SECONDS = 1.0  # GitHub kills 2.5 s after its second signal, and the report is not written yet
_BUSY_SECONDS = 20.0  # from a poll on, for results: no lease is renewed meanwhile


class Listener(Protocol):
    """Who watches a run."""

    def feed(self, shard: int, record: dict[str, Any]) -> None:
        """A record of a shard, as it was written."""

    def state(self, shard: int, state: ShardState) -> None:
        """What Slurm says of a shard."""

    def tick(self, now: float) -> None:
        """Time went by (epoch seconds)."""


@dataclass(frozen=True)
class Options:
    """How to run: `out` gets a folder a shard, `shards` are the indices to run."""

    out: Path
    identity: Identity
    shards: tuple[int, ...]
    registry_credential: str = ""


class SlurmRun:
    """Delivers a tree, submits its shards, follows them to their ends, brings the results."""

    def __init__(
        self,
        plan: Plan,
        config: Config,
        options: Options,
        connection: Connection,
        listener: Listener,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._config = config
        self._options = options
        self._connection = connection
        self._listener = listener
        self._say = say
        self._cluster = Cluster(connection, secrets.token_hex(8), self._pause)
        self._finish = Finish(self._cluster, self._pause)
        self._interrupts = Interrupts()
        self._heeded = 0
        self._live: list[Attempt] = []
        self._done: list[ShardRun] = []
        self._failed_nodes: list[str] = []
        self._spent: list[str] = []
        self._kept: list[str] = []
        self._reasons: set[str] = set()
        self._clock = follow.Clock(float(config.slurm["lease-seconds"]))
        self._polled = 0.0
        self._disk_told = self._left = self._submitted = False

    def run(self, archive: Archive) -> list[ShardRun]:
        """Run everything; returns also after a signal, with what was finished by then."""
        with self._interrupts, contextlib.closing(self._connection):
            try:
                with self._interrupts.cutting():
                    self._connection.open()
                    self._begin(archive)
            except Interrupted:
                pass
            self._heed()
            while self._live:
                self._round()
                self._heed()
            self._leave_tidy()
        never = [
            ShardRun(index, (), {"verdict": "cancelled", "reason": "the run was stopped before it began"})
            for index in self._options.shards
            if index not in {run.index for run in self._done}
        ]
        return sorted([*self._done, *never], key=lambda run: (run.index, run.attempt))

    @property
    def nothing_left(self) -> bool:
        """Whether no job of this run can be on the cluster any more."""
        return not self._live and not self._left

    # -- the beginning -----------------------------------------------------------------------------

    def _begin(self, archive: Archive) -> None:
        site = self._cluster.prepare(self._config.slurm["shared-dir"])
        self._say(f"on {site.host}: files go to {site.shared}")
        for note in clean(self._connection, site.shared).notes:
            self._say(note)
        package = self._options.out / "gpuci_node.pyz"
        node_package.build(package)
        delivered = deliver(self._connection, site.shared, archive, package, self._say)
        self._launch = Launch(
            self._plan,
            self._config,
            self._options.identity,
            site.shared,
            delivered.tree,
            self._options.registry_credential,
        )
        self._beginning = Beginning(self._cluster, self._launch, delivered.node, self._say)
        self._create(
            [
                self._launch.attempt(index, 1, jobs.shard_units(self._plan, index))
                for index in self._options.shards
            ]
        )

    def _create(self, attempts: Sequence[Attempt]) -> None:
        for attempt in self._beginning.create(attempts):
            try:
                self._folder(attempt).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise cannot_write(self._folder(attempt), error) from error
            self._live.append(attempt)

    def _folder(self, attempt: Attempt) -> Path:
        return self._options.out / shard_folder(attempt.index, attempt.number)

    # -- following ---------------------------------------------------------------------------------

    def _round(self) -> None:
        """Submit what is due, look once, act on what was seen, wait."""
        asked = self._clock.asks_queue(self._live, time.monotonic())
        try:
            with self._interrupts.cutting():
                self._beginning.submit(self._live, time.monotonic())
            with self._interrupts.cutting():
                offsets = {attempt.name: attempt.offset for attempt in self._live}
                poll = self._cluster.poll(offsets, queue=asked)
        except Interrupted:
            return
        except (LinkLost, Garbled) as error:
            self._without_link(error)
            return
        self._polled = time.monotonic()
        self._clock.heard(self._polled)
        news = self._take(poll)
        rows = None if poll.queue is None else states.parse_queue(poll.queue)
        if asked:
            self._say_once("" if rows is not None else f"Slurm does not answer: {poll.error}")
        steps = [(attempt, self._step(attempt, rows)) for attempt in self._live]
        brought = self._bring([attempt for attempt, step in steps if step.do is Do.FINISH])
        for attempt, step in steps:
            if step.do is Do.FINISH and time.monotonic() - self._polled > _BUSY_SECONDS:
                continue  # in the next round: leases come first
            self._act(attempt, step, brought.get(attempt.name, NOTHING))
        self._cancel_those_ending()
        if self._live:
            self._pause(self._clock.interval(self._live, news))

    def _step(self, attempt: Attempt, rows: Sequence[QueueRow] | None) -> Step:
        if attempt.submit_at is None:
            return advance(attempt, rows, time.monotonic(), self._queue_timeout(attempt))
        if attempt.ending is None:
            timeout = self._queue_timeout(attempt)
            attempt.ending = submission_overdue(attempt, time.monotonic(), timeout)
        ending = attempt.ending
        return Step(Do.WAIT) if ending is None else Step(Do.FINISH, ending.reason, ending.verdict)

    def _bring(self, attempts: Sequence[Attempt]) -> dict[str, Brought]:
        try:
            with self._interrupts.cutting():
                return self._finish.bring(attempts)
        except Interrupted:
            return {}

    def _queue_timeout(self, attempt: Attempt) -> float:
        profile = self._config.profile(self._plan.shard(attempt.index).profile)
        return float(settings_for(self._config.slurm, profile)["queue-timeout"])

    def _take(self, poll: Poll) -> bool:
        """Take the news of a poll; whether there were any."""
        by_name = {attempt.name: attempt for attempt in self._live}
        news = False
        for part in poll.parts:
            attempt = by_name.get(part.name)
            if attempt is None:
                continue  # garbled
            attempt.withdrawn = part.claim == "withdrawn"
            attempt.claim = "-" if attempt.withdrawn else part.claim
            # Unknown (`-`) is nobody else: what can't be read for a moment was not taken over.
            attempt.held_by = "" if part.holder in (self._cluster.owner, "-") else part.holder
            news = news or bool(part.data)
            self._keep(attempt, part.data)
            for record in attempt.take_log(part.data, time.monotonic()):
                self._listener.feed(attempt.index, record)
        return news

    def _keep(self, attempt: Attempt, data: bytes) -> None:
        """The log as a file; a full disk here is no reason to leave jobs alone."""
        try:
            with (self._folder(attempt) / "log").open("ab") as stream:
                stream.write(data)
        except OSError as error:
            if not self._disk_told:
                self._disk_told = True
                self._say(cannot_write(self._folder(attempt) / "log", error).what)

    def _act(self, attempt: Attempt, step: Step, brought: Brought) -> None:
        self._listener.state(attempt.index, follow.state_of(attempt, time.time() - time.monotonic()))
        self._tell_why_it_waits(attempt)
        if step.do is Do.FINISH:
            self._over(attempt, step, brought)
        elif step.do is Do.SUBMIT:
            self._say(f"{shard_name(attempt.index)}: {step.reason}: submitted again")
            attempt.submit_at = 0.0
        elif step.do is Do.CANCEL:
            self._say(f"{shard_name(attempt.index)}: {step.reason}: cancelled")
            attempt.ending = step

    def _tell_why_it_waits(self, attempt: Attempt) -> None:
        """Slurm's code for it stands in the bars; what it means is said once."""
        reason = follow.worth_telling(attempt, time.monotonic())
        if reason and reason not in self._reasons:
            self._reasons.add(reason)
            self._say(f"{shard_name(attempt.index)} waits: {states.reason_text(reason)}")

    def _without_link(self, error: Exception) -> None:
        what = error.what if isinstance(error, GpuciError) else f"an answer was cut off ({error})"
        self._say_once(f"no link to the login node: {what}; trying again")
        if self._clock.silent(time.monotonic()) > 2 * float(self._config.slurm["lease-seconds"]):
            self._leave("infra", "the login node did not answer for too long")
        self._pause(self._clock.backoff())

    def _say_once(self, text: str) -> None:
        if self._clock.is_news(text):
            self._say(text or "the cluster answers again")

    def _pause(self, seconds: float) -> None:
        self._interrupts.wait(seconds, lambda: self._listener.tick(time.time()))

    # -- ends ----------------------------------------------------------------------------------------

    def _over(self, attempt: Attempt, step: Step, brought: Brought) -> None:
        try:
            with self._interrupts.cutting():
                folder = self._folder(attempt)
                ended = self._finish.collect(attempt, step, folder, time.monotonic(), brought)
        except Interrupted:
            return  # it is still there in the next round
        except Unanswered as error:
            self._say_once(f"{shard_name(attempt.index)} is over, but {error.what}; trying again")
            return
        self._add(attempt, ended)
        if ended.fate.retry and attempt.number == 1 and not self._interrupts.count:
            self._retry(attempt, ended)

    def _add(self, attempt: Attempt, ended: Ended) -> None:
        self._live.remove(attempt)
        self._done.append(ended.run)
        self._listener.state(attempt.index, ShardState("ended", ended.fate.verdict))
        if not attempt.held_by:
            spent = ended.fate.verdict in ("passed", "failed", "cancelled")
            (self._spent if spent else self._kept).append(attempt.name)
        reason = f": {ended.fate.reason}" if ended.fate.reason else ""
        self._say(f"{shard_name(attempt.index)}: {ended.fate.verdict.replace('_', ' ')}{reason}")

    def _retry(self, attempt: Attempt, ended: Ended) -> None:
        """Once more elsewhere, only what the journal lacks."""
        rest = remaining_after(attempt.units, [ended.run])
        if not rest.units:
            return
        node = ended.fate.exclude
        if node and node not in self._failed_nodes:
            self._failed_nodes.append(node)
        without = f", without {', '.join(self._failed_nodes)}" if self._failed_nodes else ""
        self._say(f"{shard_name(attempt.index)}: one more try{without}")
        number = attempt.number + 1
        try:
            with self._interrupts.cutting():
                self._create([self._launch.attempt(attempt.index, number, rest.units, self._failed_nodes)])
        except Interrupted:
            return  # nothing of it was submitted
        except GpuciError as error:  # the results of the first try, and other shards, are not to suffer
            self._say(f"{shard_name(attempt.index)}: no second try: {error.what}")

    # -- cancelling ----------------------------------------------------------------------------------

    def _heed(self) -> None:
        """First signal: cancel the jobs and wait for their ends. Second: leave."""
        if self._interrupts.count == self._heeded:
            return
        # Of several at once the second counts a round later: the jobs are cancelled first.
        self._heeded = self._interrupts.count if self._heeded else 1
        if self._heeded > 1:
            self._leave("cancelled", "the run was cancelled, and left by a second signal")
            return
        self._submitted = bool(self._done) or any(each.submitted is not None for each in self._live)
        self._say("cancelling the jobs of this run" if self._submitted else NOTHING_SUBMITTED)
        for attempt in self._live:
            attempt.ending = attempt.ending or Step(Do.CANCEL, "the run was cancelled", "cancelled")
            if attempt.submitted is not None:
                attempt.submit_at = None  # not again; the last time may have made a job

    def _cancel_those_ending(self) -> None:
        now = time.monotonic()
        due = [attempt for attempt in self._live if attempt.is_to_cancel(now, _CANCEL_AGAIN_SECONDS)]
        if not due:
            return
        names = [attempt.name for attempt in due]
        try:
            with self._interrupts.cutting():
                self._cluster.withdraw(names)
                rows = states.parse_queue(self._cluster.queue(names).out.decode("utf-8", "replace"))
                ids = [row.job_id for attempt in due for row in attempt.own(rows)]
                said = self._cluster.cancel(ids).err if ids else ""
        except (Interrupted, LinkLost):
            return
        for attempt in due:
            attempt.cancelled_at = now
        if said.strip():
            self._say(f"scancel: {said.strip()}")

    def _leave(self, verdict: str, reason: str) -> None:
        self._left = True
        if verdict == "cancelled":
            self._cancel_at_last()
        for attempt in list(self._live):
            step = Step(Do.FINISH, reason, verdict)
            now = time.monotonic()
            self._add(attempt, self._finish.without_fetching(attempt, step, self._folder(attempt), now))
        lease = self._config.slurm["lease-seconds"]
        self._say(f"jobs that are left end by themselves when nobody renews their lease ({lease:g} s)")

    def _cancel_at_last(self) -> None:
        """Jobs that signals kept us from cancelling so far; there is little time."""
        rows = [attempt.row for attempt in self._live if attempt.row and attempt.cancelled_at is None]
        with contextlib.suppress(LinkLost):
            if rows:
                self._cluster.cancel([row.job_id for row in rows], timeout=_LAST_SECONDS)

    def _leave_tidy(self) -> None:
        """Remove what is not needed any more on the shared folder; what broke stays to be looked at.

        Of that no job may begin later, and no credential stays that none has used.
        """
        if self._left:
            return
        if self._heeded and self._submitted:
            self._say("nothing of this run is in the queue any more")
        try:
            with self._interrupts.cutting():
                if self._spent:
                    self._cluster.remove(self._spent)
                if self._kept:
                    self._cluster.withdraw(self._kept)
        except (LinkLost, Interrupted):
            pass  # cleaning of a later run takes them
