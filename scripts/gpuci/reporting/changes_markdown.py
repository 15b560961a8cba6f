"""What changed and what that can break, as GitHub Markdown. Pure; untrusted text stands in inline code."""

from __future__ import annotations

from collections.abc import Iterator

from gpuci.changes.model import Changes
from gpuci.reporting import changes_text
from gpuci.reporting.text import clip, clip_middle, inline_code, one_line

ROWS = 50
_WIDTH = 150


def render(changes: Changes) -> str:
    """For the summary of a step."""
    return "\n".join(_lines(changes)) + "\n"


def _lines(changes: Changes) -> Iterator[str]:
    head = changes_text.headline(changes)
    yield f"## {head[0].upper()}{head[1:]}"
    yield ""
    if changes_text.counted(changes):
        yield f"{changes_text.counted(changes)}."
        yield ""
    yield from (f"- {inline_code(clip(one_line(reason), _WIDTH))}" for reason in changes.because)
    if changes.tests:
        yield "| tests of | why | from the changed file |"
        yield "| --- | --- | --- |"
    for test in changes.tests[:ROWS]:
        cells = (test.path, test.why, changes_text.way(test))
        shown = (inline_code(clip_middle(one_line(cell), _WIDTH)) for cell in cells)
        yield f"| {' | '.join(shown)} |"
    if len(changes.tests) > ROWS:
        yield ""
        yield f"And {len(changes.tests) - ROWS} more; changes.json has all."
