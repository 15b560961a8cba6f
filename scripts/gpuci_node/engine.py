"""The node's scheduler: events of test processes in, commands and journal records out. Pure.

Runs on the compute node (Python >= 3.8, standard library only). One fresh process serves one unit, or
what is left of it: after a crash, or for items that need more GPUs than the unit was planned with.
Nothing is tried twice but a test that skipped for lack of GPUs, which runs once more with all of them.
"""

import bisect
from typing import Any, Dict, List, Optional, Set, Tuple

from gpuci_node import contract, records, spec
from gpuci_node.effects import Dump, Effects, Exit, Kill, Start, Write
from gpuci_node.process import LEAVE_SECONDS, Process, Task, cause, limit_text
from gpuci_node.slots import Slot, SlotTable, order_key

DUMP_SECONDS = 0.5  # for faulthandler to write the stacks of a test process before it is killed


class Engine:
    """Runs the units of a job document over the slots of its node."""

    def __init__(self, job: Dict[str, Any]) -> None:
        self._job = job
        node = job["node"]
        self._slots = SlotTable(node["gpus"], node["workers_per_gpu"], node["cpu_workers"])
        self._roots = {root["path"]: root for root in job["roots"]}
        self._processes: Dict[str, Process] = {}
        self._sequence = 0
        self._started = 0
        self._collected: Dict[str, Set[str]] = {}
        self._stopping = False
        self.outcomes: Dict[str, str] = {}
        self._queue: List[Tuple[Any, Task]] = []  # in the order in which they ask for slots
        self._changed = True  # the queue or the slots, since the queue last asked for slots
        self._selects = {unit["id"]: contract.indexed(unit["select"]) for unit in job["units"]}
        for unit in job["units"]:
            self._enqueue(unit, unit["gpus"], unit["mode"] == "serial")

    # -- scheduling ------------------------------------------------------------------------------

    def _enqueue(self, unit: Dict[str, Any], gpus: int, alone: bool, **more: Any) -> None:
        self._sequence += 1
        task = Task(unit, self._clip(gpus), alone, self._sequence, **more)
        bisect.insort(
            self._queue, (order_key(task.gpus, alone, unit["expected_seconds"], task.sequence), task)
        )
        self._changed = True

    def _clip(self, gpus: int) -> int:
        return min(gpus, len(self._job["node"]["gpus"]))

    @property
    def finished(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return not self._processes and not self._queue

    @property
    def running(self) -> List[str]:
        """Ids of the living test processes."""
        return list(self._processes)

    def width(self, process_id: str) -> int:
        """How many GPUs a living test process holds."""
        return len(self._processes[process_id].slot.gpus)

    def fill(self, now: float) -> Effects:
        """Start what fits into the free slots."""
        effects: Effects = []
        if not self._changed:
            return effects
        self._changed = False
        waiting = []
        refused = set()  # what does not fit now fits no better further down the queue
        for place, (key, task) in enumerate(self._queue):
            if self._slots.full:
                waiting += self._queue[place:]
                break
            wish = (task.gpus, task.alone)
            slot = None if wish in refused else self._slots.take(*wish)
            if slot is None:
                refused.add(wish)
                waiting.append((key, task))
            else:
                effects.append(self._start(task, slot, now))
        self._queue = waiting
        return effects

    def _start(self, task: Task, slot: Slot, now: float) -> Start:
        self._started += 1
        process_id = "%s.%d" % (task.unit["id"], self._started)
        process = Process(task, slot, limit=task.unit["timeout_seconds"])
        process.deadline = now + process.limit
        self._processes[process_id] = process
        root = self._roots[task.unit["root"]]
        env = spec.environment(self._job, process, self._slots.size)
        return Start(process_id, spec.worker(self._job, root, process), env)

    # -- records of test processes ---------------------------------------------------------------

    def on_record(self, process_id: str, said: Any, now: float) -> Effects:
        """Take what a test process said; what is no record is dropped (a test may have written it)."""
        process = self._processes[process_id]
        if self._stopping:
            return []
        if process.timed_out:
            # The signal for the stacks may have ended a hang: too late, and nothing else may run there.
            return self._kill(process_id)
        record = records.read(said)
        if record is None:
            return self._bad_record(process)
        effects: Effects = getattr(self, "_on_" + record["kind"])(process, record, now)
        return effects

    def _bad_record(self, process: Process) -> Effects:
        """Say it once: there may be millions."""
        if process.bad_record:
            return []
        process.bad_record = True
        return [self._note(process, "bad_record", "it wrote records that make no sense", level="warning")]

    def _progress(self, process: Process, now: float, limit: float) -> None:
        process.in_flight = None
        process.limit = limit
        process.deadline = now + limit

    def _between_tests(self, process: Process, now: float) -> None:
        limit = process.task.unit["timeout_seconds"] if process.left else LEAVE_SECONDS
        self._progress(process, now, limit)

    def _on_collected(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        unit, task = process.task.unit, process.task
        ids: List[str] = record["ids"]
        known = set(ids)
        select = self._selects[unit["id"]]
        chosen = ids if task.only is None else [nodeid for nodeid in task.only if nodeid in known]
        process.collected([nodeid for nodeid in chosen if contract.selects(select, nodeid)])
        self._between_tests(process, now)
        effects: Effects = []
        if known != self._collected.get(unit["id"]):
            self._collected[unit["id"]] = known
            keys = ("file", "ids", "marks", "deselected")
            effects.append(
                Write({"kind": "collected", "unit": unit["id"], **{key: record[key] for key in keys}})
            )
        for nodeid in set(task.only or ()) - known:
            effects.append(
                self._end(
                    process, nodeid, "not_finished", "not collected when the rest of its file ran again"
                )
            )
        for outcome, found in (("collection_error", record["errors"]), ("skipped", record["skipped"])):
            for entry in found:
                # What fails above the file (a package, a folder's conftest.py) costs the file.
                inside = entry["nodeid"].startswith(unit["file"])
                nodeid = entry["nodeid"] if inside else unit["file"]
                effects.append(self._end(process, nodeid, outcome, entry["message"], entry.get("output", "")))
        return effects

    def _on_start(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        nodeid, before = record["nodeid"], process.in_flight
        effects: Effects = []
        if before is not None and before != nodeid:
            # To run it again would be to try it twice.
            effects.append(
                self._end(process, before, "not_finished", "the next test began without its result")
            )
        self._progress(process, now, record["timeout"])
        process.in_flight = nodeid
        process.source = {"file": record["file"], "line": record["line"]}
        start = {"kind": "start", "unit": process.task.unit["id"], "nodeid": nodeid, "timeout": process.limit}
        return [*effects, Write({**start, **process.seat})]

    def _on_end(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        nodeid = record["nodeid"]
        fields = {key: value for key, value in record.items() if key not in ("kind", "nodeid", "outcome")}
        effect = self._record_end(process, nodeid, record["outcome"], **fields)
        self._between_tests(process, now)
        return [effect]

    def _on_deferred(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        process.settle(record["nodeid"])
        process.deferred.append(record)
        text = "mark %s needs %s" % (
            record["because"],
            "the node alone" if record["alone"] else "%d GPUs" % record["gpus"],
        )
        return [
            self._note(
                process,
                "need_differs",
                text,
                nodeid=record["nodeid"],
                planned=process.task.gpus,
                gpus=record["gpus"],
            )
        ]

    def _on_gpu_skip(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        nodeid = record["nodeid"]
        if process.task.last_chance:
            return self._on_end(process, {**record, "outcome": "skipped"}, now)
        process.settle(nodeid)
        process.deferred.append(
            {"nodeid": nodeid, "gpus": len(self._job["node"]["gpus"]), "alone": False, "last": True}
        )
        self._between_tests(process, now)
        text = "skipped on %d of %d GPUs (%s): runs again with all"
        text %= (len(process.slot.gpus), len(self._job["node"]["gpus"]), record["message"])
        return [self._note(process, "gpu_skip", text, nodeid=nodeid)]

    def _on_beyond_node(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        text = "mark %s needs %d GPUs, the node has %d" % (
            record["because"],
            record["gpus"],
            len(self._job["node"]["gpus"]),
        )
        return [self._note(process, "wider_than_node", text, level="warning", nodeid=record["nodeid"])]

    def _on_early_cuda(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        process.early_cuda = True
        return [
            self._note(
                process,
                "gpu_isolation",
                "CUDA was initialised while collecting: a new process, masked from its start",
            )
        ]

    def _on_interrupted(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        process.interrupted = record["text"]
        process.deadline = now + LEAVE_SECONDS
        return []

    def _on_broken(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        process.broken = record["text"]
        return []

    def _on_note(self, process: Process, record: Dict[str, Any], now: float) -> Effects:
        return [self._note(process, record["topic"], record["text"], level=record["level"])]

    # -- the end of test processes ---------------------------------------------------------------

    def on_exit(self, process_id: str, end: Exit, now: float) -> Effects:
        """A test process is gone: account for the test in flight and for what was still due."""
        process = self._processes.pop(process_id)
        self._slots.release(process.slot)
        self._changed = True
        effects: Effects = []
        if end.left_over:
            text = "processes left behind and killed: %d" % end.left_over
            effects.append(self._note(process, "left_over", text, level="warning"))
        if not self._stopping:
            effects += self._account(process, end)
        return effects

    def _account(self, process: Process, end: Exit) -> Effects:
        why = cause(process, end)
        self._requeue_deferred(process)
        if process.due is None:
            return [self._end(process, process.task.unit["file"], "collection_error", why, end.tail)]
        if process.early_cuda:
            self._again(process, process.remaining, mask_from_start=True)
            return []
        effects: Effects = []
        if process.in_flight is not None:
            crash = {"message": why, "output": end.tail, **process.source}
            effects.append(self._record_end(process, process.in_flight, "failed", **crash))
        effects += self._continue(process, why, end)
        return effects

    def _continue(self, process: Process, why: str, end: Exit) -> Effects:
        remaining = process.remaining
        if not remaining:
            badly = end.signal is not None or end.code not in (0, 1, 5)
            if badly and process.in_flight is None:
                return [self._note(process, "process_end", "after its last test: " + why, level="warning")]
            return []
        if process.progressed:
            self._again(process, remaining, mask_from_start=process.task.mask_from_start)
            return []
        # Without progress a further process would end in the same way.
        return [self._end(process, nodeid, "not_finished", why, end.tail) for nodeid in remaining]

    def _again(self, process: Process, only: List[str], mask_from_start: bool) -> None:
        task = process.task
        self._enqueue(
            task.unit,
            task.gpus,
            task.alone,
            only=only,
            mask_from_start=mask_from_start,
            last_chance=task.last_chance,
        )

    def _requeue_deferred(self, process: Process) -> None:
        groups: Dict[Any, List[str]] = {}
        for record in process.deferred:
            width = self._clip(record["gpus"] or process.task.gpus)
            groups.setdefault((width, record["alone"], record.get("last", False)), []).append(
                record["nodeid"]
            )
        for (gpus, alone, last), only in groups.items():
            self._enqueue(process.task.unit, gpus, alone, only=only, last_chance=last)

    # -- deadlines and stopping --------------------------------------------------------------------

    def next_deadline(self) -> Optional[float]:
        """When `on_deadline` is due next, or None."""
        return min(
            (process.deadline for process in self._processes.values() if not process.killed), default=None
        )

    def on_deadline(self, now: float) -> Effects:
        """Processes past their deadline: ask for their stacks, a moment later kill them."""
        effects: Effects = []
        for process_id, process in self._processes.items():
            if process.killed or now < process.deadline:
                continue
            if process.timed_out:
                effects += self._kill(process_id)
            else:
                process.timed_out = limit_text(process)
                process.deadline = now + DUMP_SECONDS
                effects.append(Dump(process_id))
        return effects

    def _kill(self, process_id: str) -> Effects:
        self._processes[process_id].killed = True
        return [Kill(process_id)]

    def stop(self) -> None:
        """No new processes, no further records: what is due stays without one."""
        self._stopping = True
        self._queue = []

    # -- records -----------------------------------------------------------------------------------

    def _end(self, process: Process, nodeid: str, outcome: str, message: str, output: str = "") -> Write:
        return self._record_end(process, nodeid, outcome, message=message, output=output)

    def _record_end(self, process: Process, nodeid: str, outcome: str, **fields: Any) -> Write:
        known = [outcome, self.outcomes[nodeid]] if nodeid in self.outcomes else [outcome]
        self.outcomes[nodeid] = contract.worst_outcome(known)
        process.settle(nodeid)
        record = {
            "kind": "end",
            "unit": process.task.unit["id"],
            "nodeid": nodeid,
            "outcome": outcome,
            **process.seat,
        }
        return Write({"seconds": {}, "message": "", "output": "", **record, **fields})

    def _note(self, process: Process, topic: str, text: str, level: str = "info", **more: Any) -> Write:
        return Write(
            {
                "kind": "note",
                "level": level,
                "topic": topic,
                "unit": process.task.unit["id"],
                "text": text,
                **more,
            }
        )
