"""The node's scheduler: events of test processes in, commands and journal records out. Pure.

Runs on the compute node (Python >= 3.8, standard library only). A slot's process runs one unit after the
other, or one unit, or what is left of it: after a crash, or for items that need more GPUs than the unit was
planned with. Nothing is tried twice but a test that skipped for lack of GPUs, which runs once more with all.
"""

from typing import Any, Dict, List, Optional, Set

from gpuci_node import contract
from gpuci_node.slots import Slot, SlotTable
from gpuci_node.supervisor import limits, records, spec
from gpuci_node.supervisor.book import Book
from gpuci_node.supervisor.effects import Effects, Exit, Kill, Start, Tell, Write
from gpuci_node.supervisor.merges import Merges
from gpuci_node.supervisor.opening import no_pytest
from gpuci_node.supervisor.parents import Parents, Source
from gpuci_node.supervisor.process import LEAVE_SECONDS, Assignment, Living, Process, Task, cause
from gpuci_node.supervisor.waiting import Waiting

Json = Dict[str, Any]


class Engine:
    """Runs the units of a job document over the slots of its node."""

    def __init__(self, job: Json) -> None:
        self._job = job
        node = job["node"]
        self._slots = SlotTable(node["gpus"], node["workers_per_gpu"], node["cpu_workers"])
        self._roots = {root["path"]: root for root in job["roots"]}
        self._parents = Parents(job, self._slots.size)
        self._merges = Merges(job, self._slots.size)
        self._processes: Dict[str, Process] = {}
        self._sequence = 0
        self._started = 0
        self._stopping = False
        self._book = Book()
        self._queue = Waiting()
        self._changed = True  # the queue, the slots or the parents, since the queue last asked for slots
        self._selects = {unit["id"]: contract.indexed(unit["select"]) for unit in job["units"]}
        self._plan(job["units"])

    # -- scheduling ------------------------------------------------------------------------------

    def _plan(self, units: List[Json]) -> None:
        """Queue the units of the job."""
        for unit in units:
            own = unit["mode"] == "isolated"
            self._enqueue(self._task(unit, unit["gpus"], unit["mode"] == "serial", own=own))

    def _task(self, unit: Json, gpus: int, alone: bool, **more: Any) -> Task:
        self._sequence += 1
        return Task(unit, self._clip(gpus), alone, self._sequence, **more)

    def _enqueue(self, task: Task) -> None:
        self._queue.add(task)
        self._changed = True

    def _clip(self, gpus: int) -> int:
        return min(gpus, len(self._job["node"]["gpus"]))

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._tests_done and self._merges.finished

    @property
    def _tests_done(self) -> bool:
        return not self._processes and not self._queue and not self._parents.living

    @property
    def outcomes(self) -> Dict[str, str]:
        """The worst outcome of each node id so far."""
        return self._book.outcomes

    @property
    def running(self) -> List[str]:
        """Ids of the living processes."""
        return list(self._living)

    def width(self, process_id: str) -> int:
        """How many GPUs a living process holds."""
        return len(self._processes[process_id].slot.gpus) if process_id in self._processes else 0

    def fill(self, now: float) -> Effects:
        """Start what fits into the free slots, prepare what comes next, end parents that nobody needs."""
        effects: Effects = []
        while self._changed:
            self._changed = False
            effects += self._begin(now)
            effects += self._look_ahead(now) + self._retire(now)
            if self._tests_done:
                effects += self._merges.start(now)
        return effects

    def _begin(self, now: float) -> Effects:
        """Offer the free slots to the tasks that wait, in their order."""
        effects: Effects = []
        refused: Set[Any] = set()  # what does not fit now fits no better further down the queue
        reserved: List[Slot] = []  # for wide tasks that wait for their parent

        def begins(task: Task) -> Optional[bool]:
            if self._slots.full and not reserved:
                return None
            wish = (task.gpus, task.alone)
            source = self._source(task)
            if source is None:
                effects.extend(self._prepare(task.root, now, self._slots.size))
                if (task.gpus > 1 or task.alone) and wish not in refused:
                    slot = self._slots.take(*wish)
                    reserved.extend([slot] if slot else [])
                    refused.update(() if slot else (wish,))
            elif wish not in refused:
                if self._open(task, source, now, effects):
                    return True
                refused.add(wish)
            return False

        self._queue.take(begins)
        for slot in reserved:
            self._slots.release(slot)
        return effects

    def _source(self, task: Task) -> Optional[Source]:
        return self._parents.source(task)

    def _prepare(self, root: str, now: float, most: int) -> Effects:
        return self._parents.prepare(root, now) if self._parents.collecting < most else []

    def _look_ahead(self, now: float) -> Effects:
        """While all slots are taken, one root is prepared in advance."""
        unprepared = (root for root in self._queue.roots if not self._parents.is_prepared(root))
        root = next(unprepared, None) if self._slots.full else None
        return [] if root is None else self._prepare(root, now, 1)

    def _retire(self, now: float) -> Effects:
        roots = set(self._queue.roots)
        roots |= {process.root for process in self._processes.values()}
        return self._parents.retire(roots, bool(roots), now)

    def _open(self, task: Task, source: Source, now: float, effects: Effects) -> bool:
        """Give a task to a new process; False if no slot is free."""
        slot = self._slots.take(task.gpus, task.alone)
        if slot is None:
            return False
        effects += self._open_on(slot, task, source, now)
        return True

    def _open_on(self, slot: Slot, task: Task, source: Source, now: float) -> Effects:
        """Start a process for a task on a slot that was taken, unless nothing is to run."""
        root = self._parents.root(task.root)
        process = Process(task.unit["timeout_seconds"], now + task.unit["timeout_seconds"], slot=slot)
        process.root, process.shared, process.collected = task.root, source.shared, source.collected
        process.files, process.parent, process.missing = source.files, source.parent, set(source.files)
        process.mask_from_start = task.mask_from_start or (source.shared and root.masked)
        effects = self._give(process, task)
        if task.file in root.hung and not source.shared:
            why, tail = root.hung[task.file]
            effects = [self._book.end(process, process.first, task.file, "collection_error", why, tail)]
            process.first.collected([])
        if process.idle:
            self._slots.release(slot)
            return effects
        self._started += 1
        process.id = "%s.%d" % (slot.name, self._started)
        self._processes[process.id] = process
        first = spec.unit(self._job, task)
        document = spec.worker(self._job, self._roots[task.root], process, source.files, first)
        env = {} if source.parent else spec.environment(self._job, self._slots.size)
        env.update(spec.seat_environment(process))
        return [*effects, Start(process.id, document, env, source.parent)]

    def _give(self, process: Process, task: Task) -> Effects:
        """A process has this task from now on."""
        process.drop_done()
        assignment = process.assignments[task.sequence] = Assignment(task)
        return [] if process.collected is None else self._adopt(process, assignment)

    def _adopt(self, process: Process, assignment: Assignment) -> Effects:
        """The file of a task is collected: what is due there?"""
        task = assignment.task
        record = (process.collected or {}).get(task.file, _nothing(task.file))
        if process.shared and record["errors"]:
            assignment.collected([])
            self._parents.set_apart(task.root, task.file)
            self._enqueue(task)
            return []
        ids: List[str] = record["ids"]
        known = set(ids)
        select = self._selects[task.unit["id"]]
        chosen = ids if task.only is None else [nodeid for nodeid in task.only if nodeid in known]
        assignment.collected([nodeid for nodeid in chosen if contract.selects(select, nodeid)])
        effects = self._book.collected(assignment, record)
        for nodeid in set(task.only or ()) - known:
            text = "not collected when the rest of its file ran again"
            effects.append(self._book.end(process, assignment, nodeid, "not_finished", text))
        return effects + self._book.found_above(process, assignment, record)

    def _next_task(self, process: Process) -> Optional[Task]:
        """Take the task that a slot worker goes on with out of the queue; None: it is to leave."""
        most = self._job["settings"]["recycle_after_files"]
        if self._stopping or process.killed or not process.shared or (most and process.files_done >= most):
            return None
        return self._queue.take_next(
            process, lambda task: self._fits(process, task), lambda task: self._source(task) is not None
        )

    def _fits(self, process: Process, task: Task) -> bool:
        """Whether a slot worker that asks for more can run this task."""
        if task.own or task.root != process.root or task.file not in process.files:
            return False
        return task.file not in self._parents.root(task.root).apart

    # -- records of test processes ---------------------------------------------------------------

    def on_record(self, process_id: str, said: Any, now: float) -> Effects:
        """Take what a process said; what is no record is dropped (a test may have written it).

        Also what it says between our kill and its death: the tests that it ran by then are not to run twice.
        """
        process = self._living[process_id]
        if self._stopping or (process.killed and not isinstance(process, Process)):
            return []
        if process.timed_out and not process.busy and not process.killed:
            # The signal for the stacks may have ended a hang, too late.
            return self._kill(process_id)
        record = records.read(said)
        if not isinstance(process, Process):
            return [] if record is None else self._on_record_of_others(process_id, record, now)
        if record is None or record.get("task", process.first.task.sequence) not in process.assignments:
            return self._book.bad_record(process)
        effects: Effects = getattr(self, "_on_" + record["kind"])(process, record, now)
        return effects

    def _on_record_of_others(self, process_id: str, record: Json, now: float) -> Effects:
        self._changed = True
        if process_id in self._merges.living:
            return self._merges.on_record(process_id, record)
        return self._parents.on_record(process_id, record, now)

    def _between_tests(self, process: Process, now: float) -> None:
        process.in_flight = None
        process.give(LEAVE_SECONDS if process.idle else process.newest.task.unit["timeout_seconds"], now)

    def _on_collecting(self, process: Process, record: Json, now: float) -> Effects:
        if process.collected is not None:
            return self._book.bad_record(process)
        process.collecting = record["file"]
        process.give(process.first.task.unit["timeout_seconds"], now)
        return []

    def _on_collected(self, process: Process, record: Json, now: float) -> Effects:
        process.collecting = None
        if process.collected is not None or record["file"] not in process.missing:
            return self._book.bad_record(process)
        process.missing.discard(record["file"])
        process.gathered[record["file"]] = record
        if process.missing:
            return []
        process.collected = process.gathered
        effects: Effects = []
        for assignment in list(process.assignments.values()):
            effects += self._adopt(process, assignment)
        self._between_tests(process, now)
        return effects

    def _on_coverage(self, process: Process, record: Json, now: float) -> Effects:
        self._merges.measured(process.root)
        return []

    def _on_ready(self, process: Process, record: Json, now: float) -> Effects:
        return self._book.bad_record(process)

    def _on_unusable(self, process: Process, record: Json, now: float) -> Effects:
        return self._book.bad_record(process)

    def _on_next(self, process: Process, record: Json, now: float) -> Effects:
        """The teardown of the last test of its unit begins: what comes then?"""
        effects: Effects = []
        process.files_done += 1
        while process.collected is not None:
            task = self._next_task(process)
            if task is None:
                break
            effects += self._give(process, task)
            if process.newest.left:
                return [*effects, Tell(process.id, {"do": "run", "unit": spec.unit(self._job, task)})]
        return [*effects, Tell(process.id, {"do": "end"})]

    def _on_spent(self, process: Process, record: Json, now: float) -> Effects:
        return [self._book.note(process, "recycled", "a fresh process for its slot: " + record["text"])]

    def _on_start(self, process: Process, record: Json, now: float) -> Effects:
        nodeid, before = record["nodeid"], process.in_flight
        effects: Effects = []
        if before is not None and before != nodeid:
            # To run it again would be to try it twice.
            outcome, text = "not_finished", "the next test began without its result"
            if process.timed_out:
                outcome, text = "failed", process.timed_out
            effects.append(self._book.end(process, process.flown, before, outcome, text))
        process.timed_out = None
        process.give(record["timeout"], now)
        process.in_flight, process.flying, process.started = nodeid, record["task"], True
        process.source = {"file": record["file"], "line": record["line"]}
        start = {"kind": "start", "unit": process.flown.task.unit["id"], "nodeid": nodeid}
        return [*effects, Write({**start, "timeout": process.limit, **process.seat_of(nodeid)})]

    def _on_end(self, process: Process, record: Json, now: float) -> Effects:
        nodeid, assignment = record["nodeid"], process.assignments[record["task"]]
        if process.timed_out and nodeid == process.in_flight:
            # The signal for the stacks ended the hang: the process can go on.
            record = {**record, "outcome": "failed", "message": process.timed_out}
            process.timed_out = None
        fields = {
            key: value for key, value in record.items() if key not in ("kind", "task", "nodeid", "outcome")
        }
        effect = self._book.end_with(process, assignment, nodeid, record["outcome"], **fields)
        if process.in_flight in (None, nodeid):  # a skip of the next unit may come during its last teardown
            self._between_tests(process, now)
        return [effect]

    def _on_deferred(self, process: Process, record: Json, now: float) -> Effects:
        assignment, nodeid = process.assignments[record["task"]], record["nodeid"]
        task = assignment.task
        wider = self._clip(record["gpus"] or 0) > task.gpus or (record["alone"] and not task.alone)
        if process.is_in_flight(nodeid) or not wider:
            return self._book.bad_record(process)  # it would come back for ever
        process.settle(nodeid)
        assignment.deferred.append(record)
        needs = "the node alone" if record["alone"] else "%d GPUs" % record["gpus"]
        text = "mark %s needs %s" % (record["because"], needs)
        numbers = {"planned": assignment.task.gpus, "gpus": record["gpus"], "alone": record["alone"]}
        return [self._book.note(process, "need_differs", text, assignment, nodeid=nodeid, **numbers)]

    def _on_gpu_skip(self, process: Process, record: Json, now: float) -> Effects:
        nodeid, assignment = record["nodeid"], process.assignments[record["task"]]
        if assignment.task.last_chance or process.timed_out:
            return self._on_end(process, {**record, "outcome": "skipped"}, now)
        if not process.is_in_flight(nodeid):
            return self._book.bad_record(process)
        process.settle(nodeid)
        everything = len(self._job["node"]["gpus"])
        assignment.deferred.append({"nodeid": nodeid, "gpus": everything, "alone": False, "last": True})
        self._between_tests(process, now)
        text = "skipped on %d of %d GPUs (%s): runs again with all"
        text %= (len(process.slot.gpus), everything, record["message"])
        return [self._book.note(process, "gpu_skip", text, assignment, nodeid=nodeid)]

    def _on_beyond_node(self, process: Process, record: Json, now: float) -> Effects:
        text = "mark %s needs %d GPUs, the node has %d"
        text %= (record["because"], record["gpus"], len(self._job["node"]["gpus"]))
        assignment = process.assignments[record["task"]]
        return [
            self._book.note(
                process, "wider_than_node", text, assignment, level="warning", nodeid=record["nodeid"]
            )
        ]

    def _on_early_cuda(self, process: Process, record: Json, now: float) -> Effects:
        if process.mask_from_start or process.started:
            return self._book.bad_record(process)
        process.early_cuda = True
        text = "CUDA was initialised while collecting: a new process, masked from its start"
        return [self._book.note(process, "gpu_isolation", text)]

    def _on_interrupted(self, process: Process, record: Json, now: float) -> Effects:
        process.interrupted = record["text"]
        process.deadline = now + LEAVE_SECONDS
        return []

    def _on_broken(self, process: Process, record: Json, now: float) -> Effects:
        process.broken = record["text"]
        # On a cluster nobody looked before whether the Python that was named has pytest.
        on_cluster = self._job.get("link") is not None
        return [no_pytest(process.broken)] if on_cluster and not self.outcomes else []

    def _on_note(self, process: Process, record: Json, now: float) -> Effects:
        return [self._book.note(process, record["topic"], record["text"], level=record["level"])]

    # -- the end of test processes ---------------------------------------------------------------

    def on_exit(self, process_id: str, end: Exit, now: float) -> Effects:
        """A process is gone: account for the test in flight and for what was still due."""
        self._changed = True
        if process_id in self._parents.living:
            effects = self._parents.on_exit(process_id, end)
            return [] if self._stopping else effects
        if process_id in self._merges.living:
            return self._merges.on_exit(process_id, end)
        process = self._processes.pop(process_id)
        effects = []
        again: List[Task] = []
        if end.left_over:
            text = "processes left behind and killed: %d" % end.left_over
            effects.append(self._book.note(process, "left_over", text, level="warning"))
        if not self._stopping:
            effects += self._account(process, end, again)
        return effects + self._go_on(process, again, now)

    def _go_on(self, process: Process, again: List[Task], now: float) -> Effects:
        """What is left of a file goes on at once in the same slot, where that is possible."""
        source = self._source(again[0]) if again else None
        same = source is not None and again[0].gpus == process.width
        for task in again[1:] if same else again:
            self._enqueue(task)
        if same and source is not None:
            return self._open_on(process.slot, again[0], source, now)
        self._slots.release(process.slot)
        return []

    def _account(self, process: Process, end: Exit, again: List[Task]) -> Effects:
        """The records of a process that ended; what is to run again is added to `again`."""
        if not end.born:
            again += [assignment.task for assignment in process.assignments.values()]
            return self._parents.refused(process.parent)
        why = cause(process, end)
        for assignment in process.assignments.values():
            self._requeue_deferred(assignment)
        if process.collected is None:
            return self._died_collecting(process, why, end, again)
        if process.early_cuda:
            self._parents.root(process.root).masked = process.shared
            again += [self._rest(process, each, mask_from_start=True) for each in process.unfinished]
            return []
        effects: Effects = []
        if process.in_flight is not None and not process.cut_short:
            crash = {"message": why, "output": end.tail, **process.source}
            effects.append(self._book.end_with(process, process.flown, process.in_flight, "failed", **crash))
        return effects + self._continue(process, why, end, again)

    def _died_collecting(self, process: Process, why: str, end: Exit, again: List[Task]) -> Effects:
        task = process.first.task
        if process.shared:
            hung = (why, end.tail) if process.timed_out else None
            self._parents.lost(process.root, process.collecting, hung)
            again.append(task)
            return []
        return [self._book.end(process, process.first, task.file, "collection_error", why, end.tail)]

    def _continue(self, process: Process, why: str, end: Exit, again: List[Task]) -> Effects:
        unfinished = process.unfinished
        if not unfinished:
            return [] if process.busy else self._book.after_the_last(process, why, end)
        if process.progressed:
            again += [self._rest(process, each) for each in unfinished]
            return []
        # Without progress a further process would end in the same way.
        again += [each.task for each in unfinished[1:]]
        return self._book.ends(process, unfinished[0], unfinished[0].remaining, why, end.tail)

    def _rest(self, process: Process, assignment: Assignment, mask_from_start: bool = False) -> Task:
        """A task for what is left of another."""
        task = assignment.task
        fields = {"own": task.own, "only": assignment.remaining, "last_chance": task.last_chance}
        masked = mask_from_start or task.mask_from_start
        return self._task(task.unit, task.gpus, task.alone, mask_from_start=masked, **fields)

    def _requeue_deferred(self, assignment: Assignment) -> None:
        task = assignment.task
        groups: Dict[Any, List[str]] = {}
        for record in assignment.deferred:
            width = self._clip(record["gpus"] or task.gpus)
            group = (width, record["alone"], record.get("last", False))
            groups.setdefault(group, []).append(record["nodeid"])
        for (gpus, alone, last), only in groups.items():
            self._enqueue(self._task(task.unit, gpus, alone, own=task.own, only=only, last_chance=last))

    # -- deadlines and stopping --------------------------------------------------------------------

    @property
    def _living(self) -> Dict[str, Living]:
        return {**self._processes, **self._parents.living, **self._merges.living}

    def next_deadline(self) -> Optional[float]:
        """When `on_deadline` is due next, or None."""
        return limits.next_deadline(self._living)

    def on_deadline(self, now: float) -> Effects:
        """Processes past their deadline: ask for their stacks, a moment later kill them."""
        return limits.enforce(self._living, now)

    def _kill(self, process_id: str) -> Effects:
        self._living[process_id].killed = True
        return [Kill(process_id)]

    def stop(self) -> None:
        """No new processes, no further records: what is due stays without one."""
        self._stopping = True
        self._queue.clear()
        self._merges.stop()


def _nothing(file: str) -> Json:
    """What a file is that a session did not come across: ignored by a conftest, or no test file."""
    return {"file": file, "ids": [], "marks": {}, "deselected": [], "errors": [], "skipped": []}
