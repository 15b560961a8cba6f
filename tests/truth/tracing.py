"""What the fixture suites write: a line for each set-up, teardown, test and report, in a file per process.

A module and pytest plugin (`-p tracing`) for the Python that is tested with (>= 3.8, pytest >= 7).
A process writes to `$TRACE/<pid>.log`; nothing is written while a suite is imported.
"""

import os
from typing import Any, Generator  # noqa: UP035 (Python 3.8)

import pytest


def trace(line: str) -> None:
    """Append a line to this process's file."""
    with open(os.path.join(os.environ["TRACE"], "%d.log" % os.getpid()), "a") as stream:  # noqa: UP031
        stream.write(line + "\n")


def around(name: str, value: Any = None) -> Generator[Any, None, None]:
    """The body of a fixture.

    No `with` or `finally`: a generator that pytest forgets is closed when the process ends, and must
    not look like one that was torn down.
    """
    trace("setup " + name)
    yield name if value is None else value
    trace("teardown " + name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Each test has this line, also one that is skipped before anything is set up."""
    trace("test {} {} {}".format(os.environ["PYTEST_XDIST_WORKER"], item.config.rootpath.name, item.nodeid))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """What pytest says of a phase: a teardown that fails must count for the same test."""
    trace(f"{report.when} {report.outcome}")
