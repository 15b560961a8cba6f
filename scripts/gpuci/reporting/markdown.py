"""The summary as GitHub Markdown, for a step summary or a comment. Pure.

All untrusted text stands in inline code or in a code block. GitHub drops a step summary above 1 MiB,
so this one is cut by us, and says what was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuci.model import Report, ShardReport
from gpuci.reporting import failing_markdown, summary
from gpuci.reporting.links import Links
from gpuci.reporting.text import clip, duration, guard, one_line, plural, short_code, size, utf8_size
from gpuci.results.verdict import shard_name

LEAST_BYTES = 16_384
SLOWEST = 10
ROWS = 20
_NOTE_BYTES = 200
_HEAD_WIDTH = 300


def render(
    report: Report,
    *,
    limit_bytes: int = 1_000_000,
    links: Links | None = None,
    remarks: Sequence[str] = (),
) -> str:
    """The summary in at most `limit_bytes` of UTF-8; raises ValueError for a limit below LEAST_BYTES.

    The failing tests come right after the verdict, but are the first to be cut. With `links` their lines are
    linked. `remarks` are Markdown of our own, a paragraph each, to stand below the verdict.
    """
    if limit_bytes < LEAST_BYTES:
        raise ValueError(f"a summary needs at least {LEAST_BYTES} bytes")
    head = _verdict(report) + "".join(f"{remark}\n\n" for remark in remarks)
    room = limit_bytes - utf8_size(head) - _NOTE_BYTES
    sections = _sections(report)
    tail = _fit(sections, room)
    failing = failing_markdown.render(summary.alike_failing(report), links, room - sum(map(utf8_size, tail)))
    cut = failing_markdown.cut_note(len(sections) - len(tail), "section")
    return guard("".join([head, failing, *tail, cut]))


def _fit(blocks: Iterable[str], room: int) -> list[str]:
    """The first blocks that fit into `room` bytes."""
    kept: list[str] = []
    for block in blocks:
        room -= utf8_size(block)
        if room < 0:
            break
        kept.append(block)
    return kept


def _verdict(report: Report) -> str:
    times = ", ".join(filter(None, [summary.time_text(report), summary.queue_text(report)]))
    lines = [
        f"## {summary.sign(report.verdict)} GPU tests {summary.HEADLINES[report.verdict]}",
        "",
        f"**{summary.counts_text(report.counts)}** {times}",
        "",
    ]
    if not summary.said_by_counts(report):
        lines += [short_code(_head(report)), ""]
    return "\n".join([*lines, ""])


def _head(report: Report) -> str:
    """Why the verdict is what it is, as long as it is shown."""
    return clip(one_line(summary.reason_text(report)), _HEAD_WIDTH)


def _sections(report: Report) -> list[str]:
    """Everything behind the failing tests, each section small; what is left out is counted."""
    shards = _shards(report)
    sections = (
        _unfinished(report),
        _listed(report.warnings, "Warnings"),
        _folded(shards) if _calm(report) else shards,
        _folded(_needs(report)),
        _folded(_without_cuda(report)),
        _folded(_listed(report.notes, summary.NOTES_TITLE, f"{summary.NOTES_ADVICE}\n")),
        _folded(_slowest(report)),
        *(_folded(_left_out(report, outcome)) for outcome in ("skipped", "deselected", "elsewhere")),
    )
    return [section for section in sections if section]


def _calm(report: Report) -> bool:
    """Whether all shards just ran: then their table is a matter of interest, not of alarm."""
    return all(row.tries <= 1 and row.verdict in ("passed", "failed") for row in report.shards)


def _folded(section: str) -> str:
    """A section behind its title: people see the verdict and what failed, and open the rest."""
    title, _, rest = section.partition("\n\n")
    shown = title.removeprefix("### ")
    return f"<details><summary>{shown}</summary>\n\n{rest}</details>\n\n" if section else ""


def _unfinished(report: Report) -> str:
    groups = summary.unfinished(report)
    rows = [
        f"| {summary.group_title(group)} | {short_code(group.message, 100)}"
        f" | {short_code(group.results[0].nodeid, 100)} |"
        for group in groups
    ]
    return _table(
        f"Not finished ({sum(len(group.results) for group in groups)})", "tests | why | first", rows
    )


def _shards(report: Report) -> str:
    rows = [_shard(row, told=summary.needs_no_reason(row, report, _head(report))) for row in report.shards]
    table = _table("Shards", "shard | verdict | tests: | planned: | took: | queued: | tries: | node", rows)
    return table + _tries(report) + _gpu_time(report) + _gpu_memory(report) + _coverage(report)


def _tries(report: Report) -> str:
    """The one sentence, and below it every try of those shards."""
    text = summary.tries_text(report)
    if not text:
        return ""
    rows = [
        f"- {short_code(f'{shard_name(row.index)}, {summary.try_text(one)}', 200)}"
        for row in summary.tried_again(report)
        for one in row.history
    ]
    return "\n".join([short_code(text), "", *rows[:ROWS], *_more(rows), "", ""])


def _gpu_time(report: Report) -> str:
    time = summary.gpu_time(report.shards)
    known = time.used or time.idle
    cost = summary.cost_text(report)
    if cost:
        share = f"; tests used {time.percent_used:.0f} % of what these shards held" if known else ""
        return f"GPU time: {cost}{share}\n\n"
    share = f"({time.percent_used:.0f} % used)"
    return f"GPU-seconds: {time.used:.1f} used, {time.idle:.1f} idle {share}\n\n" if known else ""


def _gpu_memory(report: Report) -> str:
    peak = summary.highest_peak(report)
    if peak is None:
        return ""
    return (
        f"GPU memory: highest peak {size(peak.peak_memory_bytes or 0)} in {short_code(peak.nodeid, 150)}\n\n"
    )


def _coverage(report: Report) -> str:
    if not report.coverage:
        return ""
    shown = ", ".join(short_code(path, 150) for path in report.coverage[:ROWS])
    rest = f" and {len(report.coverage) - ROWS} more" if len(report.coverage) > ROWS else ""
    return f"Coverage data: {shown}{rest} ({summary.coverage_advice(report)})\n\n"


def _shard(row: ShardReport, *, told: bool) -> str:
    """`told`: its reason stands elsewhere."""
    times = " | ".join(map(_unbroken, (row.planned_seconds, row.wall_seconds, row.queue_seconds)))
    name = str(row.index) if row.index else "cpu pool"
    why = "" if told else f" {short_code(row.reason, 60)}"
    node = short_code(row.node, 40) if row.node else ""
    return f"| {name} | {summary.label(row.verdict)}{why} | {row.tests} | {times} | {row.tries} | {node} |"


def _slowest(report: Report) -> str:
    rows = [
        f"| {_unbroken(result.seconds)} | {short_code(result.nodeid, 150)} |"
        for result in summary.slowest(report, SLOWEST)
    ]
    return _table("Slowest tests", "took: | test", rows)


def _left_out(report: Report, outcome: str) -> str:
    reasons = summary.left_out(report, outcome)
    rows = [f"| {count} | {short_code(reason or 'no reason given', 150)} |" for reason, count in reasons]
    total = sum(count for _reason, count in reasons)
    return _table(f"{summary.label(outcome).capitalize()} ({total})", "tests: | why", rows)


def _needs(report: Report) -> str:
    differing = summary.differing(report)
    rows = [
        f"| {short_code(nodeid, 150)} | {short_code(summary.need_text(need), 150)} |"
        for nodeid, need in differing
    ]
    title = f"Needs differ from the plan ({plural(len(rows), 'test')})"
    table = _table(title, "test | planned -> needed", rows)
    return f"{table}{summary.NEEDS_ADVICE}\n\n" if table else ""


def _without_cuda(report: Report) -> str:
    results = summary.without_cuda(report)
    rows = [f"| {_unbroken(result.seconds)} | {short_code(result.nodeid, 150)} |" for result in results]
    table = _table(f"On a GPU without using it ({plural(len(rows), 'test')})", "took: | test", rows)
    return f"{table}{summary.without_cuda_advice(results)}\n\n" if table else ""


def _listed(texts: Sequence[str], title: str, *head: str) -> str:
    if not texts:
        return ""
    shown = [f"- {short_code(text)}" for text in texts[:ROWS]]
    return "\n".join([f"### {title} ({len(texts)})", "", *head, *shown, *_more(texts), "", ""])


def _unbroken(seconds: float) -> str:
    """A time on one line, also in a narrow column."""
    return duration(seconds).replace(" ", "&nbsp;")


def _table(title: str, columns: str, rows: Sequence[str]) -> str:
    """`columns`: their titles; those of numbers end with a colon, and stand to the right."""
    if not rows:
        return ""
    rule = " | ".join("---:" if name.strip().endswith(":") else "---" for name in columns.split("|"))
    table = [f"| {columns.replace(':', '')} |", f"| {rule} |", *rows[:ROWS]]
    return "\n".join([f"### {title}", "", *table, *_more(rows), "", ""])


def _more(rows: Sequence[str]) -> list[str]:
    return ["", f"and {len(rows) - ROWS} more"] if len(rows) > ROWS else []
