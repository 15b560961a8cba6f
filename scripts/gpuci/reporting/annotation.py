"""A report -> annotations within GitHub's limits, the rest counted. Pure; the writer escapes them.

Source: docs.github.com, "Workflow commands": 10 errors and 10 warnings a step, 50 a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpuci.model import Report, TestResult
from gpuci.reporting import summary
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
    errors = [_failure(result, links) for result in summary.failing(report)]
    errors += [_unfinished(group) for group in summary.unfinished(report)]
    warnings = [Annotation("warning", "gpuci", clip(one_line(text), 4 * WIDTH)) for text in report.warnings]
    return [*_cut(errors, "failure"), *_cut(warnings, "warning")]


def _cut(found: Sequence[Annotation], noun: str) -> list[Annotation]:
    if len(found) <= MOST:
        return list(found)
    left = plural(len(found) - MOST + 1, f"more {noun}")
    rest = Annotation(found[0].kind, "gpuci", f"{left}: the summary of this job has them")
    return [*found[: MOST - 1], rest]


def _failure(result: TestResult, links: Links) -> Annotation:
    told = excerpt(clean(result.output), OUTPUT_LINES).told() if result.output.strip() else []
    lines = [clip(line, WIDTH) for line in (one_line(result.message), *told)]
    title = clip(one_line(f"{summary.label(result.outcome)}: {result.nodeid}"), WIDTH)
    text = "\n".join(line for line in lines if line.strip()) or summary.where_text(result)
    file = links.path(result.file)
    return Annotation("error", title, text, file, (result.line or 0) if file else 0)


def _unfinished(group: summary.Group) -> Annotation:
    first = clip(one_line(group.results[0].nodeid), WIDTH)
    title = f"not finished: {summary.group_title(group)}"
    why = one_line(group.message) or "no reason given"
    return Annotation("error", title, f"{clip(why, WIDTH)}\nfirst: {first}")
