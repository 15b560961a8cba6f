"""The node's health as the keeper asks for it: a process of its own, judged by its exit status.

Runs on the compute node (Python >= 3.8, standard library only).
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any, Dict, Optional

_QUERY_SECONDS = 20.0  # of the 30 s that all may take
_LAST_SECONDS = 8.0  # after the tests

Json = Dict[str, Any]


class Checkup:
    """A running look at the node; `fd` is readable until it ends."""

    def __init__(self, job: Json, when: str, since: float = 0.0) -> None:
        seconds = _QUERY_SECONDS if when == "before" else _LAST_SECONDS - 1.0
        places = {"scratch": os.path.dirname(job["paths"]["scratch"]), "shared folder": job["paths"]["out"]}
        asked = {
            **{"when": when, "seconds": seconds, "since": since, "directories": places, **job["health"]},
            **{name: job["node"][name] for name in ("gpus", "expect_gpus")},
        }
        self._process = subprocess.Popen(
            [sys.executable, "-I", sys.argv[0], "health"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.fd = self._process.stdout.fileno()
        self._said = b""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asked).encode("ascii"))
            self._process.stdin.close()

    def read(self) -> bool:
        """Take what there is; return whether that was all."""
        data = os.read(self.fd, 1 << 16)
        self._said += data
        return not data

    def result(self) -> Optional[Json]:
        """What it found; None if it broke, or did not end."""
        try:
            code = self._process.wait(timeout=1.0)
            found: Json = json.loads(self._said)
        except (subprocess.TimeoutExpired, ValueError):
            self.give_up()
            return None
        return found if code == 0 else None

    def give_up(self) -> None:
        """Kill it; one that hangs in the driver is not waited for."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def last(job: Json, since: float, until: int) -> Optional[Json]:
    """Look at the node after the tests, but not longer than until a descriptor is readable (a signal)."""
    checkup = Checkup(job, "after", since)
    end = time.monotonic() + _LAST_SECONDS
    while True:
        ready, _, _ = select.select([checkup.fd, until], [], [], max(0.0, end - time.monotonic()))
        if checkup.fd not in ready:
            checkup.give_up()
            return None
        if checkup.read():
            return checkup.result()
