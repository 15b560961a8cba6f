"""A test process as the engine knows it: its task, what is due, and why it ended. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Set

from gpuci_node.effects import Exit
from gpuci_node.slots import Slot

LEAVE_SECONDS = 60.0  # for a test process to end after its last test: plugins import and write, CUDA unwinds

# What pytest means by its exit codes when it did not come to run a test (`pytest.ExitCode`).
_PYTEST_CODES = {3: " (pytest: internal error)", 4: " (pytest: wrong options or settings)"}


@dataclass
class Task:
    """A process to be started: a unit, or the items of it that are still due (`only`)."""

    unit: Dict[str, Any]
    gpus: int
    alone: bool
    sequence: int
    only: Optional[List[str]] = None
    mask_from_start: bool = False
    # a test that skipped for lack of GPUs may do so again: with all GPUs that is its outcome
    last_chance: bool = False


@dataclass
class Process:
    """A living test process and what is known of it. Times are the keeper's monotonic seconds."""

    task: Task
    slot: Slot
    due: Optional[List[str]] = None
    left: Set[str] = field(default_factory=set)  # due, without a record and without another place to go
    progressed: bool = False
    in_flight: Optional[str] = None
    source: Dict[str, Any] = field(default_factory=dict)  # file and line of the test in flight
    limit: float = 0.0
    deadline: float = 0.0
    timed_out: Optional[str] = None
    killed: bool = False
    interrupted: str = ""
    early_cuda: bool = False
    broken: str = ""
    bad_record: bool = False
    deferred: List[Dict[str, Any]] = field(default_factory=list)

    def collected(self, due: List[str]) -> None:
        """From now on these items are due here."""
        self.due, self.left = due, set(due)

    def settle(self, nodeid: str) -> None:
        """An item has its record, or goes elsewhere."""
        if nodeid in self.left:
            self.left.remove(nodeid)
            self.progressed = True

    @property
    def remaining(self) -> List[str]:
        """The items that are left, in their order."""
        return [nodeid for nodeid in self.due or [] if nodeid in self.left]

    @property
    def seat(self) -> Dict[str, Any]:
        """Worker and devices, as records name them."""
        return {"slot": self.slot.name, "gpus": list(self.slot.gpus)}


def limit_text(process: Process) -> str:
    """Which limit a process is over."""
    if process.in_flight is not None:
        return "no end within its limit of %g s" % process.limit
    if process.due is None:
        return "not collected within %g s" % process.limit
    return "the process did not end within %g s" % LEAVE_SECONDS


def cause(process: Process, end: Exit) -> str:
    """Why a process ended, in one line: the most telling fact first."""
    if process.broken or process.interrupted:
        return process.broken or process.interrupted
    if process.timed_out:
        return process.timed_out + ": killed"
    if end.signal is not None:
        return "killed by %s" % end.signal
    if end.code == 4 and _pytest_error(end.tail):
        return "pytest: " + _pytest_error(end.tail)
    pytest_says = "" if process.in_flight else _PYTEST_CODES.get(end.code or 0, "")
    return "the test process left with exit code %s%s" % (end.code, pytest_says)


def _pytest_error(tail: str) -> str:
    """What pytest says of arguments that it can't use: its last line `ERROR: ...`."""
    lines = [line for line in tail.splitlines() if line.startswith("ERROR: ")]
    return lines[-1][len("ERROR: ") :] if lines else ""
