"""What a test process may say: a line -> a record with known fields of the right types, or None.

A test can find the pipe and write to it, so nothing in a line is taken for granted: a record that
passes here can be acted on, written to the journal and read back.

Runs on the compute node (Python >= 3.8, standard library only). Pure.
"""

import json
from typing import Any, Callable, Dict, Mapping, Optional

from gpuci_node.contract import OUTCOMES

Check = Callable[[Any], bool]

LONGEST = 1e9  # seconds, about 30 years: a longer limit is no number that a clock can wait for
_LARGEST = 10**15  # bytes: more than any node has


def load(line: str) -> Any:
    """The JSON of one line, None if it is none; never raises."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def read(record: Any) -> Optional[Dict[str, Any]]:
    """The known fields of a record if all are sound and none is missing, else None."""
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in _REQUIRED:
        return None
    checks = {**_REQUIRED[kind], **_OPTIONAL.get(kind, {})}
    known = {name: value for name, value in record.items() if name in checks}
    sound = all(name in known for name in _REQUIRED[kind]) and all(
        checks[name](value) for name, value in known.items()
    )
    return {"kind": kind, **known} if sound else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_name_or_none(value: Any) -> bool:
    return value is None or _is_name(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LONGEST


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_seconds(value)


def _is_count_or_none(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_size_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not _is_flag(value) and 0 <= value < _LARGEST)


def _is_flag_or_none(value: Any) -> bool:
    return value is None or _is_flag(value)


def _is_outcome(value: Any) -> bool:
    return _is_text(value) and value in OUTCOMES[: OUTCOMES.index("skipped") + 1]


def _is_level(value: Any) -> bool:
    return value in ("info", "warning")


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _map_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _is_finding(value: Any) -> bool:
    """What failed or was skipped while collecting: {nodeid, message[, output]}."""
    named = isinstance(value, dict) and _is_name(value.get("nodeid")) and _is_text(value.get("message"))
    return named and _map_of(_is_text)(value)


def _is_reason(value: Any) -> bool:
    """What speaks against a fork: {reason, path}; path is "" where no file is to blame."""
    return isinstance(value, dict) and _is_text(value.get("path")) and _is_text(value.get("reason"))


_TEST: Mapping[str, Check] = {"task": _is_count, "nodeid": _is_name}
_PLACE: Mapping[str, Check] = {"file": _is_text, "line": _is_count_or_none}
_NEED: Mapping[str, Check] = {**_TEST, "gpus": _is_count_or_none, "because": _is_text}

_REQUIRED: Mapping[str, Mapping[str, Check]] = {
    "collected": {
        "file": _is_name,
        "ids": _list_of(_is_name),
        "marks": _map_of(_list_of(_is_text)),
        "deselected": _list_of(_is_name),
        "errors": _list_of(_is_finding),
        "skipped": _list_of(_is_finding),
    },
    "collecting": {"file": _is_name_or_none},  # None: the file is done
    "ready": {"findings": _list_of(_is_reason)},
    "coverage": {},
    "next": {},
    "spent": {"text": _is_text},
    "start": {**_TEST, "timeout": _is_seconds, **_PLACE},
    "end": {**_TEST, "outcome": _is_outcome},
    "deferred": {**_NEED, "alone": _is_flag},
    "gpu_skip": {**_TEST, "message": _is_text},
    "beyond_node": {**_NEED, "gpus": _is_count},
    "early_cuda": {},
    "interrupted": {"text": _is_text},
    "broken": {"text": _is_text},
    "unusable": {"text": _is_text},
    "note": {"level": _is_level, "topic": _is_text, "text": _is_text},
}
_OPTIONAL: Mapping[str, Mapping[str, Check]] = {
    "start": {"seat": _is_count},  # of a worker of pytest-xdist
    "end": {
        **_PLACE,
        "seconds": _map_of(_is_seconds),
        "message": _is_text,
        "output": _is_text,
        "peak_memory_bytes": _is_size_or_none,
        "cuda_used": _is_flag_or_none,
    },
}
