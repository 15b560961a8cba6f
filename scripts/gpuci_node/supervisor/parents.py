"""The warm parents of a job: one for all, one per root, and what to do when one can't be had. Pure.

Runs on the compute node (Python >= 3.8, standard library only).

The base has pytest and the preloaded modules. From it are forked: processes of a single file, and per root a
template, which collects all files of its root and from which the slot workers are forked. A file that ends,
hangs or fails the template, or that leaves it unfit to be forked, runs in a process of its own, and the
template is made again without it. A root whose conftests make it unfit has workers that collect by
themselves. None of this changes what a test gets: only how fast.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from gpuci_node.supervisor import spec
from gpuci_node.supervisor.effects import Effects, Exit, Kill, Start, Tell, Write
from gpuci_node.supervisor.process import LEAVE_SECONDS, Living, Task, cause

PRELOAD_SECONDS = 600.0  # for the base to import what is to be preloaded
_ROUNDS = 3  # templates that may be lost to files of a root before each unit gets a process of its own

Json = Dict[str, Any]


class Source(NamedTuple):
    """Where the process for a task comes from: its parent, its files, and what is collected already."""

    parent: Optional[str]
    files: List[str]
    collected: Optional[Dict[str, Json]] = None
    shared: bool = False


@dataclass
class Parent(Living):
    """A living warm parent; `root` is None for the base."""

    id: str = ""
    root: Optional[str] = None
    leaving: bool = False


@dataclass
class Root:
    """A root and the state of its template.

    new -> starting -> ready, or `each` (workers collect by themselves) or `own` (a process per unit).
    """

    spec: Json
    files: Dict[str, float]  # limits of the files that its workers share
    status: str = "new"
    template: str = ""
    rounds: int = 0
    collected: Dict[str, Json] = field(default_factory=dict)
    apart: Set[str] = field(default_factory=set)  # files that run in processes of their own
    hung: Dict[str, Tuple[str, str]] = field(default_factory=dict)  # files not collected in time: why, stacks
    masked: bool = False  # CUDA starts while its files are collected: mask from the start

    shared: List[str] = field(default_factory=list)  # those of `files` that are not apart

    def set_apart(self, file: str) -> None:
        """The file runs in processes of its own from now on."""
        self.apart.add(file)
        self.shared = [each for each in self.files if each not in self.apart]


class Parents:
    """Starts, judges and ends warm parents; tells where a task's process comes from."""

    def __init__(self, job: Json, workers: int) -> None:
        self._job = job
        self._workers = workers
        self._living: Dict[str, Parent] = {}
        self._count = 0
        self._base = "new"
        self._base_id: Optional[str] = None
        self._roots = {root["path"]: Root(root, {}) for root in job["roots"]}
        for unit in job["units"]:
            if unit["mode"] != "isolated":
                self._roots[unit["root"]].files[unit["file"]] = unit["timeout_seconds"]
        for root in self._roots.values():
            root.shared = list(root.files)
            units = [unit for unit in job["units"] if unit["root"] == root.spec["path"]]
            if len(units) == 1:
                root.status = "own"  # nothing to share
        if not job["settings"]["fork"]:
            self._refuse_forks()

    def _refuse_forks(self) -> None:
        self._base = "none"
        for root in self._roots.values():
            root.status = "own" if root.status == "own" else "each"

    def root(self, path: str) -> Root:
        """The state of a root."""
        return self._roots[path]

    @property
    def living(self) -> Dict[str, Parent]:
        """The parents that live, by process id."""
        return self._living

    @property
    def collecting(self) -> int:
        """How many templates are being made."""
        return sum(root.status == "starting" for root in self._roots.values())

    # -- where a process comes from ------------------------------------------------------------------

    def source(self, task: Task) -> Optional[Source]:
        """Where the process for a task comes from; None: wait, something is still being prepared."""
        if self._base in ("new", "starting"):
            return None
        root = self._roots[task.root]
        if task.own or root.status == "own" or task.file in root.apart or task.file not in root.files:
            return Source(self._base_id, [task.file])
        if root.status == "each":
            return Source(self._base_id, root.shared, shared=True)
        if root.status == "ready":
            return Source(root.template, root.shared, root.collected, shared=True)
        return None

    def is_prepared(self, path: str) -> bool:
        """Whether processes of a root can start, one way or another."""
        return self._base in ("ready", "none") and self._roots[path].status in ("ready", "each", "own")

    def prepare(self, path: str, now: float) -> Effects:
        """Begin what the tasks of a root wait for, if that is not under way."""
        if self._base == "new":
            self._base = "starting"
            return [self._start("base", None, PRELOAD_SECONDS, spec.base(self._job), None, now)]
        root = self._roots[path]
        if self._base == "starting" or root.status != "new":
            return []
        if not root.shared:
            root.status = "own"
            return []
        root.status, root.collected = "starting", {}
        document = spec.template(self._job, root.spec, root.shared)
        start = self._start("root", path, max(root.files.values()), document, self._base_id, now)
        root.template = start.id
        return [start]

    def _start(
        self, kind: str, root: Optional[str], limit: float, document: Json, parent: Optional[str], now: float
    ) -> Start:
        self._count += 1
        name = "%s.%d" % (kind, self._count)
        self._living[name] = Parent(limit, now + limit, id=name, root=root)
        env = {} if parent else spec.environment(self._job, self._workers)
        return Start(name, document, env, parent)

    # -- what a parent says ------------------------------------------------------------------------

    def on_record(self, process_id: str, record: Json, now: float) -> Effects:
        """Take a checked record of a parent; kinds that make no sense here are dropped."""
        parent = self._living[process_id]
        kind = record["kind"]
        if kind == "note":
            return [_note(parent, record["topic"], record["text"], record["level"])]
        if kind == "broken":
            parent.broken = record["text"]
        elif kind == "interrupted":
            parent.interrupted = record["text"]
        elif kind == "ready":
            return self._ready(parent, record["findings"], now)
        elif parent.root is not None and self._roots[parent.root].template == process_id:
            self._hear(parent, self._roots[parent.root], record, now)
        return []

    def _hear(self, parent: Parent, root: Root, record: Json, now: float) -> None:
        """How far a template is with its files."""
        if root.status != "starting":
            return
        if record["kind"] == "collecting":
            parent.collecting = record["file"] if record["file"] in root.files else None
            parent.give(root.files.get(record["file"], max(root.files.values())), now)
        elif record["kind"] == "collected" and record["file"] in root.files:
            parent.collecting = None
            root.collected[record["file"]] = record

    def _ready(self, parent: Parent, findings: List[Json], now: float) -> Effects:
        parent.deadline = float("inf")
        if findings:
            parent.leaving = True
            parent.give(LEAVE_SECONDS, now)
        if parent.root is None:
            self._base, self._base_id = ("none", None) if findings else ("ready", parent.id)
            return [self._not_forked(parent, finding["path"], finding["reason"]) for finding in findings]
        root = self._roots[parent.root]
        if root.template != parent.id or root.status != "starting":
            return []
        if not findings:
            return self._collected(parent, root)
        reasons: Dict[str, List[str]] = {}
        for finding in findings:
            reasons.setdefault(finding["path"], []).append(finding["reason"])
        if all(path in root.files for path in reasons):
            self._again(root, "each")
            return [self._set_apart(parent, root, path, ", ".join(why)) for path, why in reasons.items()]
        root.status = "each"
        return [self._not_forked(parent, path, ", ".join(why)) for path, why in reasons.items()]

    def _collected(self, parent: Parent, root: Root) -> Effects:
        root.status = "ready"
        reasons = {file: "its record was lost" for file in root.shared if file not in root.collected}
        for file, record in root.collected.items():
            if record["errors"]:
                reasons[file] = record["errors"][0]["message"]
        return [self._set_apart(parent, root, file, why) for file, why in reasons.items()]

    def _again(self, root: Root, otherwise: str) -> None:
        root.rounds += 1
        root.status = "new" if root.rounds <= _ROUNDS else otherwise

    def _set_apart(self, parent: Parent, root: Root, file: str, why: str) -> Write:
        root.set_apart(file)
        return _note(parent, "own_process", "%s runs in a process of its own: %s" % (file, why))

    def _not_forked(self, parent: Parent, path: str, why: str) -> Write:
        return _note(parent, "not_forked", "%s: %s" % (path, why) if path else why)

    # -- its end -----------------------------------------------------------------------------------

    def on_exit(self, process_id: str, end: Exit) -> Effects:
        """A parent is gone: what it was to give comes another way."""
        parent = self._living.pop(process_id)
        if parent.leaving:
            return []
        why = cause(parent, end)
        if parent.root is None:
            self._base, self._base_id = "none", None
            return [_note(parent, "no_base", "processes start from nothing: %s" % why, "warning")]
        root = self._roots[parent.root]
        if root.template != process_id or root.status not in ("starting", "ready"):
            return []
        if not end.born:
            root.status = "new"
            return self.refused(self._base_id)
        if root.status == "ready":
            root.status = "each"
            return [_note(parent, "not_forked", "the parent of its workers is gone: %s" % why, "warning")]
        return self._lost(parent, root, why, end.tail)

    def refused(self, parent: Optional[str]) -> Effects:
        """A parent did not fork: processes start from nothing instead, or from the base; it is to end."""
        if parent == self._base_id:
            self._base, self._base_id = "none", None
        for root in self._roots.values():
            if root.template == parent and root.status == "ready":
                root.status = "each"
        living = self._living.get(parent or "")
        if living is None or living.leaving:
            return []
        living.leaving = living.killed = True
        text = "it does not fork any more: processes start another way"
        return [_note(living, "not_forked", text, "warning"), Kill(living.id)]

    def set_apart(self, root: str, file: str) -> None:
        """A worker that collected for itself could not collect this file."""
        self._roots[root].set_apart(file)

    def lost(self, path: str, file: Optional[str], hung: Optional[Tuple[str, str]]) -> None:
        """A worker that collected for itself ended meanwhile, at this file or before any."""
        root = self._roots[path]
        root.rounds += 1
        if file is None or file not in root.shared or root.rounds > _ROUNDS:
            root.status = "own"
            return
        root.set_apart(file)
        if hung:
            root.hung[file] = hung

    def _lost(self, parent: Parent, root: Root, why: str, tail: str) -> Effects:
        if parent.collecting is None:
            root.status = "own"
            text = "each unit runs in a process of its own: %s" % why
            return [_note(parent, "own_process", text, "warning")]
        if parent.timed_out:
            root.hung[parent.collecting] = (why, tail)
        self._again(root, "own")
        return [self._set_apart(parent, root, parent.collecting, why)]

    def retire(self, wanted: Set[str], base_wanted: bool, now: float) -> Effects:
        """End the templates of roots that have nothing left to run, and the base when no parent is needed."""
        effects: Effects = []
        for parent in self._living.values():
            if parent.leaving:
                continue
            needed = base_wanted if parent.root is None else parent.root in wanted
            if not needed:
                parent.leaving = True
                parent.give(LEAVE_SECONDS, now)
                # One that is still at work does not listen.
                ready = parent.root is None or self._roots[parent.root].status == "ready"
                effects.append(Tell(parent.id, {"do": "end"}) if ready else Kill(parent.id))
        return effects


def _note(parent: Parent, topic: str, text: str, level: str = "info") -> Write:
    where = {"root": parent.root} if parent.root is not None else {}
    return Write({"kind": "note", "level": level, "topic": topic, "text": text, **where})
