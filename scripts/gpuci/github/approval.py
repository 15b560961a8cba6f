"""Whether a commit may run on the cluster, and what is to be written down for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuci.github.approval_facts import Facts, is_foreign, is_pull_event
from gpuci.github.approval_table import ROWS, UNPROTECTED, Record, Row


@dataclass(frozen=True)
class Decision:
    """What to do.

    `row` is its name in the table. `record`: set the record on the commit, or take it back. `pending`: set
    the commit's status `gpuci` to pending. `fault`: the set-up is wrong, not only an approval missing.
    """

    row: str
    approved: bool
    reason: str
    advice: str
    record: Record | None
    pending: bool
    remove_label: bool
    fault: bool


def decide(facts: Facts) -> Decision:
    """The first row of the table that holds, and what follows from it."""
    row = next(row for row in ROWS if row.holds(facts))
    values = {**facts._asdict(), "quiet_seconds": f"{facts.quiet_seconds:g}"}
    values["role"] = facts.role or facts.permission
    values["approved_by"] = f"@{facts.approver}" if facts.approver else "somebody with write access"
    return Decision(
        row=row.name,
        approved=row.approved,
        reason=row.reason.format_map(values),
        advice=row.advice.format_map(values),
        record=row.record,
        pending=_is_pending(facts, row),
        remove_label=_removes_label(facts),
        fault=row is UNPROTECTED,
    )


def markdown_table() -> Iterator[str]:
    """The lines of the table as docs/security.md shows it."""
    yield "| | when | what comes of it |"
    yield "| --- | --- | --- |"
    for row in ROWS:
        yield f"| `{row.name}` | {row.when} | {row.then} |"


def _is_pending(facts: Facts, row: Row) -> bool:
    """A final status stays. Where nothing changed, only a status that is not there yet is set."""
    if not facts.pull_request or is_foreign(facts) or not facts.affected:
        return False
    if row.approved:
        return facts.status in ("", "pending")
    waits = facts.open and facts.head
    return waits and facts.status in (("", "pending") if row.record == "revoke" else ("",))


def _removes_label(facts: Facts) -> bool:
    """New commits make the label mean nothing, unless the head is an approved commit again."""
    pushed = is_pull_event(facts) and facts.action == "synchronize" and not facts.rerun
    off = facts.labeled and facts.remove_on_push and not facts.recorded
    return pushed and off and not is_foreign(facts)
