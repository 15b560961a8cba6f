"""What the step of one shard, or of all of them, says beside its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuci.execution.slurm.limits import Limits
from gpuci.model import Report, ShardReport
from gpuci.reporting import summary
from gpuci.reporting.text import duration, plural, short_code
from gpuci.results.verdict import shard_name
from gpuci_node.contract import RAN_OUTCOMES, count_outcomes

NAMED = 20


def limits(by_shard: Mapping[int, Limits]) -> str:
    """How long the jobs may wait and run, with the settings that say so."""
    queue = _span(limit.queue for limit in by_shard.values())
    run = _span(float(limit.run) for limit in by_shard.values())
    return f"limits of a job: {queue} in the queue (slurm.queue-timeout), {run} of running (slurm.time-limit)"


def _span(seconds: Iterable[float]) -> str:
    found = sorted(set(seconds)) or [0.0]
    least, most = ("no limit" if value == 0 else duration(value) for value in (found[0], found[-1]))
    return least if least == most else f"{least} to {most}"


def markdown(report: Report) -> str:
    """A summary for the page of the run, where many shards stand below each other: short."""
    failing = summary.failing(report)
    named = [f"- {_code(result.nodeid)} {summary.label(result.outcome)}" for result in failing[:NAMED]]
    if len(failing) > NAMED:
        named.append(f"- and {plural(len(failing) - NAMED, 'more test')}")
    return "\n".join([*(_line(row, _ran_none(report, row)) for row in report.shards), "", *named, ""])


def _ran_none(report: Report, row: ShardReport) -> str:
    """What became of the tests of a shard that is good though none ran: `10 deselected`; else empty."""
    outcomes = [result.outcome for result in report.tests if result.shard == row.index]
    if row.verdict != "passed" or not outcomes or RAN_OUTCOMES & set(outcomes):
        return ""
    return summary.counts_text(count_outcomes(outcomes))


def _line(row: ShardReport, ran_none: str) -> str:
    sign = summary.sign(row.verdict)
    took = duration(row.wall_seconds)
    parts = [took if ran_none else f"{plural(row.tests, 'test')} in {took}"]
    parts += [f"{duration(row.queue_seconds)} in the queue"] if row.queue_seconds else []
    parts += [f"on {_code(row.node)}"] if row.node else []
    parts += [f"{row.tries} tries"] if row.tries > 1 else []
    if ran_none:
        return f"**{shard_name(row.index)}: no test ran**, {ran_none} ({', '.join(parts)})\n"
    why = f": {_code(row.reason)}" if row.reason and row.verdict not in summary.COMMON_VERDICTS else ""
    return f"{sign} **{shard_name(row.index)} {summary.label(row.verdict)}**{why} ({', '.join(parts)})\n"


def _code(text: str) -> str:
    return short_code(text, 150)
