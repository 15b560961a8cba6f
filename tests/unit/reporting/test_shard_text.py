"""What the step of a shard says beside its log."""

from __future__ import annotations

import pytest

from gpuci.execution.slurm.limits import Limits
from gpuci.model import Report, ShardReport, TestResult
from gpuci.reporting import shard_text


@pytest.mark.parametrize(
    ("limits", "queue", "run"),
    [
        ({1: Limits(3600, 1800)}, "1 h 00 min in the queue", "30 min 00 s of running"),
        ({1: Limits(60, 0)}, "1 min 00 s in the queue", "no limit of running"),
        ({1: Limits(60, 1800), 2: Limits(60, 3600)}, "1 min 00 s in", "30 min 00 s to 1 h 00 min of"),
    ],
    ids=["one", "none", "a span"],
)
def test_limits_are_told_with_their_settings(limits: dict[int, Limits], queue: str, run: str) -> None:
    text = shard_text.limits(limits)
    assert queue in text
    assert run in text
    assert "slurm.queue-timeout" in text
    assert "slurm.time-limit" in text


def report(row: ShardReport, *tests: TestResult) -> Report:
    """Of one shard."""
    return Report(row.verdict, row.reason, {}, tests, (row,))


def test_a_good_shard_is_one_line() -> None:
    row = ShardReport(3, "passed", 60.0, 41.2, queue_seconds=12.0, node="gpu7", tests=120)
    assert shard_text.markdown(report(row)).strip() == (
        "✅ **shard 3 passed** (120 tests in 41.2 s, 12.0 s in the queue, on <code>gpu7</code>)"
    )


def test_failing_tests_are_named_up_to_a_number() -> None:
    row = ShardReport(1, "failed", 60.0, 41.2, tests=30, tries=2)
    failed = [TestResult(f"a.py::test_{number}", "failed", shard=1) for number in range(30)]
    text = shard_text.markdown(report(row, *failed))
    assert "2 tries" in text
    assert text.count("a&#46;py&#58;&#58;test") == shard_text.NAMED
    assert f"and {30 - shard_text.NAMED} more tests" in text


def test_nothing_of_a_cluster_or_a_test_is_markup() -> None:
    hostile = "<b>@all</b> `x` [y](z) ::error:: ##[error]"
    row = ShardReport(1, "infra", 60.0, 0.0, node=hostile, reason=hostile)
    text = shard_text.markdown(report(row, TestResult(hostile, "failed", shard=1)))
    for part in ("<b>", "@all", "`", "](", "::error", "##["):
        assert part not in text


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        (["deselected"] * 10, "**shard 2: no test ran**, 10 deselected (0.50 s)"),
        (["deselected", "skipped"], "**shard 2: no test ran**, 1 skipped, 1 deselected (0.50 s)"),
        (["deselected", "passed"], "✅ **shard 2 passed** (2 tests in 0.50 s)"),
    ],
    ids=["deselected", "and skipped", "one ran"],
)
def test_a_shard_that_ran_no_test_does_not_say_that_tests_passed(outcomes: list[str], told: str) -> None:
    row = ShardReport(2, "passed", 60.0, 0.5, tests=len(outcomes))
    tests = [TestResult(f"a.py::test_{number}", name, shard=2) for number, name in enumerate(outcomes)]
    assert shard_text.markdown(report(row, *tests)).strip() == told
