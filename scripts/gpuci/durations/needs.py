"""Learned needs <-> their JSON form in report.json, plan.json and durations.json. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuci.model import LearnedNeed

MOST_GPUS = 1024  # of one node: whatever is more was not counted


def to_document(needs: Mapping[str, LearnedNeed]) -> dict[str, Any]:
    """{function id or node id: {gpus, alone, because[, mark][, planned]}}."""
    return {nodeid: _entry(need) for nodeid, need in needs.items()}


def _entry(need: LearnedNeed) -> dict[str, Any]:
    entry: dict[str, Any] = {"gpus": need.gpus, "alone": need.alone, "because": need.because}
    if need.mark:
        entry["mark"] = need.mark
    return entry if need.planned is None else {**entry, "planned": need.planned}


def from_document(document: object) -> dict[str, LearnedNeed]:
    """The inverse of `to_document`; only `gpus` has to be there. Raises ValueError naming the first fault."""
    if not isinstance(document, dict):
        raise ValueError("needs should be a map of node ids to {gpus, alone, because}")
    return {nodeid: _need(nodeid, value) for nodeid, value in document.items()}


def _need(nodeid: str, value: object) -> LearnedNeed:
    place = f"needs: {shown(nodeid)}"
    if not isinstance(value, dict):
        raise ValueError(f"{place} should be {{gpus, alone, because}}, not {shown(value)}")
    if "::" not in nodeid:
        raise ValueError(f"{place} names no test: a path, `::` and a function")
    for name, kind in _KINDS.items():
        if name in value and not isinstance(value[name], kind):
            raise ValueError(f"{place}: {name} should be {_WORDS[kind]}, not {shown(value[name])}")
    if not is_gpus(value.get("gpus"), least=1):
        raise ValueError(f"{place}: gpus should be from 1 to {MOST_GPUS}, not {shown(value.get('gpus'))}")
    planned = value.get("planned")
    if planned is not None and not is_gpus(planned, least=0):
        raise ValueError(f"{place}: planned should be from 0 to {MOST_GPUS}, not {shown(planned)}")
    return LearnedNeed(
        value["gpus"], value.get("alone", False), value.get("because", ""), value.get("mark", ""), planned
    )


def is_gpus(value: object, *, least: int) -> bool:
    """Whether a value is a number of GPUs of one node, `least` or more."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_GPUS


def shown(value: object) -> str:
    """A value of a document as a message shows it: ASCII, short."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


_KINDS = {"alone": bool, "because": str, "mark": str}
_WORDS = {bool: "true or false", str: "a text"}
