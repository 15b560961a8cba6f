"""What a run leaves behind: in the queue, as processes, as containers, in the scratch directory."""

from __future__ import annotations

import contextlib
import os
import time

from tests.cluster.faulting.door import comm, environ, pids, words
from tests.cluster.faulting.scene import Scene

KILL_WAIT = 30.0  # of slurm.conf
GRACE_SECONDS = 10.0
STEP_SECONDS = 0.25


def await_nothing(scene: Scene, more: float = 0.0) -> tuple[list[str], float]:
    """Wait until nothing is left, KillWait + 10 s (and `more`) at most: (what is left, the seconds)."""
    start = time.monotonic()
    while True:
        left = leftovers(scene)
        waited = time.monotonic() - start
        if not left or waited > KILL_WAIT + GRACE_SECONDS + more:
            return left, waited
        time.sleep(STEP_SECONDS)


def leftovers(scene: Scene) -> list[str]:
    """What there is of a run now."""
    jobs = scene.jobs()
    left = ["queue: it does not answer"] if jobs is None else []
    left += [f"queue: job {job.id} {job.state}" for job in jobs or [] if not job.over]
    left += [f"process: {text}" for text in processes(scene.key)]
    if scene.runtime == "podman" and not left:
        ours = {f"gpuci-{job.id}" for job in jobs or []}
        left += [f"container: {name}" for name in scene.bed.containers() if name in ours]
    if not left and "scratch" not in scene.leaves:
        left += [f"scratch: {path.name}" for path in scene.scratch.iterdir()]
    return left


def processes(key: str) -> list[str]:
    """Processes that carry the key of a run in their environment, arguments or working directory.

    Not its doors: an sshd stays until the scene is closed.
    """
    found = []
    for pid in pids():
        if pid == os.getpid() or comm(pid) in ("sshd", ""):
            continue
        with contextlib.suppress(OSError):
            if key in words(pid) + environ(pid) + os.readlink(f"/proc/{pid}/cwd"):
                found.append(f"{pid} {words(pid)[:120] or comm(pid)}")
    return found
