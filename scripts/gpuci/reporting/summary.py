"""What a person asks of a report, as values: used by every rendering. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gpuci.model import LearnedNeed, Report, ShardReport, TestResult, TryReport
from gpuci.reporting.alike import Alike, alike
from gpuci.reporting.text import duration, plural
from gpuci.results.reconcile import NEVER_STARTED
from gpuci.results.verdict import placeless
from gpuci_node.contract import OUTCOMES, RAN_OUTCOMES, RED_OUTCOMES

# Verdicts of a shard that need no reason beside them: the tests are the reason.
COMMON_VERDICTS = frozenset({"passed", "failed"})
# How a run that has this verdict is called in a sentence.
HEADLINES = {
    "config_error": "not run: configuration error",
    "unauthorized": "wait for approval",
    "cancelled": "cancelled",
    "failed": "failed",
    "timeout": "not finished in time",
    "infra": "not finished: the infrastructure failed",
    "preempted": "not finished: the cluster took a node away",
    "queue_timeout": "not started in time",
    "passed": "passed",
}
SIGNS = {"passed": "✅", "unauthorized": "⏸️"}  # without approval nothing failed: somebody has to act
NAMED = 5
NOTES_TITLE = "Not forked"
NOTES_ADVICE = "imported anew in each process: slower, but no result changed"
NEEDS_ADVICE = "plan them right with --durations report.json, or with a mark on the test"


class Group(NamedTuple):
    """Results that share one explanation."""

    message: str
    results: tuple[TestResult, ...]


class GpuTime(NamedTuple):
    """GPU-seconds of all shards."""

    used: float
    idle: float

    @property
    def percent_used(self) -> float:
        """0 to 100; 0 if there was no GPU time."""
        total = self.used + self.idle
        return 100.0 * self.used / total if total else 0.0


def counts_text(counts: dict[str, int]) -> str:
    """`2 failed, 236 passed, 12 skipped`, worst first; `no tests` if empty."""
    return ", ".join(_count(name, counts[name]) for name in OUTCOMES if counts.get(name)) or "no tests"


def _count(outcome: str, count: int) -> str:
    # `errors` are things, `failed` is what happened to a test.
    return plural(count, label(outcome)) if outcome.endswith("error") else f"{count} {label(outcome)}"


def sign(verdict: str) -> str:
    """What a heading shows before the verdict."""
    return SIGNS.get(verdict, "❌")


def label(outcome: str) -> str:
    """An outcome or a verdict in words: `not finished`, `queue timeout`."""
    return outcome.replace("_", " ")


def said_by_counts(report: Report) -> bool:
    """Whether the counts say already why the verdict is what it is: every shard ended as it should."""
    common = all(row.verdict in COMMON_VERDICTS for row in report.shards)
    red = any(report.counts.get(outcome) for outcome in RED_OUTCOMES)
    return report.verdict == "passed" or (report.verdict == "failed" and common and red)


def reason_text(report: Report) -> str:
    """Why the verdict is what it is, without the counts, which stand above it; without escaping."""
    red = {outcome: count for outcome, count in report.counts.items() if outcome in RED_OUTCOMES}
    return report.reason.removeprefix(f"{counts_text(red)}; ")


def needs_no_reason(row: ShardReport, report: Report, head: str) -> bool:
    """Whether a shard's row can do without its reason: its tests are it, or the report's `head` tells it.

    There it stands once for all shards that broke in the same way, with the node and paths of the first.
    """
    if row.verdict in COMMON_VERDICTS or not row.reason:
        return True
    same = (
        one for one in report.shards if placeless(one.reason, one.node) == placeless(row.reason, row.node)
    )
    return any(one.reason in head for one in same)


def time_text(report: Report) -> str:
    """`in 41.2 s (set-up 3.10 s)`."""
    setup = f" (set-up {duration(report.setup_seconds)})" if report.setup_seconds else ""
    return f"in {duration(report.seconds)}{setup}"


def failing(report: Report) -> list[TestResult]:
    """The red tests that have something to show, worst first."""
    red = [result for result in report.tests if _has_details(result)]
    return sorted(red, key=lambda result: OUTCOMES.index(result.outcome))


def alike_failing(report: Report) -> list[Alike]:
    """`failing`, those with the same error together."""
    return alike(failing(report))


def unfinished(report: Report) -> list[Group]:
    """The other red tests, those of one shard and reason together, by shard.

    Not those of a shard in which nothing began: why it did not is the cause of all, and told with the shard.
    """
    idle = _never_began(report)
    rest = [
        result
        for result in report.tests
        if result.outcome in RED_OUTCOMES and not _has_details(result) and result.shard not in idle
    ]
    groups: dict[tuple[int | None, str], list[TestResult]] = {}
    for result in rest:
        groups.setdefault((result.shard, result.message), []).append(result)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0] is None, item[0][0] or 0))
    return [Group(message, tuple(results)) for (_shard, message), results in ordered]


def _never_began(report: Report) -> set[int]:
    """The shards that broke before any of their tests was collected or began."""
    broken = {row.index for row in report.shards if row.verdict not in COMMON_VERDICTS and row.reason}
    began = {
        result.shard
        for result in report.tests
        if result.outcome in RAN_OUTCOMES
        or _has_details(result)
        or result.slot
        or result.message == NEVER_STARTED
    }
    return {index for index in broken if index not in began}


def _has_details(result: TestResult) -> bool:
    return result.outcome in RED_OUTCOMES and (result.outcome != "not_finished" or bool(result.output))


def slowest(report: Report, count: int) -> list[TestResult]:
    """The tests that took longest, longest first; those that took no time are left out."""
    timed = [result for result in report.tests if result.seconds > 0]
    return sorted(timed, key=lambda result: -result.seconds)[:count]


def left_out(report: Report, outcome: str) -> list[tuple[str, int]]:
    """(reason, number of tests) for the tests of an outcome, most frequent first."""
    reasons = Counter(result.message for result in report.tests if result.outcome == outcome)
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))


def gpu_time(shards: Iterable[ShardReport]) -> GpuTime:
    """The sum over all shards."""
    rows = list(shards)
    return GpuTime(sum(row.gpu_seconds_used for row in rows), sum(row.gpu_seconds_idle for row in rows))


def gpu_hours(report: Report) -> float:
    """GPUs of each job x the time that it had them, all tries and attempts; what a cluster bills."""
    return (sum(row.gpus * row.wall_seconds for row in report.shards) + report.earlier_gpu_seconds) / 3600


def cost_text(report: Report) -> str:
    """`12.3 GPU-hours held, $41.20 at $3.35 per GPU-hour`; empty if no job had a GPU."""
    hours = gpu_hours(report)
    if not hours:
        return ""
    price = report.usd_per_gpu_hour
    held = f"{_hours(hours)} GPU-hours held"
    if report.earlier_gpu_seconds:
        held += f" ({_hours(report.earlier_gpu_seconds / 3600)} of them in earlier attempts of this run)"
    return held if price is None else f"{held}, ${hours * price:.2f} at ${price:.2f} per GPU-hour"


def _hours(hours: float) -> str:
    return f"{hours:.1f}" if hours >= 0.95 else f"{hours:.2g}"


def queue_text(report: Report) -> str:
    """`longest wait in the queue 3 min 05 s`; empty if none waited."""
    longest = max((row.queue_seconds for row in report.shards), default=0.0)
    return f"longest wait in the queue {duration(longest)}" if longest else ""


def highest_peak(report: Report) -> TestResult | None:
    """The test that took most GPU memory, as far as nodes could tell; None if no test took any."""
    measured = [result for result in report.tests if result.peak_memory_bytes]
    return max(measured, key=lambda result: result.peak_memory_bytes or 0, default=None)


def coverage_advice(report: Report) -> str:
    """How to read the coverage data of all shards as one."""
    if len(report.coverage) == 1:
        return "coverage report --data-file=FILE shows it"
    return "coverage combine --keep FILES makes one of them"


def without_cuda(report: Report) -> list[TestResult]:
    """The tests that passed on a GPU and are known to have used none, longest first."""
    idle = [
        result
        for result in report.tests
        if result.outcome == "passed" and result.gpus and result.cuda_used is False
    ]
    return sorted(idle, key=lambda result: -result.seconds)


def without_cuda_advice(results: Iterable[TestResult]) -> str:
    """What the tests of `without_cuda` cost, and what to do."""
    seconds = sum(result.seconds * len(result.gpus) for result in results)
    return (
        f"passed without CUDA, {seconds:.1f} GPU-seconds: mode cpu leaves the GPUs to others"
        ' ("cuda_used" in report.json names all)'
    )


def place_text(result: TestResult) -> str:
    """`FILE:LINE`, as far as known; without escaping."""
    return f"{result.file}:{result.line}" if result.line is not None else result.file


def where_text(result: TestResult) -> str:
    """`failed, shard 2, gw3, GPU 3, 1.20 s`; without escaping."""
    parts = [label(result.outcome)]
    if result.shard is not None:
        parts.append(f"shard {result.shard}" if result.shard else "cpu pool")
    if result.attempt > 1:
        parts.append(f"try {result.attempt}")
    if result.slot:
        parts.append(result.slot)
    if result.gpus:
        parts.append(f"{'GPU' if len(result.gpus) == 1 else 'GPUs'} {' '.join(result.gpus)}")
    if result.seconds:
        parts.append(duration(result.seconds))
    return ", ".join(parts)


def group_title(group: Group) -> str:
    """`5 tests of shard 2`; the message stands beside it."""
    shard = group.results[0].shard
    of = "" if shard is None else f" of shard {shard}" if shard else " of the cpu pool"
    return f"{plural(len(group.results), 'test')}{of}"


def tried_again(report: Report) -> list[ShardReport]:
    """The shards that needed more than one try."""
    return [row for row in report.shards if len(row.history) > 1]


def tries_text(report: Report) -> str:
    """`1 shard was tried twice (gpu003: NODE_FAIL); 34 tests were rescued by the second try`, or empty.

    What rescued no test is not said. Without escaping.
    """
    rows = tried_again(report)
    if not rows:
        return ""
    twice = all(len(row.history) == 2 for row in rows)
    why = list(dict.fromkeys(_lost_try(row, lost) for row in rows for lost in row.history[:-1]))
    more = f" and {len(why) - NAMED} more" if len(why) > NAMED else ""
    rescued = sum(row.rescued for row in rows)
    tried = (
        f"{plural(len(rows), 'shard')} {'was' if len(rows) == 1 else 'were'} tried"
        f" {'twice' if twice else 'again'} ({', '.join(why[:NAMED])}{more})"
    )
    if not rescued:
        return tried
    by = "the second try" if twice else "later tries"
    return f"{tried}; {plural(rescued, 'test')} {'was' if rescued == 1 else 'were'} rescued by {by}"


def _lost_try(row: ShardReport, lost: TryReport) -> str:
    """What a try that did not count came to: `gpu003: NODE_FAIL`."""
    where = lost.node or (f"shard {row.index}" if row.index else "cpu pool")
    return f"{where}: {lost.reason or label(lost.verdict)}"


def try_text(row: TryReport) -> str:
    """`try 1 on gpu003: infra, NODE_FAIL, 12 tests`; without escaping."""
    node = f" on {row.node}" if row.node else ""
    reason = "" if row.verdict in COMMON_VERDICTS else row.reason
    parts = filter(None, [label(row.verdict), reason, plural(row.tests, "test")])
    return f"try {row.attempt}{node}: {', '.join(parts)}"


def differing(report: Report) -> list[tuple[str, LearnedNeed]]:
    """(function id or node id, need) of what this run learned and its plan did not know, widest first."""
    new = [(nodeid, need) for nodeid, need in report.needs.items() if need.planned is not None]
    return sorted(new, key=lambda entry: (not entry[1].alone, -entry[1].gpus, entry[0]))


def need_text(need: LearnedNeed) -> str:
    """`1 -> 8 GPUs: mark require_cuda_8gpu seen on the node`; without escaping."""
    gpus = "the node alone" if need.alone else plural(need.gpus, "GPU")
    return f"{need.planned} -> {gpus}: {need.because}"
