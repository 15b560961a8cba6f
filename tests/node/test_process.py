"""Why a test process ended, in one line."""

from __future__ import annotations

import pytest

from gpuci_node.supervisor.effects import Exit
from gpuci_node.supervisor.process import Process, cause


@pytest.mark.parametrize(
    ("known", "end", "text"),
    [
        ({}, Exit(0, None, ""), "the test process left with exit code 0"),
        ({}, Exit(4, None, ""), "the test process left with exit code 4 (pytest: wrong options or settings)"),
        ({}, Exit(3, None, ""), "the test process left with exit code 3 (pytest: internal error)"),
        ({}, Exit(4, None, "x\nERROR: Wrong expression\n"), "pytest: Wrong expression"),
        ({"in_flight": "a.py::a"}, Exit(4, None, ""), "the test process left with exit code 4"),
        ({}, Exit(None, "SIGSEGV", ""), "killed by SIGSEGV"),
        ({"timed_out": "too slow"}, Exit(None, "SIGKILL", ""), "too slow: killed"),
        ({"interrupted": "Exit: enough", "timed_out": "too slow"}, Exit(2, None, ""), "Exit: enough"),
        ({"broken": "no pytest"}, Exit(4, None, ""), "no pytest"),
    ],
    ids=lambda value: "" if isinstance(value, Exit) else str(value),
)
def test_the_most_telling_fact_is_said(known: dict[str, str], end: Exit, text: str) -> None:
    process = Process(limit=1.0, deadline=1.0)
    for name, value in known.items():
        setattr(process, name, value)
    assert cause(process, end) == text
