"""`engine: xdist`: the scheduler that leaves the narrow units of each root to one run of pytest-xdist. Pure.

Runs on the compute node (Python >= 3.8, standard library only). Such a run holds all slots of the node, as a
serial unit does. Wide, serial and isolated units, and tests that turn out to need more GPUs, run as ever.
What is due when the run ends is not finished: pytest-xdist decided that, and nothing is tried twice.
"""

from dataclasses import replace
from typing import Any, Dict, List

from gpuci_node.slots import Slot
from gpuci_node.supervisor import spec
from gpuci_node.supervisor.crew import Crew, Flight, GroupTask
from gpuci_node.supervisor.effects import Effects, Exit, Start, Stop, Tell, Write
from gpuci_node.supervisor.engine import Engine
from gpuci_node.supervisor.limits import DUMP_SECONDS
from gpuci_node.supervisor.parents import Parents, Source
from gpuci_node.supervisor.process import Assignment, Process, Task, cause

# For the controller to have one worker killed and to tell of it; else all of them are killed.
_OBEY_SECONDS = 10.0

Json = Dict[str, Any]


def _is_shared(unit: Json) -> bool:
    """Whether a unit is pytest-xdist's."""
    return unit["mode"] in ("normal", "cpu") and unit["gpus"] <= 1


class XdistEngine(Engine):
    """Runs the units of a job document, the narrow ones by pytest-xdist."""

    def __init__(self, job: Json) -> None:
        super().__init__(job)
        others = [unit for unit in job["units"] if not _is_shared(unit)]
        self._parents = Parents({**job, "units": others}, self._slots.size)

    def _plan(self, units: List[Json]) -> None:
        """Queue the units: a group per root of those that are pytest-xdist's."""
        groups: Dict[str, List[Json]] = {}
        for unit in units:
            if _is_shared(unit):
                groups.setdefault(unit["root"], []).append(unit)
        super()._plan([unit for unit in units if not _is_shared(unit)])
        for members in groups.values():
            self._enqueue(self._group([self._task(unit, unit["gpus"], False) for unit in members]))

    def _group(self, members: List[Task], mask_from_start: bool = False) -> GroupTask:
        unit = {
            **members[0].unit,
            "expected_seconds": sum(member.unit["expected_seconds"] for member in members),
            "timeout_seconds": max(member.unit["timeout_seconds"] for member in members),
        }
        self._sequence += 1
        everything = len(self._job["node"]["gpus"])
        fields: Json = {"members": members, "mask_from_start": mask_from_start}
        return GroupTask(unit, everything, True, self._sequence, **fields)

    def _source(self, task: Task) -> Any:
        """A run of pytest-xdist starts from nothing, all others as ever."""
        if isinstance(task, GroupTask):
            return Source(None, sorted({member.file for member in task.members}))
        return super()._source(task)

    def _open_on(self, slot: Slot, task: Task, source: Source, now: float) -> Effects:
        if not isinstance(task, GroupTask):
            return super()._open_on(slot, task, source, now)
        limit = task.unit["timeout_seconds"]
        crew = Crew(limit, now + limit, slot=slot, root=task.root, files=source.files)
        crew.missing = set(source.files)
        crew.mask_from_start, crew.seats = task.mask_from_start, self._seats()
        crew.assignments = {member.sequence: Assignment(member) for member in task.members}
        self._started += 1
        crew.id = "xdist.%d" % self._started
        self._processes[crew.id] = crew
        document = spec.xdist(self._job, self._roots[task.root], crew)
        return [Start(crew.id, document, spec.xdist_environment(self._job), None)]

    def _seats(self) -> List[Slot]:
        """What each worker may use: the slots of the node, one by one."""
        gpus = self._job["node"]["gpus"]
        return [Slot(index, (gpus[index % len(gpus)],) if gpus else ()) for index in range(self._slots.size)]

    # -- what the controller says --------------------------------------------------------------------

    def _between_tests(self, process: Process, now: float) -> None:
        if isinstance(process, Crew):
            process.reckon(now)
        else:
            super()._between_tests(process, now)

    def _on_start(self, process: Process, record: Json, now: float) -> Effects:
        if not isinstance(process, Crew):
            return super()._on_start(process, record, now)
        if record.get("seat", len(process.seats)) >= len(process.seats):
            return self._book.bad_record(process)
        nodeid, limit = record["nodeid"], record["timeout"]
        place = {"file": record["file"], "line": record["line"]}
        process.flights[nodeid] = Flight(record["task"], record["seat"], limit, now + limit, place)
        process.reckon(now)
        unit = process.assignments[record["task"]].task.unit["id"]
        start = {"kind": "start", "unit": unit, "nodeid": nodeid, "timeout": limit}
        return [Write({**start, **process.seat_of(nodeid)})]

    def _on_end(self, process: Process, record: Json, now: float) -> Effects:
        flight = self._flight(process, record)
        if flight is not None and flight.timed_out:
            # The signal for the stacks may have ended a hang: too late.
            record = {**record, "outcome": "failed", "message": flight.timed_out + ": killed"}
        effects = super()._on_end(process, record, now)
        self._land(process, record["nodeid"], now)
        return effects

    def _on_gpu_skip(self, process: Process, record: Json, now: float) -> Effects:
        effects = super()._on_gpu_skip(process, record, now)
        self._land(process, record["nodeid"], now)
        return effects

    def _flight(self, process: Process, record: Json) -> Any:
        return process.flights.get(record["nodeid"]) if isinstance(process, Crew) else None

    def _land(self, process: Process, nodeid: str, now: float) -> None:
        if isinstance(process, Crew):
            process.flights.pop(nodeid, None)
            process.reckon(now)

    def _on_unusable(self, process: Process, record: Json, now: float) -> Effects:
        """There is no pytest-xdist: a setting asks for what can't be, so the job ends."""
        if not isinstance(process, Crew) or process.collected is not None:
            return self._book.bad_record(process)
        return [Stop("config_error", record["text"])]

    # -- limits ----------------------------------------------------------------------------------

    def on_deadline(self, now: float) -> Effects:
        """Of a run of pytest-xdist one worker is killed, where its controller can still do that."""
        effects: Effects = []
        for process in self._processes.values():
            if isinstance(process, Crew) and not process.killed and not process.timed_out:
                effects += self._over_limits(process, now)
        return effects + super().on_deadline(now)

    def _over_limits(self, crew: Crew, now: float) -> Effects:
        effects: Effects = []
        for nodeid, flight in crew.flights.items():
            if now < flight.deadline or flight.timed_out:
                continue  # for the second time: the whole run is over its limit
            flight.timed_out = "no end within its limit of %g s" % flight.limit
            flight.deadline = now + DUMP_SECONDS + _OBEY_SECONDS
            unit = {"seat": flight.seat, "nodeid": nodeid, "seconds": DUMP_SECONDS}
            effects.append(Tell(crew.id, {"do": "kill", "unit": unit}))
        if effects:
            crew.reckon(now)
        return effects

    # -- the end -----------------------------------------------------------------------------------

    def _account(self, process: Process, end: Exit, again: List[Task]) -> Effects:
        if not isinstance(process, Crew) or not end.born:
            return super()._account(process, end, again)
        why = cause(process, end)
        for assignment in process.assignments.values():
            self._requeue_deferred(assignment)
        if process.early_cuda and not process.mask_from_start:
            members = [self._rest(process, each) for each in process.unfinished]
            if members:
                self._enqueue(self._group(members, mask_from_start=True))
            return []
        if process.collected is None:
            return self._uncollected(process, why, end, again)
        return self._not_finished(process, why, end)

    def _uncollected(self, crew: Crew, why: str, end: Exit, again: List[Task]) -> Effects:
        """A file that ends the run while it is collected runs alone; what happens there counts."""
        tasks = [assignment.task for assignment in crew.assignments.values()]
        others = [task for task in tasks if task.file != crew.collecting]
        if 0 < len(others) < len(tasks):
            text = "%s runs in a process of its own: %s" % (crew.collecting, why)
            again += [replace(task, own=True) for task in tasks if task not in others]
            self._enqueue(self._group(others, crew.mask_from_start))
            return [self._book.note(crew, "own_process", text)]
        return [
            self._book.end(crew, each, each.task.file, "collection_error", why, end.tail)
            for each in crew.assignments.values()
        ]

    def _not_finished(self, crew: Crew, why: str, end: Exit) -> Effects:
        effects: Effects = []
        for nodeid, flight in crew.flights.items():
            outcome, text = ("failed", flight.timed_out + ": killed") if flight.timed_out else ("", why)
            crash: Json = {"message": text, "output": end.tail, **flight.source}
            assignment = crew.assignments[flight.task]
            effects.append(self._book.end_with(crew, assignment, nodeid, outcome or "not_finished", **crash))
        for each in crew.unfinished:
            text = "pytest-xdist ended before it: " + why
            effects += [
                self._book.end(crew, each, nodeid, "not_finished", text, end.tail)
                for nodeid in each.remaining
            ]
        badly = end.signal is not None or end.code not in (0, 1, 5)
        if badly and not effects:
            text = "pytest-xdist, after its last test: " + why
            return [self._book.note(crew, "process_end", text, level="warning")]
        return effects
