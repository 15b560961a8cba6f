"""Plan and runs -> the report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gpuci.model import Plan, Report, ShardReport, ShardRun, TestResult, TryReport
from gpuci.results.cost import gpus_of, held, price
from gpuci.results.coverage import coverage_files
from gpuci.results.facts import Facts, gather
from gpuci.results.journal import is_number
from gpuci.results.needs import learn_needs
from gpuci.results.notes import find_notes
from gpuci.results.ownership import CPU_POOL, Ownership
from gpuci.results.reconcile import conclude
from gpuci.results.tries import job_record, node_of, verdict_of
from gpuci.results.verdict import ShardVerdict, run_verdict, shard_verdicts
from gpuci.results.warnings import find_warnings
from gpuci_node.contract import count_outcomes


def build_report(
    plan: Plan,
    runs: Sequence[ShardRun],
    *,
    seconds: float,
    setup_seconds: float,
    elsewhere: bool = False,
    warnings: Sequence[str] = (),
    part: bool = False,
    replaced: Sequence[ShardRun] = (),
) -> Report:
    """Reconcile, judge and sum up a run.

    `runs` are all tries of all shards; `seconds` is the wall time of the run without the set-up, and
    `elsewhere` says that another job runs the cpu units, `part` that other jobs run the other shards. Of
    `replaced`, tries of earlier attempts of the run on GitHub, only the time that they held GPUs counts.
    """
    own = Ownership(plan)
    facts = gather(own, runs)
    results = conclude(plan, own, facts, elsewhere=elsewhere)
    verdict, reason = run_verdict(plan, results, runs, part=part)
    return Report(
        verdict=verdict,
        reason=reason,
        counts=count_outcomes(result.outcome for result in results),
        tests=results,
        shards=tuple(
            _shard_row(plan, shard, _tries(runs, shard.index), _of_shard(results, shard.index), facts)
            for shard in shard_verdicts(plan, results, runs)
        ),
        warnings=(*warnings, *find_warnings(own, results, runs, facts)),
        seconds=seconds,
        setup_seconds=setup_seconds,
        sha=plan.sha,
        needs=learn_needs(plan.needs, own, facts, runs),
        coverage=coverage_files(plan, runs),
        notes=find_notes(runs),
        usd_per_gpu_hour=price(plan),
        earlier_gpu_seconds=held(plan, replaced),
    )


def _of_shard(results: Iterable[TestResult], index: int) -> list[TestResult]:
    return [result for result in results if result.shard == index]


def _tries(runs: Iterable[ShardRun], index: int) -> list[ShardRun]:
    return sorted((run for run in runs if run.index == index), key=lambda run: run.attempt)


def _shard_row(
    plan: Plan, shard: ShardVerdict, tries: Sequence[ShardRun], results: Sequence[TestResult], facts: Facts
) -> ShardReport:
    """One row; wall, queue and GPU-seconds are the sums over all tries."""
    gpu_seconds = [_gpu_seconds(run) for run in tries]
    used = sum(used for used, _total in gpu_seconds)
    first = Counter(facts.first.get(result.nodeid) for result in results)
    return ShardReport(
        index=shard.index,
        verdict=shard.verdict,
        planned_seconds=_planned_seconds(plan, shard.index, tries),
        wall_seconds=sum(run.wall_seconds for run in tries),
        queue_seconds=sum(run.queue_seconds for run in tries),
        tries=len(tries),
        node=", ".join(dict.fromkeys(filter(None, map(node_of, tries)))),
        tests=len(results),
        gpu_seconds_used=used,
        gpu_seconds_idle=max(0.0, sum(total for _used, total in gpu_seconds) - used),
        reason=shard.reason,
        history=tuple(_try_row(run, first[run.attempt]) for run in tries),
        rescued=sum(count for attempt, count in first.items() if attempt and attempt > 1),
        gpus=gpus_of(plan, shard.index, tries),
    )


def _try_row(run: ShardRun, tests: int) -> TryReport:
    verdict, reason = verdict_of(run)
    return TryReport(run.attempt, verdict, reason, node_of(run), run.wall_seconds, run.queue_seconds, tests)


def _planned_seconds(plan: Plan, index: int, tries: Sequence[ShardRun]) -> float:
    """The plan's figure for a shard; for the cpu pool its work spread over the slots that it had."""
    if index != CPU_POOL:
        return sum(shard.expected_seconds for shard in plan.shards if shard.index == index)
    expected = {unit.id: unit.expected_seconds for unit in plan.units}
    work = [expected.get(unit, 0.0) for unit in plan.cpu_units]
    slots = max([1, *(int(job_record(run).get("slots", 1)) for run in tries)])
    return max([sum(work) / slots, *work])


def _gpu_seconds(run: ShardRun) -> tuple[float, float]:
    """(used, total) as the verdict says; without one, from the journal: tests' seconds x their GPUs."""
    said = run.verdict.get("gpu_seconds") if run.verdict else None
    if isinstance(said, dict) and is_number(said.get("used")) and is_number(said.get("total")):
        return float(said["used"]), float(said["total"])
    used = sum(
        sum(record.get("seconds", {}).values()) * len(record.get("gpus", ()))
        for record in run.records
        if record["kind"] == "end"
    )
    return used, max(used, run.wall_seconds * len(job_record(run).get("gpus", ())))
