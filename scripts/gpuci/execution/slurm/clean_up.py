"""End what is left of jobs of which nothing but the names is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from gpuci.execution.slurm import states
from gpuci.execution.slurm.remote import Cluster, Runner
from gpuci.execution.transport.connection import LinkLost

_PATIENCE_SECONDS = 240.0  # a step that always runs has five minutes after a cancellation (GitHub, 2026)
_PAUSE_SECONDS = 1.0
_CANCEL_AGAIN_SECONDS = 10.0  # scancel may have failed


def clean_up(
    connection: Runner, shared: str | None, names: Sequence[str], say: Callable[[str], None]
) -> bool:
    """Cancel jobs of these names and wait until the queue knows none; whether it came to that.

    A name holds repository, run, attempt, shard and try, so that it is this run's alone. Raises GpuciError
    if the cluster can't be used at all.
    """
    cluster = Cluster(connection, "clean-up")
    cluster.prepare(shared)
    until = time.monotonic() + _PATIENCE_SECONDS
    withdrawn = False
    cancelled: dict[str, float] = {}
    while True:
        left: list[str] | None = None
        try:
            if not withdrawn:
                cluster.withdraw(names)
                withdrawn = True
            left = _left(cluster, names)
            if left:
                _cancel(cluster, left, cancelled, say)
        except LinkLost as error:
            say(f"{error.what}; trying again")
        if left == []:
            say("nothing of these shards is in the queue")
            return True
        if time.monotonic() > until:
            say(f"still in the queue: {', '.join(left or ()) or 'unknown, the cluster does not answer'}")
            return False
        time.sleep(_PAUSE_SECONDS)


def _left(cluster: Cluster, names: Sequence[str]) -> list[str] | None:
    """The ids of jobs that are not over; None if Slurm does not answer."""
    answer = cluster.queue(names)
    if answer.code != 0:
        return None
    rows = states.parse_queue(answer.out.decode("utf-8", "replace"))
    return [row.job_id for row in rows if row.name in names]


def _cancel(
    cluster: Cluster, left: Sequence[str], cancelled: dict[str, float], say: Callable[[str], None]
) -> None:
    now = time.monotonic()
    due = [job for job in left if now - cancelled.get(job, -_CANCEL_AGAIN_SECONDS) >= _CANCEL_AGAIN_SECONDS]
    if not due:
        return
    say(f"cancelling {', '.join(due)}")
    said = cluster.cancel(due).err.strip()
    cancelled.update(dict.fromkeys(due, now))
    if said:
        say(f"scancel: {said}")
