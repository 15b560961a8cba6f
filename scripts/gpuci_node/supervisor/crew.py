"""A run of pytest-xdist as the engine knows it: many units, one process, several tests at once. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List

from gpuci_node.slots import Slot
from gpuci_node.supervisor.process import LEAVE_SECONDS, Assignment, Process, Task


@dataclass
class GroupTask(Task):
    """The units of a root that one run of pytest-xdist has; `unit` asks for the slots of all."""

    members: List[Task] = field(default_factory=list)


@dataclass
class Flight:
    """A test that a worker of the run is at."""

    task: int
    seat: int
    limit: float
    deadline: float
    source: Dict[str, Any]  # file and line
    timed_out: str = ""


@dataclass
class Crew(Process):
    """The controller of a run with its workers; `seats` are what each of these may use."""

    seats: List[Slot] = field(default_factory=list)
    flights: Dict[str, Flight] = field(default_factory=dict)  # by node id

    longest: float = 0.0  # limit of a unit
    homes: Dict[str, Assignment] = field(default_factory=dict)  # by node id, what is left
    indexed: bool = False

    def _index(self) -> None:
        """Thousands of units: each is looked at once, when all is collected."""
        if not self.indexed and self.collected is not None:
            self.indexed = True
            for assignment in self.assignments.values():
                self.homes.update(dict.fromkeys(assignment.left, assignment))

    def settle(self, nodeid: str) -> None:
        """An item has its record, or goes elsewhere."""
        if not self.indexed:
            super().settle(nodeid)
            return
        assignment = self.homes.pop(nodeid, None)
        if assignment is not None:
            assignment.left.discard(nodeid)
            self.progressed = True

    @property
    def idle(self) -> bool:
        """Whether all that it was given is done."""
        return not self.homes if self.indexed else super().idle

    def reckon(self, now: float) -> None:
        """The earliest limit of a test counts; between tests that of a unit, at the end that to leave."""
        self._index()
        self.longest = self.longest or max(
            assignment.task.unit["timeout_seconds"] for assignment in self.assignments.values()
        )
        self.limit = LEAVE_SECONDS if self.idle else self.longest
        self.deadline = min((flight.deadline for flight in self.flights.values()), default=now + self.limit)

    def is_in_flight(self, nodeid: str) -> bool:
        """Whether this test began and has no end."""
        return nodeid in self.flights

    def seat_of(self, nodeid: str) -> Dict[str, Any]:
        """Worker and devices of a test, as records name them; those of the first worker if it never began."""
        flight = self.flights.get(nodeid)
        slot = self.seats[flight.seat if flight else 0]
        return {"slot": slot.name, "gpus": list(slot.gpus)}

    @property
    def over_limit(self) -> str:
        """Which limit it is over."""
        if self.collected is None:
            return "not collected within %g s" % self.limit
        if self.idle:
            return "the process did not end within %g s" % LEAVE_SECONDS
        return "no test of the run began or ended within %g s" % self.limit

    @property
    def busy(self) -> bool:
        """Whether a test was running."""
        return bool(self.flights)
