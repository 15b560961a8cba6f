"""The coverage data of a job: when all else is done, one process per root merges them. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

from dataclasses import dataclass
from typing import Any, Dict, List

from gpuci_node import contract
from gpuci_node.supervisor import spec
from gpuci_node.supervisor.effects import Effects, Exit, Start, Write
from gpuci_node.supervisor.process import Living, cause

MERGE_SECONDS = 600.0

Json = Dict[str, Any]


@dataclass
class Merge(Living):
    """A living process that merges the data of a root."""

    root: str = ""

    @property
    def over_limit(self) -> str:
        """Which limit it is over."""
        return "not done within %g s" % self.limit


class Merges:
    """The roots in which pytest-cov measured."""

    def __init__(self, job: Json, workers: int) -> None:
        self._job = job
        self._workers = workers
        self._waiting: List[str] = []
        self._count = 0
        self.living: Dict[str, Merge] = {}

    @property
    def finished(self) -> bool:
        """Whether nothing is left to merge."""
        return not self._waiting and not self.living

    def measured(self, root: str) -> None:
        """A test process of the root leaves data."""
        if root not in self._waiting:
            self._waiting.append(root)

    def start(self, now: float) -> Effects:
        """Merge as many roots at once as there are slots."""
        effects: Effects = []
        while self._waiting and len(self.living) < self._workers:
            root = self._waiting.pop(0)
            self._count += 1
            name = "coverage.%d" % self._count
            self.living[name] = Merge(MERGE_SECONDS, now + MERGE_SECONDS, root=root)
            effects.append(Start(name, spec.merge(self._job, root), self._environment()))
        return effects

    def _environment(self) -> Dict[str, str]:
        return spec.environment(self._job, self._workers)

    def on_record(self, process_id: str, record: Json) -> Effects:
        """What it says of parts that it can't use."""
        if record["kind"] != "note":
            return []
        return [self._note(self.living[process_id].root, record["text"], "warning")]

    def on_exit(self, process_id: str, end: Exit) -> Effects:
        """Name the merged file, or where the parts are."""
        merge = self.living.pop(process_id)
        if end.code == 0 and not merge.timed_out:
            return [self._note(merge.root, contract.coverage_file(merge.root))]
        if end.code == spec.NO_DATA:
            return [self._note(merge.root, "no process left coverage data", "warning")]
        last = (end.tail.strip().splitlines() or [""])[-1]
        why = "%s%s" % (cause(merge, end), ": " + last if last else "")
        text = "coverage data were not merged (%s); they are in %s" % (why, spec.parts(merge.root))
        return [self._note(merge.root, text, "warning")]

    def stop(self) -> None:
        """Start no more."""
        self._waiting = []

    def _note(self, root: str, text: str, level: str = "info") -> Write:
        return Write({"kind": "note", "level": level, "topic": "coverage", "text": text, "root": root})
