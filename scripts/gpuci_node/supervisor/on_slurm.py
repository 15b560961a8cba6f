"""A keeper in a Slurm job: `slurm JOB`, where JOB is a file, or `-` for standard input.

Runs on the compute node (Python >= 3.8, standard library only), outside the container if the node has such a
Python, else inside. The batch script started it.
"""

import json
import os
import sys
import time
from typing import Any, Dict

from gpuci_node import contract, processes
from gpuci_node.supervisor import allocation
from gpuci_node.supervisor.keeper import Keeper


def _read(path: str) -> Dict[str, Any]:
    with open(path, encoding="utf-8") if path != "-" else sys.stdin as stream:
        document: Dict[str, Any] = json.load(stream)
    return document


def _hold_lifeline() -> bool:
    """Make standard input the pipe that the batch script holds open: its end is the script's.

    Return whether the script is there: an end that came before us would not be heard of (poll(2)).
    """
    path = os.path.join(os.environ["GPUCI_SCRATCH"], "tmp", "lifeline")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.dup2(fd, 0)
    os.close(fd)
    os.unlink(path)
    try:
        return os.read(0, 1) != b""
    except BlockingIOError:
        return True


def main(path: str) -> int:
    """Run a job document in this allocation; the exit code is the verdict's."""
    here = allocation.Here(os.uname().nodename, sys.executable, time.time())
    job = allocation.complete(_read(path), os.environ, here)
    processes.hide()  # it has the nonce of the frames, and what it says to the starter is obeyed
    if not _hold_lifeline():
        return contract.EXIT_CODES["cancelled"]
    return Keeper(job).run()
