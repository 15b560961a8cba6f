"""What the keeper keeps an eye on besides the tests: who follows the job, and whether its log still moves.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from typing import Any, Dict, List, Optional

from gpuci_node.supervisor.effects import Dump, Effects, Stop, Write
from gpuci_node.supervisor.lease import Lease
from gpuci_node.supervisor.limits import DUMP_SECONDS

NOBODY_FOLLOWS = "whoever followed this job is gone: its lease stood still for %g s"


class Vigil:
    """Looks when it is time to; times are monotonic seconds."""

    def __init__(self, job: Dict[str, Any], now: float) -> None:
        lease = job["lease"]
        self._lease_seconds = 0.0 if lease is None else lease["seconds"]
        self._lease = None if lease is None else Lease(lease["seconds"], now)
        self._path = "" if lease is None else lease["path"]
        self._stall_seconds: Optional[float] = job["stall_seconds"]
        self._dumped_at: Optional[float] = None

    def next_look(self, written: float) -> Optional[float]:
        """When to look next; `written`: when something was written to the log last."""
        due = [] if self._lease is None else [self._lease.due]
        stall = self._stall_at(written)
        return min([*due, stall] if stall is not None else due, default=None)

    def _stall_at(self, written: float) -> Optional[float]:
        if self._dumped_at is not None:
            return self._dumped_at + DUMP_SECONDS
        return None if self._stall_seconds is None else written + self._stall_seconds

    def look(self, now: float, written: float, running: List[str]) -> Effects:
        """What is to be done now: end the job, or ask all test processes for their stacks first."""
        if self._lease is not None and now >= self._lease.due and self._lease.see(self._read(), now):
            return [Stop("cancelled", NOBODY_FOLLOWS % self._lease_seconds)]
        stall = self._stall_at(written)
        if stall is None or now < stall:
            return []
        text = "the log stood still for %g s" % (self._stall_seconds or 0.0)
        if self._dumped_at is not None:
            stop = Stop("timeout", text + ": the stacks of all test processes are in it")
            self._stall_seconds = self._dumped_at = None
            return [stop]
        self._dumped_at = now
        note = {"kind": "note", "level": "warning", "topic": "stall", "text": text}
        return [Write(note), *(Dump(process_id) for process_id in running)]

    def _read(self) -> Optional[bytes]:
        """The lease, opened anew: an NFS client looks at the server when a file is opened (nfs(5))."""
        try:
            with open(self._path, "rb") as stream:
                return stream.read(64)
        except OSError:
            return None
