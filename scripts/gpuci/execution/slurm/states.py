"""What Slurm's programs print about jobs -> values: states, reasons, facts. Pure.

A job can be another than it seems: after a crash of the controller its id may have been given again. What
names it is its job name and the key in its comment.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass

from gpuci.execution.slurm.answers import Garbled
from gpuci.execution.slurm.names import key_in
from gpuci.execution.slurm.reasons import FOR_EVER, HELD_AFTER_FAILURE, WAITING, limit_text

# What squeue's %T, scontrol's JobState and sacct's State can be, 22.05 to 26.11. Others are not terminal.
TERMINAL = frozenset(
    {
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL",
        "OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT",
    }
)  # fmt: skip
NOT_STARTED = frozenset(
    {
        "CONFIGURING", "EXPEDITING", "PENDING", "POWER_UP_NODE", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD",
        "RESV_DEL_HOLD", "SPECIAL_EXIT",
    }
)  # fmt: skip
RUNNING = frozenset(
    {
        "COMPLETING", "RESIZING", "RUNNING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED", "UPDATE_DB",
    }
)  # fmt: skip
WAITING_FOR_EVER = frozenset(FOR_EVER)

_FIELDS_OF_A_ROW = 6
_JOB_ID = re.compile(r"[0-9]+([_+].*)?")
_STATE = re.compile(r"([A-Z_]+)\+?(?: by ([0-9]+))?")
_NOTHING = frozenset({"", "(null)", "None assigned", "N/A", "Unknown", "n/a"})
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)")
_KEYS = (
    "JobId", "JobName", "JobState", "Reason", "ExitCode", "NodeList", "Restarts", "SubmitTime", "StartTime",
    "EndTime", "Comment",
)  # fmt: skip


@dataclass(frozen=True)
class QueueRow:
    """A line of squeue. `node` is empty before the start."""

    job_id: str
    name: str
    state: str
    reason: str
    node: str
    comment: str


@dataclass(frozen=True)
class JobFacts:
    """What Slurm says of one job. Times are seconds by the cluster's own clock, good for differences only.

    `exit_code` and `signal` are None where they can't be known: before the end, and from accounting, which
    shows 128 as 0. `cancelled_by` is a user id.
    """

    job_id: str
    name: str
    state: str
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    node: str = ""
    restarts: int = 0
    submit_time: float | None = None
    start_time: float | None = None
    end_time: float | None = None
    comment: str = ""
    cancelled_by: str = ""


def is_terminal(state: str) -> bool:
    """Whether a job in this state is over. A state that nobody knows is not."""
    return state in TERMINAL


def is_waiting(state: str) -> bool:
    """Whether a job in this state has not started, or is to start again."""
    return state in NOT_STARTED


def waits_for_ever(reason: str) -> bool:
    """Whether a job that waits for this reason waits for ever. Limits (QOS…, Assoc…) can change."""
    return _code(reason) in WAITING_FOR_EVER or bool(HELD_AFTER_FAILURE.search(reason))


def verdict_of_reason(reason: str) -> str:
    """The verdict of a job that is not waited for, for a reason that `waits_for_ever`."""
    return FOR_EVER.get(_code(reason), ("infra", ""))[0]


def reason_text(reason: str) -> str:
    """A reason in words, with Slurm's own code behind them."""
    code = _code(reason)
    words = FOR_EVER[code][1] if code in FOR_EVER else WAITING.get(code) or limit_text(code)
    if words is None and HELD_AFTER_FAILURE.search(reason):
        words = "it could not be launched, and Slurm holds it"
    shown = "".join(letter for letter in reason[:120] if letter.isprintable())
    return f"{words} ({shown})" if words else f"Slurm's reason is `{shown or 'none'}`"


def parse_queue(text: str) -> tuple[QueueRow, ...]:
    """Read `squeue -h -o '%i|%j|%T|%r|%N|%k'`. Lines that are no rows (warnings of squeue) are left out."""
    rows = [line.split("|", _FIELDS_OF_A_ROW - 1) for line in text.split("\n")]
    return tuple(
        QueueRow(job_id, name, _state(state)[0] or state, reason, _value(node), _value(comment).rstrip())
        for job_id, name, state, reason, node, comment in (
            row for row in rows if len(row) == _FIELDS_OF_A_ROW
        )
        if _JOB_ID.fullmatch(job_id)
    )


def parse_job(text: str) -> JobFacts:
    """Read `scontrol show job -o ID`; keys that are not known are passed over.

    Raises Garbled if it is not about one job, or if a key is there twice: another's job can be named or
    commented so that it reads like keys. Ours can't.
    """
    lines = [line for line in text.split("\n") if line.startswith("JobId=")]
    if len(lines) != 1:
        raise Garbled(text[:200])
    values = {key: _value_of(key, lines[0]) for key in _KEYS}
    state, by = _state(values["JobState"])
    code, _, signal = values["ExitCode"].partition(":")
    return JobFacts(
        job_id=values["JobId"],
        name=values["JobName"],
        state=state,
        reason=_value(values["Reason"]),
        exit_code=_number(code) if is_terminal(state) else None,
        signal=_number(signal) if is_terminal(state) else None,
        node=_value(values["NodeList"]),
        restarts=_number(values["Restarts"]) or 0,
        submit_time=_seconds(values["SubmitTime"]),
        start_time=_seconds(values["StartTime"]),
        end_time=_seconds(values["EndTime"]),
        comment=_value(values["Comment"]),
        cancelled_by=by,
    )


def from_accounting(text: str, name: str, key: str) -> JobFacts | None:
    """The last job of that name and key, from `sacct -n -P -X -o JobID,JobName,State,NodeList,Comment`.

    Accounting without comments (AccountingStoreFlags lacks job_comment) is believed by the name. Of exit
    codes it says one thing that can be trusted: COMPLETED is 0.
    """
    found = None
    for line in text.split("\n"):
        job_id, row_name, state_text, node, comment = (*line.split("|", 4), "", "", "", "", "")[:5]
        state, by = _state(state_text)
        if not state or row_name != name or key_in(comment) not in (key, None):
            continue
        code = 0 if state == "COMPLETED" else None
        found = JobFacts(
            job_id,
            name,
            state,
            exit_code=code,
            signal=code,
            node=_value(node),
            comment=_value(comment),
            cancelled_by=by,
        )
    return found


def _code(reason: str) -> str:
    """The code before a list of nodes: `ReqNodeNotAvail, UnavailableNodes:gpu009` (scontrol: with `_`)."""
    return reason.partition(",")[0].strip()


def _state(text: str) -> tuple[str, str]:
    """(state, id of the user who cancelled it): of `COMPLETED`, `CANCELLED by 1001`, `CANCELLED+`."""
    found = _STATE.fullmatch(text.strip())
    return (found[1], found[2] or "") if found else ("", "")


def _value(text: str) -> str:
    return "" if text.strip() in _NOTHING else text


def _value_of(key: str, line: str) -> str:
    """The value of a key of scontrol: up to the next key, which starts with a capital, or the line's end."""
    found = re.findall(rf"(?:^| ){key}=(.*?)(?= +[A-Z][A-Za-z:/_]*=| *$)", line)
    if len(found) > 1:
        raise Garbled(line[:200])
    return found[0] if found else ""


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _seconds(text: str) -> float | None:
    found = _TIME.fullmatch(text)
    try:
        return float(calendar.timegm((*map(int, found.groups()), 0, 0, 0))) if found else None
    except ValueError:  # no such month
        return None
