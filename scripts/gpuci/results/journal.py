"""The lines of a journal -> records. Pure; the one place where records of a node are checked.

A journal is written by the node and may be torn by a full disk or a lost node, so nothing in it is
taken for granted: a line that is not a record is counted, never raised.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuci_node.contract import OUTCOMES

Record = dict[str, Any]
Check = Callable[[Any], bool]

# What a node can say of a test; the others are this side's conclusions.
NODE_OUTCOMES: frozenset[str] = frozenset(OUTCOMES) - {"deselected", "not_collected", "elsewhere"}

# Put behind the records of a log that stand in for those of the file. Who did it can't be told from here.
REPLACED: Record = {
    "kind": "note",
    "level": "warning",
    "topic": "journal",
    "text": (
        "the file journal.jsonl is not the one that the node's verdict was written for: it is damaged, or was"
        " changed; the records in the job's log, which are, were taken"
    ),
}


@dataclass(frozen=True)
class Journal:
    """The records of a journal; `torn` if the last line was cut off, `damaged` counts other bad lines."""

    records: tuple[Record, ...]
    torn: bool = False
    damaged: int = 0


def parse(data: bytes) -> Journal:
    """Read a journal; never raises. A complete last record without its line end is taken."""
    *lines, last = data.split(b"\n")
    filled = [line for line in lines if line.strip()]
    records = read_records(filled)
    end = read_record(last) if last.strip() else None
    return Journal(
        records=tuple(records) if end is None else (*records, end),
        torn=bool(last.strip()) and end is None,
        damaged=len(filled) - len(records),
    )


def problem(data: bytes, verdict: Mapping[str, Any] | None) -> str:
    """Say how a journal and its verdict.json disagree; empty when they agree or there is no verdict."""
    if verdict is None:
        return ""
    claimed = verdict.get("journal")
    if not isinstance(claimed, Mapping):
        return "the verdict does not say which journal it belongs to"
    lines = data.count(b"\n")
    if claimed.get("lines") != lines:
        return f"the journal has {lines} lines, the verdict counts {claimed.get('lines')!r:.40}"
    if claimed.get("sha256") != hashlib.sha256(data).hexdigest():
        return "the journal is not the one that the verdict was written for (its hash differs)"
    damaged = parse(data).damaged
    return f"{damaged} lines of the journal are not records" if damaged else ""


def read_records(lines: Iterable[bytes | str]) -> list[Record]:
    """The records among some lines, in order."""
    return [record for record in map(read_record, lines) if record is not None]


def read_record(line: bytes | str) -> Record | None:
    """One line -> a record whose fields have the types of schemas/journal.schema.json, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if is_record(record) else None


def is_number(value: Any) -> bool:
    """A finite number that is not negative; an int too long for a float is refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < 1e15 and math.isfinite(value)


def is_record(record: Any) -> bool:
    """Whether a JSON value is a record whose fields have the types of schemas/journal.schema.json."""
    if not isinstance(record, dict):
        return False
    kind = record.get("kind")
    if not isinstance(kind, str):
        return False
    required, optional = _FIELDS.get(kind, ({}, {}))
    return all(name in record and check(record[name]) for name, check in required.items()) and all(
        check(record[name]) for name, check in optional.items() if name in record
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and is_number(value)


def _is_count_or_none(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_seconds(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_number, value.values()))


def _is_marks(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_texts, value.values()))


def _is_outcome(value: Any) -> bool:
    return isinstance(value, str) and value in NODE_OUTCOMES


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_flag_or_none(value: Any) -> bool:
    return value is None or _is_flag(value)


_TEST: Mapping[str, Check] = {"unit": _is_name, "nodeid": _is_name}
_PLACE: Mapping[str, Check] = {"t": is_number, "slot": _is_text, "gpus": _is_texts}

# kind -> (required fields, optional fields); other kinds and fields pass unread.
_FIELDS: Mapping[str, tuple[Mapping[str, Check], Mapping[str, Check]]] = {
    "job": (
        {},
        {"t": is_number, "node": _is_text, "gpus": _is_texts, "slots": _is_count, "shard": _is_count},
    ),
    "collected": (
        {"unit": _is_name, "file": _is_name, "ids": _is_names},
        {"t": is_number, "marks": _is_marks, "deselected": _is_names},
    ),
    "start": (_TEST, {**_PLACE, "timeout": is_number}),
    "end": (
        {**_TEST, "outcome": _is_outcome},
        {
            **_PLACE,
            "seconds": _is_seconds,
            "file": _is_text,
            "line": _is_count_or_none,
            "message": _is_text,
            "output": _is_text,
            "unplanned": _is_flag,
            "peak_memory_bytes": _is_count_or_none,
            "cuda_used": _is_flag_or_none,
        },
    ),
    "note": (
        {"text": _is_text},
        {
            "t": is_number,
            "level": _is_text,
            "unit": _is_text,
            "nodeid": _is_text,
            "topic": _is_text,
            "root": _is_text,
        },
    ),
    "output": ({"text": _is_text}, {"t": is_number, "slot": _is_text}),  # in the log only
}
