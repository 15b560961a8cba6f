"""The failing tests as GitHub Markdown, within a number of bytes. Pure.

As many as fit are shown with their output, folded if there are several; of the room at most half is kept to
name the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuci.model import TestResult
from gpuci.reporting import summary
from gpuci.reporting.alike import Alike, number_of_tests, title
from gpuci.reporting.links import Links
from gpuci.reporting.text import LINE_WIDTH, clean, clip_output, excerpt, fence, plural, short_code, utf8_size

OUTPUT_LINES = 60
WHY_WIDTH = 200  # of why a test failed, to be seen before anything is opened
NAMED = 20  # tests that failed like another one
NAME_WIDTH = 150
_NOTE_BYTES = 400  # of titles and remarks
_MISSES = 5  # blocks that are too big until no further one is made


def render(groups: Sequence[Alike], links: Links | None, room: int) -> str:
    """The section, in at most `room` bytes of UTF-8; empty without groups. What is left out is counted."""
    if not groups:
        return ""
    room -= _NOTE_BYTES
    briefs = [_brief(group) for group in groups]
    kept_back = min(sum(map(utf8_size, briefs)), room // 2)
    blocks = (_detailed(group, links, opened=len(groups) == 1) for group in groups)
    detailed = _fit(blocks, room - kept_back)
    room -= sum(map(utf8_size, detailed.values()))
    rest = [place for place in range(len(groups)) if place not in detailed]
    named = _fit((briefs[place] for place in rest), room)
    shown = [*detailed, *(rest[place] for place in named)]
    left = number_of_tests(groups) - sum(groups[place].tests for place in shown)
    return "".join(
        [
            f"### {title(groups)}\n\n",
            *detailed.values(),
            "Without output, for want of room:\n\n" if named else "",
            *named.values(),
            "\n" if named else "",
            cut_note(left, "failing test"),
        ]
    )


def cut_note(missing: int, noun: str) -> str:
    """A paragraph on what had no room."""
    if not missing:
        return ""
    return f"{plural(missing, 'more ' + noun)} not shown: this summary is full. report.json has all.\n\n"


def _fit(blocks: Iterable[str], room: int) -> dict[int, str]:
    """The blocks that fit into `room` bytes one after the other, by their place."""
    kept: dict[int, str] = {}
    misses = 0
    for place, block in enumerate(blocks):
        if utf8_size(block) <= room:
            kept[place] = block
            room -= utf8_size(block)
        else:
            misses += 1
        if misses == _MISSES:
            break
    return kept


def _head(group: Alike) -> str:
    first = group.first
    why = f": {short_code(first.message, WHY_WIDTH)}" if first.message else ""
    more = f" and {group.more} alike" if group.others else ""
    return f"{short_code(first.nodeid)} {summary.label(first.outcome)}{why}{more}"


def _brief(group: Alike) -> str:
    return f"- {_head(group)}\n"


def _detailed(group: Alike, links: Links | None, *, opened: bool) -> str:
    first = group.first
    output = excerpt(clean(first.output), OUTPUT_LINES)
    shown = "\n".join(clip_output(line, LINE_WIDTH) for line in output.told())
    parts = [
        f"<details{' open' if opened else ''}><summary>{_head(group)}</summary>",
        "",
        f"{_place(first, links)} {short_code(summary.where_text(first))}",
        "",
    ]
    if output.lines:
        parts += [fence(shown), ""]
    return "\n".join([*parts, *_others(group), "</details>", "", ""])


def _place(result: TestResult, links: Links | None) -> str:
    place = short_code(summary.place_text(result))
    url = links.line_url(result.file, result.line) if links else ""
    return f"[{place}]({url})" if url else place


def _others(group: Alike) -> list[str]:
    if not group.others:
        return []
    names = [f"- {short_code(result.nodeid, NAME_WIDTH)}" for result in group.others[:NAMED]]
    more = [f"- and {len(group.others) - NAMED} more"] if len(group.others) > NAMED else []
    return [f"The same error in {group.more}:", "", *names, *more, ""]
