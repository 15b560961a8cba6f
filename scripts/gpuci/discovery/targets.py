"""Marks, modes and conditions -> what a test needs. Pure.

Order of authority for the mode: `skip` by path, the closest mark, the longest matching path, normal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from gpuci.config.model import Config, MarkerRule
from gpuci.discovery.members import Item
from gpuci.discovery.modes import path_modes
from gpuci.discovery.values import Mark
from gpuci.model import Marker, TestTarget

LONGEST_TIMEOUT = 1e12  # seconds: a literal can be greater than any float


class TargetMaker:
    """Makes the targets of one configuration."""

    def __init__(self, config: Config) -> None:
        self._rules = config.markers
        self._modes = path_modes(config.modes)
        self._matching = lru_cache(maxsize=None)(self._match)

    def make(self, item: Item, path: str, root: str) -> TestTarget:
        """The target of one test function."""
        nodeid = "::".join((path, *item.classes, item.name))
        placed = self._modes.of(nodeid)
        mode, gpus, kind = self._need(item.marks, placed[1] if placed else None)
        skip = None
        if placed is not None and placed[1] == "skip":
            mode, skip = "skip", f"modes: skip {placed[0]}"
        elif mode == "skip":
            skip = f"mark {next(mark.name for mark, rule in self._ruled(item.marks) if rule.mode == 'skip')}"
        return TestTarget(
            nodeid=nodeid,
            test_path=path,
            test_class="::".join(item.classes) or None,
            test_function=None if item.classes else item.name,
            test_method=item.name if item.classes else None,
            root=root,
            line=item.line,
            run_mode=mode,
            runs_on=self._profile(item.marks),
            skip=skip,
            gpus=gpus,
            kind=kind,
            timeout=_timeout(item.marks),
            markers=tuple([_marker(mark) for mark in item.marks if not mark.hidden]),
            opaque=item.uncertain,
        )

    def file(self, path: str, root: str, why: str) -> TestTarget:
        """The one target of a file whose tests pytest alone can tell (doctests)."""
        placed = self._modes.of(path)
        mode, gpus, kind = self._need((), placed[1] if placed else None)
        skip = f"modes: skip {placed[0]}" if placed is not None and placed[1] == "skip" else None
        return TestTarget(
            path, path, None, None, None, root, 1, mode, None, skip, gpus, kind, None, (), opaque=why
        )

    def _need(self, marks: Sequence[Mark], by_path: str | None) -> tuple[str, int, str]:
        """(mode, GPUs, kind): the closest mark gives the mode, the most demanding one the GPUs."""
        mode, gpus = self._marked(marks)
        mode = mode or by_path or "normal"
        if mode == "cpu":
            return mode, 0, "cpu"
        if gpus:
            return mode, gpus, "gpu"
        return mode, 1, "unknown"

    def _marked(self, marks: Sequence[Mark]) -> tuple[str | None, int]:
        mode: str | None = None
        gpus = 0
        for mark in marks:
            if mark.some:
                continue
            need = mark.gpus or 0
            for rule in self._matching(mark.name):
                need = max(need, rule.gpus or 0)
                # A GPU mark on the test outweighs a `cpu` around it.
                if mode is None and rule.mode is not None and not (rule.mode == "cpu" and gpus):
                    mode = rule.mode
            gpus = max(gpus, need)
        return mode, gpus

    def _ruled(self, marks: Sequence[Mark]) -> Iterator[tuple[Mark, MarkerRule]]:
        for mark in marks:
            if not mark.some:
                yield from ((mark, rule) for rule in self._matching(mark.name))

    def _match(self, name: str) -> tuple[MarkerRule, ...]:
        return tuple(rule for rule in self._rules if fnmatchcase(name, rule.name))

    def _profile(self, marks: Sequence[Mark]) -> str | None:
        for mark in marks:
            if mark.name == "runs_on" and not mark.some:
                named = _literal(dict(mark.kwargs).get("node") or next(iter(mark.args), ""))
                if isinstance(named, str):
                    return named
        return next((rule.profile for _, rule in self._ruled(marks) if rule.profile), None)


def _marker(mark: Mark) -> Marker:
    return Marker(mark.name, mark.args, mark.kwargs, mark.line, mark.some)


@lru_cache(maxsize=1024)
def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _timeout(marks: Sequence[Mark]) -> float | None:
    """Seconds of the closest `timeout(n)`; 0 or less is no limit of its own."""
    for mark in marks:
        if mark.name == "timeout" and not mark.some:
            value = _literal(dict(mark.kwargs).get("timeout") or next(iter(mark.args), ""))
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
                return float(min(value, LONGEST_TIMEOUT))
            return None
    return None
