"""The summary that ends a run on a terminal or in a log. Pure; plain ASCII of our own, colour on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuci.model import Report, ShardReport, TestResult
from gpuci.reporting import summary
from gpuci.reporting.alike import Alike, title
from gpuci.reporting.text import (
    clean,
    clip,
    clip_middle,
    duration,
    excerpt,
    guard,
    gutter,
    one_line,
    plural,
    size,
    width_of,
    wrap,
)

OUTPUT_LINES = 12
DETAILED = 25
SLOWEST = 10
REASONS = 20
_BOLD, _RED, _GREEN = "1", "31", "32"


def render(report: Report, *, width: int = 80, colour: bool = False, verbose: bool = False) -> str:
    """The summary as lines of at most `width` columns (at least 40), ended by a line end.

    Without `verbose` the output of a test is cut to its last lines and long lists are cut and counted.
    Lines that start with `   | ` hold output of tests. Escape sequences are in it only with `colour`.
    """
    page = _Page(max(40, width), colour, verbose)
    lines = [
        *_verdict(report, page),
        *_failing(report, page),
        *_unfinished(report, page),
        *_slowest(report, page),
        *_shards(report, page),
        *_left_out(report, page),
        *_needs(report, page),
        *_without_cuda(report, page),
        *_notes(report, page),
        *_warnings(report, page),
    ]
    return guard("\n".join(lines)) + "\n"


class _Page:
    """How to print: width in columns, colour or not, everything or the gist."""

    def __init__(self, width: int, colour: bool, verbose: bool) -> None:
        self.width = width
        self.colour = colour
        self.verbose = verbose

    def paint(self, text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.colour else text

    def title(self, text: str) -> list[str]:
        return ["", self.paint(clip(text, self.width), _BOLD)]

    def some(self, count: int) -> int | None:
        """A limit for lists: none if everything is wanted."""
        return None if self.verbose else count


def _verdict(report: Report, page: _Page) -> Iterator[str]:
    word = report.verdict.upper().replace("_", " ")
    code = _GREEN if report.verdict == "passed" else _RED
    counts, time = f"{word}  {summary.counts_text(report.counts)}", summary.time_text(report)
    together = width_of(counts) + 1 + width_of(time) <= page.width
    first, *rest = wrap(f"{counts} {time}" if together else counts, page.width, rest="  ")
    yield page.paint(word, _BOLD, code) + " " + first[len(word) :]
    yield from rest
    if not together:
        yield from wrap(time, page.width, first="  ", rest="  ")
    if not summary.said_by_counts(report):
        yield from wrap(one_line(summary.reason_text(report)), page.width, first="  ", rest="  ")


def _failing(report: Report, page: _Page) -> Iterator[str]:
    groups = list(map(Alike, summary.failing(report))) if page.verbose else summary.alike_failing(report)
    if not groups:
        return
    yield from page.title(title(groups))
    shown = groups[: page.some(DETAILED)]
    for number, group in enumerate(shown, 1):
        yield from _failure(number, group.first, page)
        yield from _others(group, page)
    rest = [result for group in groups[len(shown) :] for result in (group.first, *group.others)]
    if rest:
        more = f"{plural(len(rest), 'more failing test')}, without their output:"
        yield from wrap(more, page.width, first="  ", rest="  ")
    for result in rest:
        yield "  " + clip_middle(one_line(result.nodeid), page.width - 2)


def _failure(number: int, result: TestResult, page: _Page) -> Iterator[str]:
    mark = f"{number}. "
    indent = " " * len(mark)
    room = page.width - len(mark)
    yield mark + page.paint(clip_middle(one_line(result.nodeid), room), _BOLD, _RED)
    place = clip_middle(one_line(summary.place_text(result)), room)
    where = one_line(summary.where_text(result))
    if width_of(place) + 2 + width_of(where) <= room:
        yield f"{indent}{place}  {where}"
    else:
        yield indent + place
        yield from wrap(where, page.width, first=indent, rest=indent)
    if result.message:
        yield from wrap(clip(one_line(result.message), 4 * room), page.width, first=indent, rest=indent)
    yield from _output(result, page)


def _others(group: Alike, page: _Page) -> Iterator[str]:
    if group.others:
        yield f"   The same error in {group.more}:"
        yield from _names((result.nodeid for result in group.others), len(group.others), page)


def _output(result: TestResult, page: _Page) -> Iterator[str]:
    shown = excerpt(clean(result.output), page.some(OUTPUT_LINES))
    yield from gutter(shown.told(), page.width, "   | ")


def _unfinished(report: Report, page: _Page) -> Iterator[str]:
    groups = summary.unfinished(report)
    if not groups:
        return
    yield from page.title(f"Not finished ({sum(len(group.results) for group in groups)})")
    for group in groups:
        head = f"{summary.group_title(group)}: {one_line(group.message) or 'no reason given'}"
        yield from wrap(head, page.width, first="  ", rest="  ")
        yield from _names((result.nodeid for result in group.results), len(group.results), page)


def _names(nodeids: Iterable[str], count: int, page: _Page) -> Iterator[str]:
    limit = count if page.verbose else summary.NAMED
    for _, nodeid in zip(range(limit), nodeids, strict=False):
        yield "    " + clip_middle(one_line(nodeid), page.width - 4)
    if count > limit:
        yield f"    and {count - limit} more"


def _slowest(report: Report, page: _Page) -> Iterator[str]:
    results = summary.slowest(report, 3 * SLOWEST if page.verbose else SLOWEST)
    if not results:
        return
    yield from page.title("Slowest tests")
    for result in results:
        took = f"  {duration(result.seconds):>11}  "
        yield took + clip_middle(one_line(result.nodeid), page.width - len(took))


def _shards(report: Report, page: _Page) -> Iterator[str]:
    if not report.shards:
        return
    yield from page.title("Shards")
    titles = f"  {'shard':<8} {'verdict':<13} {'tests':>6} {'planned':>10} {'took':>10} {'queued':>10}  node"
    yield clip(titles, page.width)
    for row in report.shards:
        yield from _shard(row, page, told=summary.needs_no_reason(row, report, report.reason))
    time = summary.gpu_time(report.shards)
    if time.used or time.idle:
        used = f"GPU-seconds: {time.used:.1f} used, {time.idle:.1f} idle ({time.percent_used:.0f} % used)"
        yield from wrap(used, page.width, first="  ", rest="  ")
    peak = summary.highest_peak(report)
    if peak is not None:
        head = f"GPU memory: highest peak {size(peak.peak_memory_bytes or 0)} in "
        name = clip_middle(one_line(peak.nodeid), max(30, page.width - len(head) - 2))
        yield from wrap(head + name, page.width, first="  ", rest="    ")
    yield from _coverage(report, page)
    tries = one_line(summary.tries_text(report))
    if tries:
        yield from wrap(tries, page.width, first="  ", rest="    ")


def _coverage(report: Report, page: _Page) -> Iterator[str]:
    shown = report.coverage[: page.some(summary.NAMED)]
    if shown:
        rest = f" and {len(report.coverage) - len(shown)} more" if len(shown) < len(report.coverage) else ""
        files = f"Coverage data: {', '.join(map(one_line, shown))}{rest}"
        yield from wrap(f"{files} ({summary.coverage_advice(report)})", page.width, first="  ", rest="    ")


def _shard(row: ShardReport, page: _Page, *, told: bool) -> Iterator[str]:
    """The row; `told`: its reason stands above."""
    name = str(row.index) if row.index else "cpu pool"
    line = (
        f"  {name:<8} {summary.label(row.verdict):<13} {row.tests:>6} {duration(row.planned_seconds):>10}"
        f" {duration(row.wall_seconds):>10} {duration(row.queue_seconds):>10}  "
    )
    yield clip((line + one_line(row.node)).rstrip(), page.width)
    reason = [] if told else [row.reason]
    more = list(map(summary.try_text, row.history)) if len(row.history) > 1 else reason
    for text in map(one_line, more):
        yield from wrap(text, page.width, first=" " * 11, rest=" " * 13)


def _left_out(report: Report, page: _Page) -> Iterator[str]:
    for outcome, name in (("skipped", "Skipped"), ("deselected", "Deselected"), ("elsewhere", "Elsewhere")):
        reasons = summary.left_out(report, outcome)
        if not reasons:
            continue
        yield from page.title(f"{name} ({sum(count for _reason, count in reasons)})")
        shown = reasons[: page.some(REASONS)]
        for reason, count in shown:
            text = one_line(reason) or "no reason given"
            yield from wrap(text, page.width, first=f"  {count:>5}  ", rest=" " * 9)
        if len(shown) < len(reasons):
            rest = reasons[len(shown) :]
            yield f"  {sum(count for _reason, count in rest):>5}  for {plural(len(rest), 'other reason')}"


def _needs(report: Report, page: _Page) -> Iterator[str]:
    differing = summary.differing(report)
    if not differing:
        return
    yield from page.title(f"Needs differ from the plan ({plural(len(differing), 'test')})")
    shown = differing[: page.some(summary.NAMED)]
    for nodeid, need in shown:
        yield "  " + clip_middle(one_line(nodeid), page.width - 2)
        text = one_line(summary.need_text(need))
        yield from wrap(clip(text, 3 * page.width), page.width, first="    ", rest="    ")
    if len(shown) < len(differing):
        yield f"  and {len(differing) - len(shown)} more"
    yield from wrap(summary.NEEDS_ADVICE, page.width, first="  ", rest="  ")


def _without_cuda(report: Report, page: _Page) -> Iterator[str]:
    results = summary.without_cuda(report)
    if not results:
        return
    yield from page.title(f"On a GPU without using it ({plural(len(results), 'test')})")
    yield from wrap(summary.without_cuda_advice(results), page.width, first="  ", rest="  ")
    yield from _names((result.nodeid for result in results), len(results), page)


def _notes(report: Report, page: _Page) -> Iterator[str]:
    if not report.notes:
        return
    yield from page.title(f"{summary.NOTES_TITLE} ({len(report.notes)})")
    yield from wrap(summary.NOTES_ADVICE, page.width, first="  ", rest="  ")
    shown = report.notes[: page.some(summary.NAMED)]
    for note in shown:
        yield from wrap(one_line(note), page.width, first="  - ", rest="    ")
    if len(shown) < len(report.notes):
        yield f"    and {len(report.notes) - len(shown)} more"


def _warnings(report: Report, page: _Page) -> Iterator[str]:
    if not report.warnings:
        return
    yield from page.title(f"Warnings ({len(report.warnings)})")
    shown = report.warnings[: page.some(REASONS)]
    for warning in shown:
        yield from wrap(one_line(warning), page.width, first="  - ", rest="    ")
    if len(shown) < len(report.warnings):
        yield f"    and {len(report.warnings) - len(shown)} more"
