"""What the step of one shard, or of all of them, says beside its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuci.execution.slurm.limits import Limits
from gpuci.model import Report, ShardReport
from gpuci.reporting import summary
from gpuci.reporting.text import duration, plural, short_code
from gpuci.results.verdict import shard_name

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
    return "\n".join([*map(_line, report.shards), "", *named, ""])


def _line(row: ShardReport) -> str:
    sign = summary.sign(row.verdict)
    parts = [f"{plural(row.tests, 'test')} in {duration(row.wall_seconds)}"]
    parts += [f"{duration(row.queue_seconds)} in the queue"] if row.queue_seconds else []
    parts += [f"on {_code(row.node)}"] if row.node else []
    parts += [f"{row.tries} tries"] if row.tries > 1 else []
    why = f": {_code(row.reason)}" if row.reason and row.verdict not in summary.COMMON_VERDICTS else ""
    return f"{sign} **{shard_name(row.index)} {summary.label(row.verdict)}**{why} ({', '.join(parts)})\n"


def _code(text: str) -> str:
    return short_code(text, 150)
