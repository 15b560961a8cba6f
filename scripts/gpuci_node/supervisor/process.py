"""Test processes as the engine knows them: their tasks, what is due, and why they ended. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Set

from gpuci_node.slots import Slot
from gpuci_node.supervisor.effects import Exit
from gpuci_node.tracebacks import conftest_error

LEAVE_SECONDS = 60.0  # for a test process to end after its last test: plugins import and write, CUDA unwinds

# What pytest means by its exit codes when it did not come to run a test (`pytest.ExitCode`).
_PYTEST_CODES = {3: " (pytest: internal error)", 4: " (pytest: wrong options or settings)"}


@dataclass
class Task:
    """A unit that waits for a process, or the items of it that are still due (`only`).

    `own`: in a process that collects nothing but its file.
    """

    unit: Dict[str, Any]
    gpus: int
    alone: bool
    sequence: int
    own: bool = False
    only: Optional[List[str]] = None
    mask_from_start: bool = False
    # a test that skipped for lack of GPUs may do so again: with all GPUs that is its outcome
    last_chance: bool = False

    @property
    def root(self) -> str:
        """The root of the unit."""
        return str(self.unit["root"])

    @property
    def file(self) -> str:
        """The file of the unit."""
        return str(self.unit["file"])


@dataclass
class Assignment:
    """A task that a process has, and what of it is due there (None: its file is not collected yet)."""

    task: Task
    due: Optional[List[str]] = None
    left: Set[str] = field(default_factory=set)  # due, without a record and without another place to go
    deferred: List[Dict[str, Any]] = field(default_factory=list)

    def collected(self, due: List[str]) -> None:
        """From now on these items are due here."""
        self.due, self.left = due, set(due)

    @property
    def remaining(self) -> List[str]:
        """The items that are left, in their order."""
        return [nodeid for nodeid in self.due or [] if nodeid in self.left]


@dataclass
class Living:
    """A living process and its limit. Times are the keeper's monotonic seconds."""

    limit: float
    deadline: float
    collecting: Optional[str] = None  # the file that it imports now
    timed_out: Optional[str] = None
    killed: bool = False
    interrupted: str = ""
    broken: str = ""

    def give(self, seconds: float, now: float) -> None:
        """A new limit, from now on."""
        self.limit, self.deadline = seconds, now + seconds

    @property
    def over_limit(self) -> str:
        """Which limit it is over."""
        return "not collected within %g s" % self.limit

    @property
    def busy(self) -> bool:
        """Whether it was in a test when it ended: then that is not pytest's doing."""
        return False


@dataclass
class Process(Living):
    """A process that runs tests."""

    id: str = ""
    slot: Slot = field(default_factory=lambda: Slot(0, ()))
    root: str = ""
    parent: Optional[str] = None
    files: List[str] = field(default_factory=list)  # that it collects
    shared: bool = False  # it may get more than one task
    mask_from_start: bool = False
    assignments: Dict[int, Assignment] = field(default_factory=dict)
    missing: Set[str] = field(default_factory=set)  # files whose records did not come yet
    gathered: Dict[str, Dict[str, Any]] = field(default_factory=dict)  # records of its files so far
    collected: Optional[Dict[str, Dict[str, Any]]] = None  # all of them
    progressed: bool = False
    in_flight: Optional[str] = None
    flying: int = 0  # the task of the test in flight
    source: Dict[str, Any] = field(default_factory=dict)  # file and line of the test in flight
    files_done: int = 0
    early_cuda: bool = False
    started: bool = False  # a test
    bad_record: bool = False
    red: bool = False  # it has a red outcome to show

    def settle(self, nodeid: str) -> None:
        """An item has its record, or goes elsewhere."""
        for assignment in self.assignments.values():
            if nodeid in assignment.left:
                assignment.left.remove(nodeid)
                self.progressed = True

    @property
    def first(self) -> Assignment:
        """The task that it was started with, or the oldest that it still has."""
        return next(iter(self.assignments.values()))

    def is_in_flight(self, nodeid: str) -> bool:
        """Whether this test began and has no end."""
        return nodeid == self.in_flight

    @property
    def newest(self) -> Assignment:
        """The task that it was given last."""
        return list(self.assignments.values())[-1]

    @property
    def flown(self) -> Assignment:
        """The task of the test in flight."""
        return self.assignments[self.flying]

    @property
    def unfinished(self) -> List[Assignment]:
        """The tasks of which something is left."""
        return [assignment for assignment in self.assignments.values() if assignment.left]

    @property
    def width(self) -> int:
        """How many GPUs it holds."""
        return len(self.slot.gpus)

    def drop_done(self) -> None:
        """Forget tasks that are done, but for the one whose last test is being torn down."""
        for sequence, assignment in list(self.assignments.items()):
            done = assignment.due is not None and not assignment.left and not assignment.deferred
            if done and sequence != self.flying:
                del self.assignments[sequence]

    @property
    def idle(self) -> bool:
        """Whether all that it was given is done."""
        return not any(assignment.due is None or assignment.left for assignment in self.assignments.values())

    def seat_of(self, nodeid: str) -> Dict[str, Any]:
        """Worker and devices of a test, as records name them."""
        return {"slot": self.slot.name, "gpus": list(self.slot.gpus)}

    @property
    def over_limit(self) -> str:
        """Which limit it is over."""
        if self.in_flight is not None:
            return "no end within its limit of %g s" % self.limit
        if self.first.due is None:
            return super().over_limit
        return "the process did not end within %g s" % LEAVE_SECONDS

    @property
    def busy(self) -> bool:
        """Whether a test was running."""
        return self.in_flight is not None

    @property
    def cut_short(self) -> bool:
        """Whether our kill, meant for the test before it, met the test in flight: that one runs again."""
        return self.killed and not self.timed_out


def cause(process: Living, end: Exit) -> str:
    """Why a process ended, in one line: the most telling fact first."""
    if process.broken or process.interrupted:
        return process.broken or process.interrupted
    if process.timed_out:
        return process.timed_out + ": killed"
    if end.signal is not None:
        return "killed by %s" % end.signal
    told = _told(end.tail) if end.code == 4 and not process.busy else ""
    if told:
        return told
    pytest_says = "" if process.busy else _PYTEST_CODES.get(end.code or 0, "")
    return "the test process left with exit code %s%s" % (end.code, pytest_says)


def _told(tail: str) -> str:
    """What pytest says, last, when it can't begin: a conftest.py that can't be loaded, or `ERROR: ...`."""
    lines = [line for line in tail.splitlines() if line.startswith("ERROR: ")]
    return conftest_error(tail) or ("pytest: " + lines[-1][len("ERROR: ") :] if lines else "")
