"""The verdict of a run: a table over what the tests say and what the shards say. Pure.

A red test is a fact: the run has failed, whatever became of other shards, and its reason names those too. A
shard that does not answer is `infra`: absence is not success. A test that did not finish because its shard
broke is that shard's verdict, not a test failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from gpuci.model import Plan, ShardRun, TestResult
from gpuci.results.ownership import CPU_POOL
from gpuci.results.tries import node_of, verdict_of
from gpuci_node.contract import RAN_OUTCOMES, RED_OUTCOMES, VERDICTS, count_outcomes


class Tests(Enum):
    """What the tests of a run say together."""

    __test__ = False

    RED = "a test is red"
    GREEN = "tests ran, none is red"
    NONE = "no test ran"


class RunVerdict(NamedTuple):
    """A verdict of the contract and one line that says why."""

    verdict: str
    reason: str


@dataclass(frozen=True)
class ShardVerdict:
    """What one shard says, after all of its tries."""

    index: int
    verdict: str
    reason: str = ""
    node: str = ""


# worst verdict of a shard -> (a test is red, tests ran and none is red, no test ran)
TABLE: Mapping[str, tuple[str, str, str]] = {
    "failed": ("failed", "failed", "failed"),
    "config_error": ("failed", "config_error", "config_error"),
    "unauthorized": ("failed", "unauthorized", "unauthorized"),
    "cancelled": ("failed", "cancelled", "cancelled"),
    "timeout": ("failed", "timeout", "timeout"),
    "infra": ("failed", "infra", "infra"),
    "preempted": ("failed", "preempted", "preempted"),
    "queue_timeout": ("failed", "queue_timeout", "queue_timeout"),
    "passed": ("failed", "passed", "failed"),
}
_COLUMNS: tuple[Tests, ...] = (Tests.RED, Tests.GREEN, Tests.NONE)
NOTHING_RAN = "no test passed or failed"
SELECTION = "the selection (-k, node.pytest-args)"
NOTHING_MATCHED = f"{SELECTION} matched no test"


def run_verdict(
    plan: Plan, results: Sequence[TestResult], runs: Sequence[ShardRun], *, part: bool = False
) -> RunVerdict:
    """Decide the verdict of a run. `results` come from `reconcile`, `runs` are all tries of all shards.

    `part`: these are some shards of a run. One may have nothing that is selected, or that does not skip;
    whether the run tested anything is for who has all of them.
    """
    shards = shard_verdicts(plan, results, runs)
    worst = min((shard.verdict for shard in shards), key=VERDICTS.index, default="passed")
    tests = judge_tests(results, shards)
    verdict = decide(worst, Tests.GREEN if part and tests is Tests.NONE else tests)
    return RunVerdict(verdict, _reason(verdict, tests, results, shards))


def decide(worst_shard: str, tests: Tests) -> str:
    """Look the verdict up; raises KeyError for a verdict that is not of the contract."""
    return TABLE[worst_shard][_COLUMNS.index(tests)]


def judge_tests(results: Sequence[TestResult], shards: Sequence[ShardVerdict]) -> Tests:
    """Say what the tests say; `not_finished` counts as red only where the shard itself is well."""
    broken = {shard.index for shard in shards if shard.verdict not in {"passed", "failed"}}
    if any(_is_red(result, broken) for result in results):
        return Tests.RED
    return Tests.GREEN if any(result.outcome in RAN_OUTCOMES for result in results) else Tests.NONE


def shard_verdicts(
    plan: Plan, results: Sequence[TestResult], runs: Sequence[ShardRun]
) -> tuple[ShardVerdict, ...]:
    """What each shard of the plan says in its last try, by index; the cpu pool too if it was to run here."""
    last: dict[int, ShardRun] = {}
    for run in runs:
        if run.index not in last or run.attempt >= last[run.index].attempt:
            last[run.index] = run
    due = {shard.index for shard in plan.shards} | set(last)
    due |= {CPU_POOL for result in results if result.shard == CPU_POOL and result.outcome == "not_finished"}
    return tuple(
        ShardVerdict(index, *verdict_of(last[index]), node_of(last[index]))
        if index in last
        else ShardVerdict(index, "infra", "it never ran")
        for index in sorted(due)
    )


def shard_name(index: int) -> str:
    """What people call a shard."""
    return "cpu pool" if index == CPU_POOL else f"shard {index}"


def shard_names(indexes: Sequence[int]) -> str:
    """`shard 3`, `shards 1-3, 7`, `cpu pool`, `shards 1-3, cpu pool`; the indexes are in order, 0 last."""
    shards = [index for index in indexes if index]
    pool = [shard_name(0)] if len(shards) < len(indexes) else []
    runs: list[list[int]] = []
    for index in shards:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    spans = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    word = [f"{'shard' if len(shards) == 1 else 'shards'} {', '.join(spans)}"] if spans else []
    return ", ".join([*word, *pool])


def _is_red(result: TestResult, broken: set[int]) -> bool:
    if result.outcome == "not_finished":
        return result.shard not in broken
    return result.outcome in RED_OUTCOMES


def _reason(verdict: str, tests: Tests, results: Sequence[TestResult], shards: Sequence[ShardVerdict]) -> str:
    parts: list[str] = []
    if tests is Tests.RED:
        counts = count_outcomes(result.outcome for result in results)
        parts.append(
            ", ".join(_counted(name, count) for name, count in counts.items() if name in RED_OUTCOMES)
        )
    elif tests is Tests.NONE and all(shard.verdict in ("passed", "failed") for shard in shards):
        parts.append(_why_none(results))
    parts += _of_shards([shard for shard in shards if not (shard.verdict == "failed" and tests is Tests.RED)])
    return "; ".join(parts) or f"all shards {verdict}"


def _counted(outcome: str, count: int) -> str:
    """`2 failed`, `2 errors`: errors are things, `failed` is what happened to a test."""
    return f"{count} {outcome.replace('_', ' ')}{'s' if outcome.endswith('error') and count > 1 else ''}"


def _why_none(results: Sequence[TestResult]) -> str:
    """Why shards that are well ran no test."""
    left_out = sum(result.outcome == "deselected" for result in results)
    if not left_out:
        return NOTHING_RAN
    return NOTHING_MATCHED if left_out == len(results) else f"{NOTHING_RAN}; {SELECTION} left out {left_out}"


def _of_shards(shards: Sequence[ShardVerdict]) -> list[str]:
    """What the shards that did not pass say; those that say the same, together, in the words of the first."""
    same: dict[str, tuple[str, list[int]]] = {}
    for shard in sorted(shards, key=lambda shard: (not shard.index, shard.index)):
        if shard.verdict != "passed":
            because = f" ({shard.reason})" if shard.reason else ""
            told = f"{shard.verdict.replace('_', ' ')}{because}"
            same.setdefault(placeless(told, shard.node), (told, []))[1].append(shard.index)
    return [f"{shard_names(indexes)}: {what}" for what, indexes in same.values()]


def placeless(text: str, node: str) -> str:
    """A reason without the node and the files that it names: what it has in common with those of others."""
    names = rf"(?<![\w.-]){re.escape(node)}(?![\w-])|" if node else ""
    return re.sub(rf"{names}(?<!\S)[\"'(]*/\S*", "*", text)
