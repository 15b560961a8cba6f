"""Runs rows on a bed: several at once, those that stop daemons alone, each result into the ledger."""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.bed.handle import Bed
from tests.cluster.bed.place import CPU_NODES, GPU_NODES, Place
from tests.cluster.faulting import checks
from tests.cluster.faulting.leftovers import await_nothing
from tests.cluster.faulting.neighbour import Neighbour
from tests.cluster.faulting.rows import Row
from tests.cluster.faulting.runner import Product
from tests.cluster.faulting.scene import NeverCame, Scene

# A run that takes longer hangs: the longest row has a minute of silence and a lost node in it.
LONGEST_SECONDS = 240.0


@dataclass(frozen=True)
class Task:
    """One run of a row."""

    row: Row
    seed: int
    variant: str


class Session:
    """`done` gets each result as it comes; `keep` is where a run that `is_red` leaves its files."""

    def __init__(
        self,
        place: Place,
        product: Product,
        keep: Path,
        is_red: Callable[[dict[str, Any]], bool],
        done: Callable[[dict[str, Any]], None],
    ) -> None:
        self._place, self._product, self._keep, self._is_red, self._done = place, product, keep, is_red, done
        self._bed = Bed(place)
        self._bystander = ""
        self._stopped = threading.Event()
        self._pairs: queue.Queue[tuple[str, str]] = queue.Queue()
        for pair in zip(GPU_NODES[::2], GPU_NODES[1::2], strict=True):
            self._pairs.put(pair)

    def run(self, tasks: Iterable[Task], jobs: int) -> None:
        """Run them all. An interrupt ends the runs in progress in order, and starts no more."""
        every = list(tasks)
        self._stand_by()
        together = [task for task in every if not task.row.alone]
        pool = ThreadPoolExecutor(jobs)
        try:
            list(pool.map(self._guarded, together))
            for task in every:
                if task.row.alone:
                    self._guarded(task)
        except KeyboardInterrupt:
            self._stopped.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            self._bed.root("scancel", self._bystander)

    def _stand_by(self) -> None:
        """A job of somebody else."""
        options = ("--partition=cpu", "--no-requeue", "-J", "gpuci-bystander")
        self._bystander = self._bed.submit("exec sleep 86000", *options)
        self._bed.await_state(self._bystander, "RUNNING")

    def _guarded(self, task: Task) -> None:
        if self._stopped.is_set():
            return
        pair = self._pairs.get()
        try:
            self._one(task, pair)
        finally:
            self._pairs.put(pair)

    def _one(self, task: Task, nodes: tuple[str, str]) -> None:
        started = time.monotonic()
        scene = Scene(self._place, task.row, task.seed, task.variant, nodes, self._product)
        result = self._named(task)
        try:
            neighbour = Neighbour(scene.shared)
            result |= self._played(scene)
            scene.unmount()
            result["problems"] += [f"neighbour: {name} was touched" for name in neighbour.touched()]
            result["problems"] += self._bystander_problems(task.row)
        except Exception:
            result["problems"].append(f"the table itself broke: {traceback.format_exc()[-1500:]}")
        result["seconds"] = round(time.monotonic() - started, 1)
        name = f"{task.row.name}-{task.seed}".replace(" ", "-")
        try:
            scene.close(self._keep / name if self._is_red(result) else None)
        except Exception:
            result["problems"].append(f"the bed was not put right: {traceback.format_exc()[-1500:]}")
        self._done(result)

    def _named(self, task: Task) -> dict[str, Any]:
        return {
            "commit": self._product.commit,
            "mutant": self._product.mutant,
            "row": task.row.name,
            "variant": task.variant,
            "seed": task.seed,
            "planted": "",
            "observed": {},
            "problems": [],
        }

    def _played(self, scene: Scene) -> dict[str, Any]:
        try:
            scene.row.plant(scene)
        except NeverCame as error:
            scene.notes.append(str(error))
        scene.finish(LONGEST_SECONDS)
        left, emptied = await_nothing(scene, scene.patience)
        scene.watch.look()
        report = scene.runner.report() if scene.runners else None
        seen = checks.observed(scene, report) if scene.runners else {}
        problems = checks.problems(scene, report) if scene.runners else scene.notes
        return {
            "planted": scene.planted,
            "observed": {**seen, **scene.columns},
            "problems": [*problems, *(f"left behind: {text}" for text in left)],
            "reason": _reason(report),
            "emptied_seconds": round(emptied, 1),
        }

    def _bystander_problems(self, row: Row) -> list[str]:
        """It goes on, unless the row took its daemons away."""
        facts = self._bed.job(self._bystander)
        node, state = facts.get("NodeList", ""), facts.get("JobState", "gone")
        if state == "RUNNING" and node in CPU_NODES:
            return []
        self._stand_by()
        return [] if row.alone else [f"neighbour: its job is {state} on {node}"]


def _reason(report: dict[str, Any] | None) -> str:
    if report is None:
        return ""
    shards = [shard.get("reason", "") for shard in report["shards"]]
    return "; ".join(filter(None, [report.get("reason", ""), *shards]))
