"""A report -> annotations within GitHub's limits, the rest counted. Pure; the writer escapes them.

Source: docs.github.com, "Workflow commands": 10 errors and 10 warnings a step, 50 a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpuci.model import Report
from gpuci.reporting import summary
from gpuci.reporting.alike import Alike
from gpuci.reporting.links import Links
from gpuci.reporting.text import clean, clip, excerpt, one_line, plural

MOST = 9  # of a kind: one is left for who calls
OUTPUT_LINES = 12
WIDTH = 300


class Annotation(NamedTuple):
    """`kind` is error or warning, `file` a path in the repository or empty, `line` 0 if it is not known."""

    kind: str
    title: str
    text: str
    file: str = ""
    line: int = 0


def render(report: Report, links: Links) -> list[Annotation]:
    """The failing tests at their lines, then what did not finish, then warnings; at most MOST of a kind."""
    errors = [(_failure(group, links), group.tests) for group in summary.alike_failing(report)]
    errors += [(_unfinished(group), len(group.results)) for group in summary.unfinished(report)]
    warnings = [
        (Annotation("warning", "gpuci", clip(one_line(text), 4 * WIDTH)), 1) for text in report.warnings
    ]
    return [*_cut(errors, "red test"), *_cut(warnings, "warning")]


def _cut(found: Sequence[tuple[Annotation, int]], noun: str) -> list[Annotation]:
    """`found`: each with the number of things that it is about."""
    shown = [one for one, _count in found]
    if len(found) <= MOST:
        return shown
    left = plural(sum(count for _one, count in found[MOST - 1 :]), f"more {noun}")
    rest = Annotation(shown[0].kind, "gpuci", f"{left}: the summary of this job has them")
    return [*shown[: MOST - 1], rest]


def _failure(group: Alike, links: Links) -> Annotation:
    result = group.first
    told = excerpt(clean(result.output), OUTPUT_LINES).told() if result.output.strip() else []
    lines = [clip(line, WIDTH) for line in (one_line(result.message), *told)]
    others = len(group.others)
    title = clip(one_line(f"{summary.label(result.outcome)}: {result.nodeid}"), WIDTH)
    text = "\n".join(line for line in lines if line.strip()) or summary.where_text(result)
    if others:
        title = f"{title} and {group.more}"
        names = [clip(one_line(other.nodeid), WIDTH) for other in group.others[: summary.NAMED]]
        more = [f"and {others - summary.NAMED} more"] if others > summary.NAMED else []
        text = "\n".join([text, f"The same error in {group.more}:", *names, *more])
    file = links.path(result.file)
    return Annotation("error", title, text, file, (result.line or 0) if file else 0)


def _unfinished(group: summary.Group) -> Annotation:
    first = clip(one_line(group.results[0].nodeid), WIDTH)
    title = f"not finished: {summary.group_title(group)}"
    why = one_line(group.message) or "no reason given"
    return Annotation("error", title, f"{clip(why, WIDTH)}\nfirst: {first}")
