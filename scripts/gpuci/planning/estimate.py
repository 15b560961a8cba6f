"""Durations of items, as measured -> expected seconds of functions and files. Pure.

A function's seconds are the sum of its items' (all parameters). A function that was never measured gets
the mean of the measured functions nearest to it: of its class, of its file, of its directory, of the
directory above, … and of all; without any, the default. The mean, not the median: units add many
estimates up, and a sum is estimated without bias by means. What an earlier run measured of other files
counts too, so a run of three tests is estimated as well as a run of all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gpuci_node.contract import function_id


@dataclass
class Scope:
    """What was measured in a class, a file or a directory and all below it."""

    seconds: float = 0.0
    functions: int = 0
    files: int = 0


@dataclass(frozen=True)
class Estimates:
    """Answers for functions and files; `functions` and `items` are what was measured of each, in seconds."""

    functions: Mapping[str, float]
    scopes: Mapping[str, Scope]
    default_seconds: float
    items: Mapping[str, float]
    _means: dict[str, float] = field(default_factory=dict)

    def function(self, nodeid: str) -> float:
        """Expected seconds of a function id, or of a path: the target of a file that only pytest can read."""
        known = self.functions.get(nodeid)
        if known is not None:
            return known
        return self._mean(_parent(nodeid)) if "::" in nodeid else self.file(nodeid)

    def item(self, nodeid: str) -> float:
        """Expected seconds of an item; a function id is one as well."""
        known = self.items.get(nodeid)
        return self.function(nodeid) if known is None else known

    def measured(self, nodeid: str) -> float:
        """Seconds of an item or function id, 0 if it was never measured."""
        return self.items.get(nodeid, self.functions.get(nodeid, 0.0))

    def knows(self, nodeid: str) -> bool:
        """Whether a function or file was measured."""
        return nodeid in self.functions or ("::" not in nodeid and nodeid in self.scopes)

    def file(self, path: str) -> float:
        """Expected seconds of a whole file: what was measured of it, else the mean file near it."""
        nearest = self._nearest(path)
        return nearest.seconds / nearest.files if nearest else self.default_seconds

    def _mean(self, name: str) -> float:
        if name not in self._means:
            nearest = self._nearest(name)
            self._means[name] = nearest.seconds / nearest.functions if nearest else self.default_seconds
        return self._means[name]

    def _nearest(self, name: str) -> Scope | None:
        return next((self.scopes[above] for above in _up(name) if above in self.scopes), None)


def learn(durations: Mapping[str, float], default_seconds: float) -> Estimates:
    """Build Estimates from {node id of an item: seconds}."""
    functions: dict[str, float] = defaultdict(float)
    for nodeid, seconds in sorted(durations.items()):  # sorted: sums of floats depend on their order
        functions[function_id(nodeid)] += seconds
    return Estimates(dict(functions), _scopes(functions), default_seconds, durations)


def _scopes(functions: Mapping[str, float]) -> dict[str, Scope]:
    direct: dict[str, Scope] = defaultdict(Scope)
    for nodeid, seconds in functions.items():
        if "::" not in nodeid:
            continue  # a whole file says nothing of one function
        scope = direct[_parent(nodeid)]
        scope.seconds += seconds
        scope.functions += 1
    total: dict[str, Scope] = defaultdict(Scope)
    for name, part in direct.items():
        for above in _up(name):
            total[above].seconds += part.seconds
            total[above].functions += part.functions
    for file in {name.partition("::")[0] for name in direct}:
        for above in _up(file):
            total[above].files += 1
    return dict(total)


def _up(name: str) -> Iterator[str]:
    """A scope and all above it; "" holds everything."""
    yield name
    while name:
        name = _parent(name)
        yield name


def _parent(name: str) -> str:
    """`a/t.py::A::f` -> `a/t.py::A` -> `a/t.py` -> `a` -> ``."""
    head, separator, _ = name.rpartition("::")
    return head if separator else name.rpartition("/")[0]
