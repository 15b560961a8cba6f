"""End what is left of jobs of which nothing but the names is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from gpuci.execution.slurm import states
from gpuci.execution.slurm.remote import Cluster
from gpuci.execution.transport.connection import Connection

_PATIENCE_SECONDS = 240.0  # a step that always runs has five minutes after a cancellation (GitHub, 2026)
_PAUSE_SECONDS = 1.0


def clean_up(
    connection: Connection, shared: str | None, names: Sequence[str], say: Callable[[str], None]
) -> bool:
    """Cancel jobs of these names and wait until the queue knows none; whether it came to that.

    A name holds repository, run, attempt, shard and try, so that it is this run's alone.
    """
    cluster = Cluster(connection, "clean-up")
    cluster.prepare(shared)
    cluster.withdraw(names)
    until = time.monotonic() + _PATIENCE_SECONDS
    cancelled: set[str] = set()
    while True:
        answer = cluster.queue(names)
        rows = states.parse_queue(answer.out.decode("utf-8", "replace"))
        left = [row.job_id for row in rows if row.name in names]
        if answer.code == 0 and not left:
            say("nothing of these shards is in the queue")
            return True
        if time.monotonic() > until:
            say(f"still in the queue: {', '.join(left) or 'unknown, Slurm does not answer'}")
            return False
        if set(left) - cancelled:
            say(f"cancelling {', '.join(left)}")
            cluster.cancel(left)
            cancelled.update(left)
        time.sleep(_PAUSE_SECONDS)
