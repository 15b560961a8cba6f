"""What changed and what that can break, as text for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpuci.changes.model import Changes, Due
from gpuci.reporting.text import one_line, plural, wrap

_WIDTH = 80
ROWS = 50


def render(changes: Changes) -> str:
    """The counts, then each directory whose tests are due with its reason."""
    return "\n".join(_lines(changes))


def headline(changes: Changes) -> str:
    """What is due, in one line."""
    if changes.everything:
        return "every test is due"
    if not changes.packages:
        return "no test can be affected"
    return f"the tests of {plural(len(changes.packages), 'package')} can be affected"


def counted(changes: Changes) -> str:
    """How many files changed, in one line; empty where nothing was compared."""
    if not changes.base:
        return ""
    ignored = f", {len(changes.ignored)} of them ignored" if changes.ignored else ""
    return f"{plural(len(changes.changed), 'file')} changed since {one_line(changes.base[:12])}{ignored}"


def way(due: Due) -> str:
    """From the changed file to the tests, in one line."""
    return " -> ".join(one_line(step) for step in due.because)


def explain(changes: Changes, path: str, due: Due | None) -> str:
    """Why the tests of a file are due, or are not."""
    name = one_line(path)
    if changes.everything:
        return "\n".join([f"{name} is due, because every test is:", *_list(changes.because)])
    if due is None:
        return f"{name} is not due: nothing that it depends on, as far as is declared, has changed"
    return "\n".join([f"{name} is due: {one_line(due.why)}", f"  {way(due)}"])


def _lines(changes: Changes) -> Iterator[str]:
    if counted(changes):
        yield counted(changes)
    yield headline(changes) + (":" if changes.because or changes.tests else "")
    yield from _list(changes.because)
    for test in changes.tests[:ROWS]:
        yield from wrap(f"{one_line(test.path)}: {one_line(test.why)}", _WIDTH, first="- ", rest="  ")
    if len(changes.tests) > ROWS:
        yield f"- and {len(changes.tests) - ROWS} more"


def _list(texts: tuple[str, ...]) -> Iterator[str]:
    for text in texts:
        yield from wrap(one_line(text), _WIDTH, first="- ", rest="  ")
