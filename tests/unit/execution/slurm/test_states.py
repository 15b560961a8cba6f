"""What squeue, scontrol and sacct print. The lines are those of Slurm 22.05, but for the paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.execution.slurm import states
from gpuci.execution.slurm.answers import Garbled
from gpuci.execution.slurm.names import comment, key_of
from gpuci.execution.slurm.states import (
    NOT_STARTED,
    RUNNING,
    TERMINAL,
    JobFacts,
    QueueRow,
    from_accounting,
    is_terminal,
    is_waiting,
    parse_job,
    parse_queue,
    reason_text,
    verdict_of_reason,
    waits_for_ever,
)
from gpuci_node.contract import EXIT_CODES

NAME = "gpuci-org.repo-17-a1-s1-t1"
KEY = key_of("0" * 32)
COMMENT = comment("org/repo", "17", "a" * 40, "alice", KEY)
SCONTROL = (
    f"JobId=5 JobName={NAME} UserId=ci(1001) GroupId=ci(1001) MCS_label=N/A Priority=4294901755 Nice=0 "
    "Account=ciacct QOS=normal JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=0 Restarts=0 "
    "BatchFlag=1 Reboot=0 ExitCode=3:0 RunTime=00:00:00 TimeLimit=00:30:00 TimeMin=N/A "
    "SubmitTime=2026-02-28T23:59:50 EligibleTime=2026-02-28T23:59:50 AccrueTime=2026-02-28T23:59:50 "
    "StartTime=2026-03-01T00:00:05 EndTime=2026-03-01T00:01:05 Deadline=N/A "
    "PreemptEligibleTime=2026-03-01T00:00:05 PreemptTime=None SuspendTime=None SecsPreSuspend=0 "
    "LastSchedEval=2026-03-01T00:00:05 Scheduler=Backfill Partition=gpu AllocNode:Sid=localhost:9497 "
    "ReqNodeList=(null) ExcNodeList=(null) NodeList=gpu001 BatchHost=gpu001 NumNodes=1 NumCPUs=1 NumTasks=1 "
    "CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=1,mem=1000M,node=1,billing=1,gres/gpu=1 Socks/Node=* "
    "NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryCPU=1000M MinTmpDiskNode=0 Features=(null) "
    "DelayBoot=00:00:00 OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null) "
    f"Command=/shared/st 1%j/job.sh WorkDir=/shared/st 1%j Comment={COMMENT}  "
    "StdErr=/shared/st 1%5/slurm.out StdIn=/dev/null StdOut=/shared/st 1%5/slurm.out Power= "
    "KillOInInvalidDependent=Yes TresPerNode=gres:gpu:1 \n"
)
FACTS = JobFacts(
    job_id="5",
    name=NAME,
    state="FAILED",
    reason="NonZeroExitCode",
    exit_code=3,
    signal=0,
    node="gpu001",
    restarts=0,
    submit_time=1772323190.0,
    start_time=1772323205.0,
    end_time=1772323265.0,
    comment=COMMENT,
)


def changed(**values: str) -> str:
    """The line of scontrol with other values."""
    line = SCONTROL
    for key, value in values.items():
        before, _, after = line.partition(f" {key}=")
        line = f"{before} {key}={value} {after.partition(' ')[2]}"
    return line


def test_no_state_is_two_things() -> None:
    assert not TERMINAL & NOT_STARTED
    assert not TERMINAL & RUNNING
    assert not NOT_STARTED & RUNNING


@pytest.mark.parametrize("state", ["COMPLETING", "STAGE_OUT", "SIGNALING", "?", "", "completed", "NEW_IN_99"])
def test_what_is_not_known_to_be_over_is_not_over(state: str) -> None:
    assert not is_terminal(state)
    assert not is_waiting(state)


@pytest.mark.parametrize("state", ["PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"])
def test_a_job_that_has_not_started_waits(state: str) -> None:
    assert is_waiting(state)
    assert not is_terminal(state)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (
            f"5|{NAME}|FAILED|NonZeroExitCode|gpu001|{COMMENT}",
            QueueRow("5", NAME, "FAILED", "NonZeroExitCode", "gpu001", COMMENT),
        ),
        (
            f"6|{NAME}|PENDING|ReqNodeNotAvail, UnavailableNodes:gpu009||{COMMENT}",
            QueueRow("6", NAME, "PENDING", "ReqNodeNotAvail, UnavailableNodes:gpu009", "", COMMENT),
        ),
        ("7|other|RUNNING|None|gpu002|(null)", QueueRow("7", "other", "RUNNING", "None", "gpu002", "")),
        ("8_[1-4%2]|x|PENDING|Priority||a|b", QueueRow("8_[1-4%2]", "x", "PENDING", "Priority", "", "a|b")),
        ("9|x|?|None||", QueueRow("9", "x", "?", "None", "", "")),
    ],
    ids=["over", "waits", "no comment", "array", "unknown state"],
)
def test_rows_of_squeue(line: str, row: QueueRow) -> None:
    assert parse_queue(line + "\n") == (row,)


def test_what_else_squeue_says_is_no_row() -> None:
    text = f"squeue: warning: a|b|c|d|e|f\n\nWelcome to login1\n5|{NAME}|RUNNING|None|gpu001|{COMMENT}\n"
    assert [row.job_id for row in parse_queue(text)] == ["5"]


@given(st.text())
def test_any_text_gives_rows_or_none(text: str) -> None:
    assert all(row.job_id[0].isdecimal() for row in parse_queue(text))


def test_a_line_of_scontrol() -> None:
    assert parse_job(SCONTROL) == FACTS


def test_other_lines_around_it_do_not_matter() -> None:
    assert parse_job(f"scontrol: warning: something\n{SCONTROL}") == FACTS


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        (changed(ExitCode="0:15"), "signal", 15),
        (changed(ExitCode="128:0"), "exit_code", 128),
        (changed(JobState="RUNNING"), "exit_code", None),
        (changed(JobState="RUNNING"), "signal", None),
        (changed(Restarts="2"), "restarts", 2),
        (changed(NodeList="(null)"), "node", ""),
        (changed(StartTime="Unknown"), "start_time", None),
        (changed(StartTime="2026-00-00T00:00:00"), "start_time", None),
        (changed(SubmitTime="Sat23:59"), "submit_time", None),
        (changed(Reason="ReqNodeNotAvail,_x:gpu009"), "reason", "ReqNodeNotAvail,_x:gpu009"),
        (changed(StartTime="2026-03-01T00:00:05 NewKey=x y AnotherNew=1"), "start_time", FACTS.start_time),
        (SCONTROL.replace(f"Comment={COMMENT} ", "AdminComment=Comment is SystemComment=y "), "comment", ""),
        (SCONTROL.replace(f"Comment={COMMENT}  ", ""), "comment", ""),
    ],
)  # fmt: skip
def test_values_of_scontrol(line: str, field: str, value: object) -> None:
    assert getattr(parse_job(line), field) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slurm_load_jobs error: Invalid job id specified",
        SCONTROL * 2,
        changed(JobName="x JobState=COMPLETED ExitCode=0:0"),
        changed(Comment="x Reason=None"),
    ],
    ids=["nothing", "an error", "two jobs", "a name like keys", "a comment like keys"],
)
def test_what_is_not_about_one_job_is_no_answer(text: str) -> None:
    with pytest.raises(Garbled):
        parse_job(text)


@pytest.mark.parametrize(
    ("text", "state", "by", "code"),
    [
        (f"5|{NAME}|COMPLETED|gpu001|{COMMENT}", "COMPLETED", "", 0),
        (f"5|{NAME}|FAILED|gpu001|{COMMENT}", "FAILED", "", None),
        (f"5|{NAME}|CANCELLED by 1001|gpu001|{COMMENT}", "CANCELLED", "1001", None),
        (f"5|{NAME}|CANCELLED+|gpu001|{COMMENT}", "CANCELLED", "", None),
        (f"5|{NAME}|OUT_OF_MEMORY|gpu001|", "OUT_OF_MEMORY", "", None),
        (f"4|{NAME}|NODE_FAIL|gpu001|{COMMENT}\n5|{NAME}|COMPLETED|gpu002|{COMMENT}", "COMPLETED", "", 0),
    ],
    ids=["0", "exit codes are not believed", "cancelled", "cut", "no comments", "the last"],
)
def test_accounting_knows_the_state(text: str, state: str, by: str, code: int | None) -> None:
    facts = from_accounting(text + "\n", NAME, KEY)
    assert facts is not None
    assert (facts.state, facts.cancelled_by, facts.exit_code) == (state, by, code)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Slurm accounting storage is disabled",
        f"5|other|COMPLETED|gpu001|{COMMENT}",
        f"5|{NAME}|COMPLETED|gpu001|{COMMENT.replace(KEY, '0' * 16)}",
        f"5|{NAME}",
    ],
    ids=["nothing", "disabled", "another name", "another key", "torn"],
)
def test_accounting_may_not_know(text: str) -> None:
    assert from_accounting(text, NAME, KEY) is None


def test_no_node_was_assigned() -> None:
    facts = from_accounting(f"5|{NAME}|CANCELLED by 0|None assigned|", NAME, KEY)
    assert facts is not None
    assert facts.node == ""


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        ("PartitionTimeLimit", "config_error"),
        ("PartitionConfig", "config_error"),
        ("PartitionNodeLimit", "config_error"),
        ("PartitionDown", "infra"),
        ("PartitionInactive", "infra"),
        ("DependencyNeverSatisfied", "config_error"),
        ("BadConstraints", "config_error"),
        ("InvalidAccount", "config_error"),
        ("InvalidQOS", "config_error"),
        ("AccountNotAllowed", "config_error"),
        ("QOSNotAllowed", "config_error"),
        ("launch failed requeued held", "infra"),
        ("job_requeued_in_held_state", "infra"),
    ],
)
def test_reasons_that_do_not_pass(reason: str, verdict: str) -> None:
    assert waits_for_ever(reason)
    assert verdict_of_reason(reason) == verdict
    assert verdict in EXIT_CODES


@pytest.mark.parametrize(
    "reason",
    [
        "", "None", "Resources", "Priority", "BeginTime", "JobHeldUser", "JobHeldAdmin", "JobArrayTaskLimit",
        "QOSMaxGRESPerUser", "QOSMaxGRESPerJob", "QOSMaxJobsPerUserLimit", "AssocGrpGRES", "Licenses",
        "ReqNodeNotAvail, UnavailableNodes:gpu009", "ReqNodeNotAvail,_UnavailableNodes:gpu009", "Reservation",
        "Dependency", "Constraints", "Prolog", "Cleaning", "PartitionTimeLimitOfTomorrow",
    ],
)  # fmt: skip
def test_reasons_that_pass(reason: str) -> None:
    assert not waits_for_ever(reason)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Priority", "jobs with a higher priority are before it (Priority)"),
        ("JobHeldUser", "its user holds it"),
        ("ReqNodeNotAvail, UnavailableNodes:gpu009", "UnavailableNodes:gpu009)"),
        ("QOSMaxGRESPerUser", "same user or account are at the limit of GPUs of its quality of service"),
        ("QOSMaxGRESPerJob", "it asks for more GPUs than its quality of service allows one job"),
        ("QOSMaxWallDurationPerJobLimit", "it asks for more time than"),
        ("QOSMaxSubmitJobPerUserLimit", "at the limit of jobs"),
        ("AssocGrpCPURunMinutesLimit", "all jobs of its account together are at their limit of CPUs x time"),
        ("AssocMaxMemPerNode", "it asks for more memory than its account allows one job"),
        ("QOSMinGRES", "below the least GPUs"),
        ("MaxGRESPerAccount", "limit of GPUs of its quality of service"),
        ("PartitionTimeLimit", "`slurm.time-limit`"),
        ("launch failed requeued held", "could not be launched"),
        ("SomethingNew", "Slurm's reason is `SomethingNew`"),
        ("", "Slurm's reason is `none`"),
        ("a\x1b[2Jb\nc" + "d" * 500, "`a[2Jbc" + "d" * 112 + "`"),
    ],
)
def test_reasons_in_words(reason: str, words: str) -> None:
    assert words in reason_text(reason)


@pytest.mark.parametrize("owner", ["QOS", "Assoc"])
@pytest.mark.parametrize(
    "rest",
    [
        "GrpCpuLimit", "GrpCPUMinutesLimit", "GrpJobsLimit", "GrpMemLimit", "GrpNodeLimit",
        "GrpSubmitJobsLimit", "GrpWallLimit", "GrpGRES", "GrpGRESMinutes", 
        "GrpGRESRunMinutes", "GrpLicense", "GrpBB", "GrpBilling",
        "GrpEnergy", "GrpUnknown", "MaxCpuPerJobLimit", "MaxCpuMinutesPerJobLimit", "MaxNodePerJobLimit",
        "MaxWallDurationPerJobLimit", "MaxGRESPerJob", "MaxGRESPerNode", "MaxGRESMinutesPerJob",
        "MaxBBPerNode",
    ],
)  # fmt: skip
def test_each_limit_has_words(owner: str, rest: str) -> None:
    assert not reason_text(owner + rest).startswith("Slurm's reason")
    assert not waits_for_ever(owner + rest)


def test_the_reasons_to_wait_for_ever_are_those_measured_at_least() -> None:
    measured = {"PartitionTimeLimit", "PartitionConfig", "PartitionNodeLimit", "PartitionDown"}
    assert measured | {"DependencyNeverSatisfied"} <= states.WAITING_FOR_EVER
