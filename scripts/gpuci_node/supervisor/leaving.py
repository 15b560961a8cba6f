"""How a job's end is heard of, and what is left of a node's processes and devices then.

Runs on the compute node (Python >= 3.8, standard library only).
"""

import os
import signal
from types import FrameType
from typing import Any, Dict, Iterator, Optional, Tuple

from gpuci_node import processes
from gpuci_node.supervisor import checkup
from gpuci_node.supervisor.link import Link

_LEAVE_SECONDS = 3.0  # for the starter to end, and its container
_EARLY_SECONDS = 1.0  # the same when Slurm may kill us soon
# USR1 is the batch script's: the time limit is near.
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def signal_pipe() -> int:
    """A descriptor that gives the number of each signal that says that the job is to end, one a byte."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in _NUMBERS:
        signal.signal(number, _wake)
    return reader


def _wake(_number: int, _frame: Optional[FrameType]) -> None:
    """The descriptor of `set_wakeup_fd` does the work."""


def end_processes(link: Link, early: bool, contained: bool) -> None:
    """Let the starter go, and end all that is below us.

    Not the runtime of a container: podman without its monitor takes the container for one that still stops.
    The batch script removes it.
    """
    ended = link.leave(_EARLY_SECONDS if early else _LEAVE_SECONDS)
    if contained:
        return
    if not ended:
        link.process.kill()
    processes.kill_all(lambda: processes.descendants(os.getpid()))


def left_on_gpus(job: Dict[str, Any], since: float, signals: int) -> Iterator[Tuple[str, str]]:
    """Topic and text of what is still on the job's GPUs, and of device errors during the tests.

    A signal on the descriptor `signals` ends the look.
    """
    found = checkup.last(job, since, signals)
    if found is None:
        return
    if found["left"]:
        yield "left_on_gpu", "left on the GPUs after the tests: " + "; ".join(found["left"])
    if found["xids"]:
        yield "xid", "device errors during the tests: " + "; ".join(found["xids"])
