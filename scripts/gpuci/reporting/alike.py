"""Failing tests that most likely have one cause, together: one is shown in full, the others named. Pure.

A broken import or fixture fails every test of many files with one message. Tests count as alike if they have
the same outcome and message, without what differs from process to process. The text of an assertion says
little of its cause (`assert False`), so such tests have to fail at the same line as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpuci.model import TestResult
from gpuci.reporting.text import plural
from gpuci_node.contract import OUTCOMES

_PHASE = re.compile(r"at (?:setup|teardown): ")
_ASSERTION = re.compile(r"assert\b|AssertionError\b|\S*$")
# Addresses, workers, devices, ids and ports, temporary directories, sizes and times.
_VARYING = re.compile(
    r"0x[0-9a-fA-F]+|\bgw\d+|\bcuda:\d+|\b(?:GPU|device|rank|port|pid|process) \d+|\b\d{5,}"
    r"|/pytest-of-[^\s'\"]+|\b\d+(?:\.\d+)? (?:bytes|[KMGT]i?B|m?s)\b",
    re.IGNORECASE,
)


class Alike(NamedTuple):
    """A failing test, and those that failed in the same way."""

    first: TestResult
    others: tuple[TestResult, ...] = ()

    @property
    def tests(self) -> int:
        """How many tests it stands for."""
        return 1 + len(self.others)

    @property
    def more(self) -> str:
        """`39 more tests`, or `5 more files` that could not be collected: the others in words."""
        noun = "test" if "::" in self.first.nodeid else "file"
        return plural(len(self.others), f"more {noun}")


def alike(results: Iterable[TestResult]) -> list[Alike]:
    """The largest group first, of one size the worst outcome first, else in the order of `results`."""
    groups: dict[tuple[str, ...], list[TestResult]] = {}
    for result in results:
        groups.setdefault(_key(result), []).append(result)
    found = [Alike(first, tuple(others)) for first, *others in groups.values()]
    return sorted(found, key=lambda group: (-group.tests, OUTCOMES.index(group.first.outcome)))


def number_of_tests(groups: Iterable[Alike]) -> int:
    """How many tests some groups stand for."""
    return sum(group.tests for group in groups)


def title(groups: Sequence[Alike]) -> str:
    """`Failing tests (40)`, and of how many kinds if some are alike."""
    tests = number_of_tests(groups)
    kinds = f", {plural(len(groups), 'different error')}" if len(groups) < tests else ""
    return f"Failing tests ({tests}{kinds})"


def _key(result: TestResult) -> tuple[str, ...]:
    if not result.message:
        return (result.outcome, result.nodeid)
    place: tuple[str, ...] = ()
    if _ASSERTION.match(_PHASE.sub("", result.message, count=1)):
        place = (result.file, str(result.line)) if result.line else (result.nodeid,)
    return (result.outcome, _VARYING.sub("*", result.message), *place)
