"""What the runner does with a try, by what the queue, the job directory and the log say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.execution.log import LogReader
from gpuci.execution.slurm import attempt as module
from gpuci.execution.slurm.attempt import Attempt, Do, Step, advance, own_row
from gpuci.execution.slurm.names import comment, key_of
from gpuci.execution.slurm.states import QueueRow

TOKEN = "0123456789abcdef" * 2
KEY = key_of(TOKEN)
TIMEOUT = 7200.0


def new(**fields: object) -> Attempt:
    made = Attempt(
        1, 1, "job", TOKEN, KEY, (), LogReader(TOKEN), submit_at=None, submitted=0.0, submissions=1
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def row(
    state: str, reason: str = "None", *, name: str = "job", key: str = KEY, job_id: str = "17"
) -> QueueRow:
    return QueueRow(job_id, name, state, reason, "gpu001", comment("o/r", "1", "abc", "", key))


def over(attempt: Attempt, code: int = 0) -> Attempt:
    attempt.take_log(b'gpuci-frame %s {"kind":"over","code":%d}\n' % (TOKEN.encode(), code), 0.0)
    return attempt


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], None),
        ([row("RUNNING", name="other")], None),
        ([row("RUNNING", key="f" * 16)], None),
        ([row("COMPLETED", job_id="18"), row("PENDING", job_id="17")], "17"),
        ([row("RUNNING", job_id="17"), row("PENDING", job_id="18")], "18"),
        ([row("FAILED", job_id="9"), row("COMPLETED", job_id="10")], "10"),
        ([row("PENDING", job_id="9+0"), row("PENDING", job_id="10_[1-3]")], "10_[1-3]"),
    ],
    ids=[
        "none",
        "another name",
        "another key",
        "one that is not over",
        "the newer",
        "the newest that is over",
        "ids of parts of jobs",
    ],
)
def test_a_job_is_known_by_name_and_key(rows: list[QueueRow], expected: str | None) -> None:
    found = own_row(new(), rows)
    assert (found and found.job_id) == expected


def test_of_two_jobs_the_one_that_has_the_claim_is_ours() -> None:
    found = own_row(new(claim="9"), [row("COMPLETED", job_id="9"), row("PENDING", job_id="10")])
    assert found is not None
    assert found.job_id == "9"


def test_a_queue_that_does_not_answer_says_nothing() -> None:
    attempt = new(row=row("RUNNING"))
    assert advance(attempt, None, 1e6, TIMEOUT).do is Do.WAIT


@pytest.mark.parametrize(
    "state", ["RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "PENDING", "SOMETHING_NEW"]
)
def test_a_job_that_is_not_over_is_waited_for(state: str) -> None:
    assert advance(new(), [row(state)], 10.0, TIMEOUT).do is Do.WAIT


def test_a_job_that_is_over_with_a_whole_log_is_finished_at_once() -> None:
    assert advance(over(new()), [row("COMPLETED")], 10.0, TIMEOUT) == Step(Do.FINISH)


def test_a_job_that_is_over_is_given_time_for_the_rest_of_its_log() -> None:
    attempt = new(claim="17")
    attempt.take_log(b"something\n", 10.0)
    assert advance(attempt, [row("NODE_FAIL")], 10.0, TIMEOUT).do is Do.WAIT
    attempt.take_log(b"more\n", 15.0)
    assert advance(attempt, [row("NODE_FAIL")], 15.0 + module.QUIET_SECONDS - 1, TIMEOUT).do is Do.WAIT
    assert advance(attempt, [row("NODE_FAIL")], 15.0 + module.QUIET_SECONDS, TIMEOUT).do is Do.FINISH


def test_a_log_that_ended_waits_for_the_state() -> None:
    assert advance(over(new()), [row("COMPLETING")], 10.0, TIMEOUT).do is Do.WAIT
    assert advance(over(new()), None, 10.0, TIMEOUT).do is Do.WAIT


@pytest.mark.parametrize(
    "reason", ["PartitionTimeLimit", "PartitionConfig", "PartitionNodeLimit", "PartitionDown"]
)
def test_a_reason_to_wait_for_ever_cancels_when_it_is_seen_twice(reason: str) -> None:
    attempt = new()
    assert advance(attempt, [row("PENDING", reason)], 1.0, TIMEOUT).do is Do.WAIT
    step = advance(attempt, [row("PENDING", reason)], 2.0, TIMEOUT)
    assert (step.do, bool(step.verdict)) == (Do.CANCEL, True)


def test_a_time_limit_that_is_too_long_is_told() -> None:
    attempt = new()
    attempt.asked = ("--nodes=1", "--time=0:30:00")
    advance(attempt, [row("PENDING", "PartitionTimeLimit")], 1.0, TIMEOUT)
    step = advance(attempt, [row("PENDING", "PartitionTimeLimit")], 2.0, TIMEOUT)
    assert step.reason.endswith(" (PartitionTimeLimit) (asked for --time=0:30:00)")


@pytest.mark.parametrize("reason", ["Resources", "Priority", "BeginTime", "QOSMaxGRESPerUser", "JobHeldUser"])
def test_other_reasons_wait_until_the_queue_time_out(reason: str) -> None:
    attempt = new()
    for now in (1.0, 2.0, TIMEOUT):
        assert advance(attempt, [row("PENDING", reason)], now, TIMEOUT).do is Do.WAIT
    step = advance(attempt, [row("PENDING", reason)], TIMEOUT + 1, TIMEOUT)
    assert (step.do, step.verdict) == (Do.CANCEL, "queue_timeout")


def test_a_job_that_may_not_have_been_made_is_submitted_again_when_the_queue_does_not_know_it() -> None:
    attempt = new()
    assert advance(attempt, [], 1.0, TIMEOUT).do is Do.WAIT
    assert advance(attempt, None, 100.0, TIMEOUT).do is Do.WAIT
    assert advance(attempt, [], 1.0 + module.SETTLE_SECONDS, TIMEOUT).do is Do.SUBMIT


def test_a_job_that_the_controller_lost_is_submitted_again_if_it_never_began() -> None:
    attempt = new()
    advance(attempt, [row("PENDING")], 1.0, TIMEOUT)
    assert advance(attempt, [], 2.0, TIMEOUT).do is Do.WAIT
    assert advance(attempt, [], 2.0 + module.LOST_SECONDS - 1, TIMEOUT).do is Do.WAIT
    assert advance(attempt, [], 2.0 + module.LOST_SECONDS, TIMEOUT).do is Do.SUBMIT


def test_a_job_that_began_and_that_the_queue_lost_is_not_run_twice_but_judged_by_what_else_is_known() -> None:
    attempt = new(claim="17", row=row("RUNNING"))
    advance(attempt, [], 2.0, TIMEOUT)
    assert advance(attempt, [], 2.0 + module.LOST_SECONDS, TIMEOUT) == Step(Do.FINISH)


def test_a_job_that_runs_on_without_its_controller_is_followed_by_its_log() -> None:
    attempt = new(claim="17", row=row("RUNNING"))
    for now in range(0, 600, 30):
        attempt.take_log(b"line\n", float(now))
        assert advance(attempt, [], float(now), TIMEOUT).do is Do.WAIT
    assert advance(over(attempt), [], 601.0, TIMEOUT).do is Do.FINISH


def test_submissions_come_to_an_end() -> None:
    attempt = new(submissions=module.MOST_SUBMISSIONS)
    advance(attempt, [], 1.0, TIMEOUT)
    assert advance(attempt, [], 100.0, TIMEOUT).verdict == "infra"


def test_what_another_runner_took_over_is_left_to_it() -> None:
    step = advance(new(held_by="other", claim="17"), [row("RUNNING")], 1.0, TIMEOUT)
    assert (step.do, step.verdict) == (Do.FINISH, "infra")


def test_a_cancelled_job_is_followed_until_it_is_over() -> None:
    attempt = new(claim="17", ending=Step(Do.CANCEL, "the run was cancelled", "cancelled"))
    assert attempt.is_to_cancel(1.0, 10.0)
    attempt.cancelled_at = 1.0
    assert not attempt.is_to_cancel(5.0, 10.0)
    assert attempt.is_to_cancel(11.0, 10.0)
    assert advance(attempt, [row("COMPLETING")], 2.0, TIMEOUT).do is Do.WAIT
    over(attempt)
    assert advance(attempt, [row("CANCELLED")], 3.0, TIMEOUT).do is Do.FINISH
    assert not attempt.is_to_cancel(30.0, 10.0)


def test_a_cancelled_job_that_may_still_be_made_is_waited_for() -> None:
    attempt = new(ending=Step(Do.CANCEL, "the run was cancelled", "cancelled"))
    assert advance(attempt, [], module.SETTLE_SECONDS, TIMEOUT).do is Do.WAIT  # it was not withdrawn yet
    attempt.cancelled_at = 1.0
    assert advance(attempt, [], module.SETTLE_SECONDS - 1, TIMEOUT).do is Do.WAIT
    assert advance(attempt, [], module.SETTLE_SECONDS, TIMEOUT).do is Do.FINISH


def test_a_job_that_was_refused_is_not_waited_for() -> None:
    attempt = new(submitted=None, ending=Step(Do.FINISH, "no such partition", "config_error"))
    assert advance(attempt, [], 1.0, TIMEOUT).do is Do.FINISH
    assert advance(attempt, None, 1.0, TIMEOUT).do is Do.FINISH


def test_a_job_that_was_cancelled_before_it_began_is_finished_at_once() -> None:
    attempt = new(ending=Step(Do.CANCEL, "the run was cancelled", "cancelled"))
    assert advance(attempt, [row("CANCELLED")], 3.0, TIMEOUT).do is Do.FINISH


def test_a_job_that_began_too_late_to_begin_is_finished_at_once() -> None:
    ending = Step(Do.CANCEL, "the run was cancelled", "cancelled")
    attempt = new(ending=ending, withdrawn=True)
    attempt.take_log(b"gpuci: job 17 leaves at once: job withdrawn has it\n", 3.0)
    assert advance(attempt, [row("FAILED")], 3.0, TIMEOUT).do is Do.FINISH


@given(
    st.lists(
        st.tuples(
            st.one_of(
                st.none(), st.sampled_from(["PENDING", "RUNNING", "COMPLETED", "FAILED", "NODE_FAIL", ""])
            ),
            st.floats(0.1, 40.0),
            st.binary(max_size=3),
        ),
        max_size=40,
    )
)
def test_nothing_is_submitted_again_that_ran(events: list[tuple[str | None, float, bytes]]) -> None:
    attempt, now, ran = new(), 0.0, False
    for state, seconds, data in events:
        now += seconds
        attempt.take_log(data, now)
        ran = ran or bool(data)
        rows = None if state is None else [row(state)] if state else []
        step = advance(attempt, rows, now, TIMEOUT)
        assert not (ran and step.do is Do.SUBMIT)
        if step.do is Do.FINISH:
            return


@pytest.mark.parametrize("rows", [None, [row("COMPLETING")]], ids=["controller away", "completing"])
def test_a_job_whose_log_ended_is_not_waited_for_without_end(rows: list[QueueRow] | None) -> None:
    attempt = over(new(claim="17"))
    assert advance(attempt, rows, module.END_SECONDS - 1, TIMEOUT).do is Do.WAIT
    step = advance(attempt, rows, module.END_SECONDS, TIMEOUT)
    assert (step.do, step.verdict) == (Do.FINISH, "infra")
