"""Dicts that tell when somebody asks who this worker is.

Runs in the process that collects the tests (Linux, Python >= 3.8, standard library only).
"""

import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, cast

IDENTITY = ("PYTEST_XDIST_WORKER", "CUDA_VISIBLE_DEVICES", "GPUCI_GPUS")


class Variables(Dict[Any, Any]):
    """Stands for the dict below `os.environ` and tells of reads and writes of the worker's identity."""

    def __init__(self, tell: Callable[[str, bool], None]) -> None:
        self._environ = cast(Any, os.environ)  # a test module may put something else in its place
        self._original = self._environ._data
        super().__init__(self._original)
        self._tell = tell
        self._names = {os.fsencode(name): name for name in IDENTITY}
        self._walk: List[Any] = []  # what a walk over all variables reads next, last first
        self._place(self._original, self)

    def restore(self) -> None:
        """Give `os.environ` its own dict back, with what is in it now."""
        self._original.clear()
        self._original.update(self.items())
        self._place(self, self._original)

    def _place(self, old: Dict[Any, Any], new: Dict[Any, Any]) -> None:
        for environ in (self._environ, cast(Any, os.environb)):
            if environ._data is old:
                environ._data = new

    def __iter__(self) -> Iterator[Any]:
        keys = list(super().__iter__())
        self._walk = keys[::-1]
        return iter(keys)

    def __getitem__(self, key: Any) -> Any:
        if self._walk and self._walk[-1] == key:
            self._walk.pop()  # dict(os.environ): a copy of all is no question who one is
        else:
            self._walk = []
            if key in self._names:
                self._tell(self._names[key], False)
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key in self._names and dict.get(self, key) != value:
            self._tell(self._names[key], True)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        if key in self._names and dict.__contains__(self, key):
            self._tell(self._names[key], True)
        super().__delitem__(key)


class WorkerInput(Dict[str, Any]):
    """What pytest-xdist gives to its workers; tells of each read of "workerid"."""

    def __init__(self, values: Mapping[str, Any], tell: Callable[[], None]) -> None:
        super().__init__(values)
        self._tell = tell

    def __getitem__(self, key: str) -> Any:
        if key == "workerid":
            self._tell()
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """As a dict's."""
        if key == "workerid":
            self._tell()
        return super().get(key, default)
