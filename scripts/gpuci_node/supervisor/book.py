"""The journal's records of collected files, tests and notes, and what is known from them. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from typing import Any, Dict, List, Optional, Set

from gpuci_node import contract
from gpuci_node.supervisor.effects import Effects, Exit, Write
from gpuci_node.supervisor.process import Assignment, Process

_FAILED_AFTER = (3, 4, 6)  # pytest.ExitCode: internal error, usage, too many warnings

Json = Dict[str, Any]


class Book:
    """Makes records; remembers the worst outcome of each test, and what each unit's file has collected."""

    def __init__(self) -> None:
        self.outcomes: Dict[str, str] = {}
        self._collected: Dict[str, Set[str]] = {}

    def collected(self, assignment: Assignment, record: Json) -> Effects:
        """What a unit's file has, if that is news."""
        unit, known = assignment.task.unit["id"], set(record["ids"])
        if known == self._collected.get(unit):
            return []
        self._collected[unit] = known
        fields = {key: record[key] for key in ("file", "ids", "marks", "deselected")}
        return [Write({"kind": "collected", "unit": unit, **fields})]

    def found_above(self, process: Process, assignment: Assignment, record: Json) -> Effects:
        """What failed or was skipped as a whole; above the file (a package, a conftest) it costs the file."""
        effects: Effects = []
        file = assignment.task.file
        for outcome, found in (("collection_error", record["errors"]), ("skipped", record["skipped"])):
            for entry in found:
                nodeid = entry["nodeid"] if entry["nodeid"].startswith(file) else file
                output = entry.get("output", "")
                effects.append(self.end(process, assignment, nodeid, outcome, entry["message"], output))
        return effects

    def end(
        self,
        process: Process,
        assignment: Assignment,
        nodeid: str,
        outcome: str,
        message: str,
        output: str = "",
    ) -> Write:
        """The end of a test, or of what has no test, as the supervisor tells it."""
        return self.end_with(process, assignment, nodeid, outcome, message=message, output=output)

    def end_with(
        self, process: Process, assignment: Assignment, nodeid: str, outcome: str, **fields: Any
    ) -> Write:
        """The end of a test; nothing of it is left for its process."""
        seat = process.seat_of(nodeid)
        known = [outcome, self.outcomes[nodeid]] if nodeid in self.outcomes else [outcome]
        self.outcomes[nodeid] = contract.worst_outcome(known)
        process.settle(nodeid)
        process.red = process.red or outcome in contract.RED_OUTCOMES
        record = {"kind": "end", "unit": assignment.task.unit["id"], "nodeid": nodeid, "outcome": outcome}
        return Write({"seconds": {}, "message": "", "output": "", **record, **seat, **fields})

    def ends(
        self, process: Process, assignment: Assignment, nodeids: List[str], message: str, output: str
    ) -> Effects:
        """Tests that are not finished, all for one reason."""
        return [self.end(process, assignment, nodeid, "not_finished", message, output) for nodeid in nodeids]

    def note(
        self,
        process: Process,
        topic: str,
        text: str,
        assignment: Optional[Assignment] = None,
        level: str = "info",
        **more: Any,
    ) -> Write:
        """Something worth knowing about a process, and the unit that it had."""
        unit = (assignment or process.newest).task.unit["id"]
        return Write({"kind": "note", "level": level, "topic": topic, "unit": unit, "text": text, **more})

    def bad_record(self, process: Process) -> Effects:
        """Say it once: there may be millions."""
        if process.bad_record:
            return []
        process.bad_record = True
        return [self.note(process, "bad_record", "it wrote records that make no sense", level="warning")]

    def after_the_last(self, process: Process, why: str, end: Exit) -> Effects:
        """A session that fails although no test did, as plain pytest would: a hook at its end says so."""
        errors = any(record["errors"] for record in (process.collected or {}).values())
        if end.signal is None and (end.code in _FAILED_AFTER or (end.code == 1 and not errors)):
            if process.red:
                return []
            assignment = process.newest
            text = "after its last test, with none failed: " + why
            return [self.end(process, assignment, assignment.task.file, "error", text, end.tail)]
        if end.signal is not None or end.code not in (0, 1, 5):
            return [self.note(process, "process_end", "after its last test: " + why, level="warning")]
        return []
