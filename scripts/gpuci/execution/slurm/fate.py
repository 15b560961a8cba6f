"""What a try of a shard came to, and whether it is tried once more elsewhere. Pure: a table.

Rules: the node's verdict stands where it is consistent; success needs state COMPLETED, exit code 0, a verdict
`passed` and results that match it; what the cluster did to a job is tried again, what the code did is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuci.execution.containers import messages as containers
from gpuci.execution.slurm.messages import clean
from gpuci.execution.slurm.states import JobFacts
from gpuci_node.contract import EXIT_CODES, VERDICTS


@dataclass(frozen=True)
class Fate:
    """The verdict of a try, one line of reason, whether to try once more, and the node to leave out then."""

    verdict: str
    reason: str
    retry: bool
    exclude: str | None


@dataclass(frozen=True)
class Ending:
    """A way for a job to end, as far as the cluster is concerned.

    `verdict` is the try's where the node's own does not stand, `stands` are those of the node that do.
    `retry`: once more; `leave_out`: not on this node.
    """

    verdict: str
    words: str
    stands: frozenset[str] = frozenset()
    retry: bool = False
    leave_out: bool = False


_ANY = frozenset(VERDICTS) - {"passed"}
_IN_FULL = frozenset({"failed", "config_error", "unauthorized"})  # said before anything was cut off
_NOT_BY_TERM = _ANY - {"cancelled"}  # the node says `cancelled` whenever it gets TERM, whatever for

ENDED = Ending("infra", "the job ended with exit code {code}", _ANY)
REFUSED = Ending("config_error", "the job ended with exit code {code} before any test", _ANY)
LEFT = Ending("cancelled", "the job left at once: nobody followed it, or another one had its directory", _ANY)
NOT_BEGUN = Ending("infra", "the node could not begin (exit code {code})", _ANY, retry=True, leave_out=True)
SILENCED = Ending("infra", "the job could not write its verdict: is the shared folder full?", _ANY)
KILLED = Ending("infra", "the job's own processes were killed (exit code {code}), not a test", _ANY)
NO_LOG = Ending(
    "infra", "the node could not open the job's log: it lacks the shared folder", retry=True, leave_out=True
)
LAUNCH = Ending(
    "infra", "the job could not be launched, or was killed on its node", _IN_FULL, retry=True, leave_out=True
)
MEMORY = Ending(
    "failed",
    "memory ran out: the tests need more than the job has (`--mem=0` in slurm.extra-options: all of a node)",
    _NOT_BY_TERM,
)
TIME = Ending("timeout", "the job reached its time limit", _IN_FULL | {"infra"})
DEADLINE = Ending("timeout", "the job reached the --deadline of slurm.extra-options", _IN_FULL | {"infra"})
NOT_IN_TIME = Ending("queue_timeout", "the job could not start before its --deadline")
CANCELLED = Ending("cancelled", "the job was cancelled by {who}", _IN_FULL | {"timeout"})
PREEMPTED = Ending("preempted", "a job of higher priority took the node", _IN_FULL, retry=True)
NODE = Ending("infra", "the node failed", _IN_FULL, retry=True, leave_out=True)
REQUEUED = Ending(
    "infra", "somebody made Slurm start the job again", _NOT_BY_TERM, retry=True, leave_out=True
)
REVOKED = Ending("infra", "another cluster of the federation took the job", _IN_FULL)
UNKNOWN = Ending("infra", "Slurm no longer knows how the job ended", _ANY)
ODD = Ending("infra", "Slurm says that the job is {state}, which is no end", _IN_FULL)

# Slurm's state -> ending. COMPLETED, FAILED and DEADLINE depend on more, see `ending_of`.
OF_STATE: Mapping[str, Ending] = {
    "BOOT_FAIL": NODE,
    "CANCELLED": CANCELLED,
    "DEADLINE": DEADLINE,
    "LAUNCH_FAILED": LAUNCH,
    "NODE_FAIL": NODE,
    "OUT_OF_MEMORY": MEMORY,
    "PREEMPTED": PREEMPTED,
    "RECONFIG_FAIL": NODE,
    "REVOKED": REVOKED,
    "TIMEOUT": TIME,
}
# Exit code of a script that left no verdict -> ending. 125 to 127 are those of container engines and shells.
OF_EXIT_CODE: Mapping[int, Ending] = {
    EXIT_CODES["config_error"]: REFUSED,
    EXIT_CODES["timeout"]: TIME,
    EXIT_CODES["infra"]: NOT_BEGUN,
    EXIT_CODES["cancelled"]: LEFT,
    125: NOT_BEGUN,
    126: NOT_BEGUN,
    127: NOT_BEGUN,
}
NO_IMAGE = "the image can't be had (container.image): "  # batch.sh, before the runtime's own last line
_NO_LOG_SIGNAL = 53  # FAILED JobLaunchFailure 0:53, measured with Slurm 22.05
_OUT_OF_MEMORY = re.compile(r"exceeded (job )?memory limit|\boom[-_ ]kill", re.IGNORECASE)


def judge(
    facts: JobFacts | None,
    verdict: Mapping[str, Any] | None,
    problem: str,
    log_text: Sequence[str] = (),
    *,
    began: bool = False,
) -> Fate:
    """Say what a try came to.

    `facts` are Slurm's of the job, None if it no longer knows it. `verdict` is verdict.json or None;
    `problem` says what is wrong with journal and channel, or is empty. `log_text` are the last lines of the
    log that are no frames.
    """
    said = _said(verdict)
    if said == "passed" and not problem and _is_clean(facts):
        return Fate("passed", "", retry=False, exclude=None)
    ending = ending_of(facts, said, log_text, began=began)
    if said is not None and said in ending.stands:
        return _as_the_node_says(said, verdict or {}, facts, problem)
    node = facts.node if facts is not None and ending.leave_out else ""
    return Fate(ending.verdict, _reason(ending, facts, verdict, problem), ending.retry, node or None)


def ending_of(
    facts: JobFacts | None, said: str | None, log_text: Sequence[str], *, began: bool = False
) -> Ending:
    """How the job ended; `said` is the verdict that the node wrote."""
    if facts is None:
        return UNKNOWN
    if facts.state == "DEADLINE" and not facts.node:
        return NOT_IN_TIME
    if facts.state not in ("COMPLETED", "FAILED"):
        return OF_STATE.get(facts.state, ODD)
    if facts.restarts:
        return REQUEUED
    ending = ENDED if facts.state == "COMPLETED" else _failed(facts, said, log_text)
    return SILENCED if began and ending is NOT_BEGUN else ending


def _failed(facts: JobFacts, said: str | None, log_text: Sequence[str]) -> Ending:
    if facts.signal == _NO_LOG_SIGNAL:
        return NO_LOG
    killed = bool(facts.signal) or (facts.exit_code or 0) > 128
    if killed and any(_OUT_OF_MEMORY.search(line) for line in log_text):
        return MEMORY
    if facts.signal or facts.reason == "JobLaunchFailure":
        return LAUNCH
    if killed:
        return KILLED
    return OF_EXIT_CODE.get(facts.exit_code or 0, ENDED) if said is None else ENDED


def _said(verdict: Mapping[str, Any] | None) -> str | None:
    """The verdict that the node wrote; None if it is none, or its exit code is another's."""
    said = None if verdict is None else verdict.get("verdict")
    if verdict is None or not isinstance(said, str) or said not in VERDICTS:
        return None
    return said if verdict.get("exit_code", EXIT_CODES[said]) == EXIT_CODES[said] else None


def _is_clean(facts: JobFacts | None) -> bool:
    return facts is not None and (facts.state, facts.exit_code, facts.signal or 0) == ("COMPLETED", 0, 0)


def _as_the_node_says(said: str, verdict: Mapping[str, Any], facts: JobFacts | None, problem: str) -> Fate:
    """The node's own verdict. Red tests over a broken channel may not be all: that is `infra`."""
    fault = verdict.get("fault") if said == "infra" else None
    at = facts.node if facts is not None else ""
    if isinstance(fault, Mapping):
        refused = _no_image(fault.get("reason"))
        if refused:
            return Fate("config_error", _joined(refused, problem), retry=False, exclude=None)
        reason = _joined(_text(fault.get("reason")) or _text(verdict.get("reason")), problem)
        return Fate("infra", reason, retry=True, exclude=_text(fault.get("node")) or at or None)
    reason = _joined(_text(verdict.get("reason")), problem)
    broken = bool(problem) and said in ("failed", "preempted", "queue_timeout")
    return Fate("infra" if broken else said, reason, retry=said == "preempted", exclude=None)


def _no_image(said: object) -> str:
    """Why no node can have the image, if that is what a node says: a registry tells it to each of them."""
    if not isinstance(said, str) or not said.startswith(NO_IMAGE):
        return ""
    message = containers.explain(said[len(NO_IMAGE) :])
    return _joined(message.what, message.why, message.then) if message.kind == "config" else ""


def _reason(ending: Ending, facts: JobFacts | None, verdict: Mapping[str, Any] | None, problem: str) -> str:
    said = _said(verdict)
    words = ending.words.format(
        code="unknown" if facts is None or facts.exit_code is None else facts.exit_code,
        state=clean(facts.state) if facts else "",
        who=f"user {facts.cancelled_by}"
        if facts and facts.cancelled_by
        else "somebody (Slurm does not say who)",
    )
    if said == "passed":
        return f"its tests passed, but {_joined('' if _is_clean(facts) else words, problem)}"
    own = _text((verdict or {}).get("reason"))
    return _joined(
        words, "it left no verdict" if said is None else f"the node said: {own}" if own else "", problem
    )


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
