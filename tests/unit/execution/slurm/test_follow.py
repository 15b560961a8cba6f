"""How often the queue is asked, and what a shard is said to do."""

from dataclasses import replace

import pytest

from gpuci.execution.log import LogReader
from gpuci.execution.slurm.attempt import Attempt, Do, Step
from gpuci.execution.slurm.follow import (
    ENDING_SECONDS,
    FIRST_SECONDS,
    LONGEST_SECONDS,
    MOST_ENDING,
    QUEUE_SECONDS,
    RUNNING_SECONDS,
    Clock,
    state_of,
    worth_telling,
)
from gpuci.execution.slurm.states import QueueRow
from gpuci.model import ShardState

TOKEN = "0123456789abcdef" * 2
ZERO = 1_000.0


def new(state: str = "", reason: str = "None", node: str = "gpu001", **fields: object) -> Attempt:
    row = QueueRow("17", "job", state, reason, node, "") if state else None
    made = Attempt(1, 1, "job", TOKEN, "", (), LogReader(TOKEN), submitted=5.0, row=row)
    return replace(made, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        pytest.param(new(submitted=None), ShardState("planned"), id="not submitted yet"),
        pytest.param(new(), ShardState("submitted", since=1005.0), id="submitted and not seen"),
        pytest.param(new("PENDING", node=""), ShardState("waiting", "", 1005.0), id="not looked at"),
        pytest.param(
            new("PENDING", "Resources", ""), ShardState("waiting", "Resources", 1005.0), id="waits for GPUs"
        ),
        pytest.param(new("RUNNING"), ShardState("running", "gpu001"), id="runs"),
        pytest.param(
            new("COMPLETED"), ShardState("running", "gpu001, its results are fetched"), id="its job is over"
        ),
        pytest.param(new("CANCELLED", node=""), ShardState("running"), id="over before it ran"),
    ],
)
def test_where_a_shard_is(attempt: Attempt, expected: ShardState) -> None:
    assert state_of(attempt, ZERO) == expected


def test_while_all_wait_it_is_asked_ever_more_seldom_and_a_change_ends_that() -> None:
    clock = Clock()
    seconds = [clock.interval([new("PENDING", "Priority")], news=False) for _ in range(12)]
    assert seconds[0] == FIRST_SECONDS
    assert sorted(seconds) == seconds
    assert seconds[-1] == LONGEST_SECONDS
    assert clock.interval([new("CONFIGURING")], news=False) == FIRST_SECONDS


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [
        ([new("PENDING"), new("RUNNING", began=7.0)], RUNNING_SECONDS),
        ([new("PENDING", claim="17")], RUNNING_SECONDS),
        ([new("RUNNING", began=7.0), new("COMPLETED", terminal_since=9.0)], ENDING_SECONDS),
    ],
    ids=["one runs", "one began, which the queue does not know yet", "one is about to be over"],
)
def test_seconds_between_polls(attempts: list[Attempt], seconds: float) -> None:
    assert Clock().interval(attempts, news=False) == seconds


RUNS = new("RUNNING", began=7.0)


def test_while_all_run_slurm_is_asked_now_and_then() -> None:
    clock = Clock()
    asked = [now for now in range(20) if clock.asks_queue([RUNS, RUNS], float(now))]
    assert asked == list(range(0, 20, int(QUEUE_SECONDS)))


@pytest.mark.parametrize(
    "other",
    [new(), new("PENDING"), new("RUNNING", began=7.0, terminal_since=9.0), new("PENDING", claim="17")],
    ids=["submitted", "waits", "about to be over", "began, which the queue does not know yet"],
)
def test_while_one_does_not_run_slurm_is_asked_each_time(other: Attempt) -> None:
    clock = Clock()
    assert [clock.asks_queue([RUNS, other], now) for now in (0.0, 0.1)] == [True, True]


def test_when_a_log_ends_slurm_is_asked_at_once() -> None:
    clock = Clock()
    assert clock.asks_queue([RUNS], 0.0)
    assert not clock.asks_queue([RUNS], 1.0)
    ending = new("RUNNING", began=7.0, ending=Step(Do.FINISH))
    assert clock.interval([ending], news=True) == 0.0
    assert clock.asks_queue([ending], 1.1)
    assert clock.interval([ending], news=False) == ENDING_SECONDS


def test_after_a_silence_slurm_is_asked_at_once() -> None:
    clock = Clock()
    assert clock.asks_queue([RUNS], 0.0)
    clock.silent(1.0)
    assert clock.asks_queue([RUNS], 2.0)


def test_a_job_that_takes_long_to_be_over_is_looked_at_less_often() -> None:
    clock = Clock()
    ending = [new("COMPLETING", began=7.0, terminal_since=9.0)]
    seconds = [clock.interval(ending, news=False) for _ in range(MOST_ENDING + 1)]
    assert (seconds[0], seconds[-2], seconds[-1]) == (ENDING_SECONDS, ENDING_SECONDS, RUNNING_SECONDS)
    clock.interval([new("RUNNING", began=7.0)], news=False)
    assert clock.interval(ending, news=False) == ENDING_SECONDS


@pytest.mark.parametrize(
    ("attempt", "now", "told"),
    [
        pytest.param(new("PENDING", "Priority"), 6.0, "", id="a moment after its submission"),
        pytest.param(new("PENDING", "Priority"), 15.0, "Priority", id="for a while"),
        pytest.param(
            new("PENDING", "PartitionDown"), 15.0, "", id="for ever: that is told, and ended, elsewhere"
        ),
        pytest.param(new("RUNNING"), 15.0, "", id="it runs"),
        pytest.param(new(), 15.0, "", id="not seen yet"),
    ],
)
def test_why_a_shard_waits_is_told_when_it_does(attempt: Attempt, now: float, told: str) -> None:
    assert worth_telling(attempt, now) == told


def test_leases_that_are_short_are_renewed_in_time() -> None:
    clock = Clock(lease_seconds=8.0)
    waiting = [clock.interval([new("PENDING", "Priority")], news=False) for _ in range(12)]
    assert max(waiting) == 2.0
    assert max(clock.backoff() for _ in range(12)) == 2.0
