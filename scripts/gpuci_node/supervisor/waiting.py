"""The tasks that wait for a slot, in the order in which they ask for one. Pure.

Runs on the compute node (Python >= 3.8, standard library only).
"""

import bisect
import collections
from typing import Any, Callable, Counter, Iterable, Iterator, List, Optional, Tuple

from gpuci_node.slots import order_key
from gpuci_node.supervisor.process import Process, Task

# A worker goes on with its root, unless a task elsewhere is longer by this factor and by this much.
_SWITCH_FACTOR, _SWITCH_SECONDS = 1.5, 1.0


class Waiting:
    """Alone first, then the widest, then the longest (`order_key`)."""

    def __init__(self) -> None:
        self._tasks: List[Tuple[Any, Task]] = []
        self._roots: Counter[str] = collections.Counter()

    def __iter__(self) -> Iterator[Task]:
        return (task for _key, task in self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def roots(self) -> Iterable[str]:
        """The roots of the tasks that wait."""
        return +self._roots

    def add(self, task: Task) -> None:
        """A task from now on waits."""
        self._roots[task.root] += 1
        key = order_key(task.gpus, task.alone, task.unit["expected_seconds"], task.sequence)
        bisect.insort(self._tasks, (key, task))

    def clear(self) -> None:
        """Forget all."""
        self._tasks = []
        self._roots.clear()

    def take(self, wanted: Callable[[Task], Optional[bool]]) -> None:
        """Offer each task once, in order; those that are taken (True) no longer wait. None: offer no more."""
        tasks, self._tasks = self._tasks, []  # some may be added meanwhile
        kept: List[Tuple[Any, Task]] = []
        for place, entry in enumerate(tasks):
            answer = wanted(entry[1])
            if answer is None:
                kept += tasks[place:]
                break
            if answer:
                self._roots[entry[1].root] -= 1
            else:
                kept.append(entry)
        added, self._tasks = self._tasks, kept
        for entry in added:
            bisect.insort(self._tasks, entry)

    def take_next(
        self, process: Process, fits: Callable[[Task], bool], can_start: Callable[[Task], bool]
    ) -> Optional[Task]:
        """The task that a slot's worker goes on with; None if none fits, or a much longer one should start.

        It keeps its GPUs: only tasks that ask for as many are considered.
        """
        longest = 0.0
        for place, (_key, task) in enumerate(self._tasks):
            if (task.gpus, task.alone) != (process.width, process.first.task.alone):
                continue
            seconds = float(task.unit["expected_seconds"])
            if fits(task):
                if longest > _SWITCH_FACTOR * seconds + _SWITCH_SECONDS:
                    return None
                del self._tasks[place]
                self._roots[task.root] -= 1
                return task
            if seconds > longest and can_start(task):
                longest = seconds
        return None
