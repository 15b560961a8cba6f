"""Report <-> report.json (schemas/report.schema.json). Pure; checked by hand, as reports are big."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from gpuci.durations import needs as needs_document
from gpuci.errors import ConfigError
from gpuci.model import LearnedNeed, Report, ShardReport, TestResult, TryReport
from gpuci_node.contract import OUTCOMES, SCHEMAS, VERDICTS

Row = TypeVar("Row", TestResult, ShardReport, TryReport)

_NAMES = {"attempt": "try"}  # field -> key, where they differ
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "bool | None": ((bool, type(None)), "true, false or null"),
    "int | None": ((int, type(None)), "a whole number or null"),
    "float | None": ((int, float, type(None)), "a number or null"),
    "str | None": ((str, type(None)), "a text or null"),
    "tuple[str, ...]": ((list,), "a list of texts"),
}
_TRIES = "tuple[TryReport, ...]"


def to_document(report: Report) -> dict[str, Any]:
    """The JSON form; fields of a test that have their default are left out, except outcome and seconds."""
    return {
        "schema": SCHEMAS["report"],
        "verdict": report.verdict,
        "reason": report.reason,
        "sha": report.sha,
        "seconds": report.seconds,
        "setup_seconds": report.setup_seconds,
        "usd_per_gpu_hour": report.usd_per_gpu_hour,
        "earlier_gpu_seconds": report.earlier_gpu_seconds,
        "counts": dict(report.counts),
        "shards": [_row_document(shard, keep_defaults=True) for shard in report.shards],
        "warnings": list(report.warnings),
        "notes": list(report.notes),
        "coverage": list(report.coverage),
        "needs": needs_document.to_document(report.needs),
        "tests": [_row_document(test, keep_defaults=False) for test in report.tests],
    }


def from_document(document: Any) -> Report:
    """The inverse of `to_document`; raises ConfigError that names the place of the first fault."""
    top = _mapping(document, "report")
    if top.get("schema") != SCHEMAS["report"]:
        raise _fault("schema", f"should be {SCHEMAS['report']!r}")
    counts = _mapping(top.get("counts", {}), "counts")
    for name, count in counts.items():
        _one_of(name, OUTCOMES, "counts")
        _typed(count, "int", f"counts.{name}")
    return Report(
        verdict=_one_of(top.get("verdict"), VERDICTS, "verdict"),
        reason=_typed(top.get("reason", ""), "str", "reason"),
        counts={name: counts[name] for name in OUTCOMES if name in counts},
        tests=tuple(_rows(TestResult, top.get("tests", []), "tests")),
        shards=tuple(_rows(ShardReport, top.get("shards", []), "shards")),
        warnings=tuple(_typed(top.get("warnings", []), "tuple[str, ...]", "warnings")),
        seconds=_typed(top.get("seconds", 0.0), "float", "seconds"),
        setup_seconds=_typed(top.get("setup_seconds", 0.0), "float", "setup_seconds"),
        sha=_typed(top.get("sha"), "str | None", "sha"),
        needs=_needs(top.get("needs", {})),
        coverage=tuple(_typed(top.get("coverage", []), "tuple[str, ...]", "coverage")),
        notes=tuple(_typed(top.get("notes", []), "tuple[str, ...]", "notes")),
        usd_per_gpu_hour=_typed(top.get("usd_per_gpu_hour"), "float | None", "usd_per_gpu_hour"),
        earlier_gpu_seconds=_typed(top.get("earlier_gpu_seconds", 0.0), "float", "earlier_gpu_seconds"),
    )


def _needs(document: Any) -> dict[str, LearnedNeed]:
    try:
        return needs_document.from_document(document)
    except ValueError as error:
        raise _fault("needs", str(error).removeprefix("needs: ").removeprefix("needs ")) from None


def _row_document(row: TestResult | ShardReport | TryReport, *, keep_defaults: bool) -> dict[str, Any]:
    kept = {"outcome", "seconds", "shard", "attempt", "gpus"}
    document: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if keep_defaults or field.name in kept or value != field.default:
            document[_NAMES.get(field.name, field.name)] = _json_form(value)
    return document


def _json_form(value: Any) -> Any:
    if isinstance(value, TryReport):
        return _row_document(value, keep_defaults=True)
    return list(map(_json_form, value)) if isinstance(value, tuple) else value


def _rows(kind: type[Row], rows: Any, place: str) -> list[Row]:
    if not isinstance(rows, list):
        raise _fault(place, "should be a list")
    return [_row(kind, row, f"{place}[{number}]") for number, row in enumerate(rows)]


def _row(kind: type[Row], document: Any, place: str) -> Row:
    row = _mapping(document, place)
    values: dict[str, Any] = {}
    for field in fields(kind):
        key = _NAMES.get(field.name, field.name)
        if key in row:
            values[field.name] = _value(row[key], str(field.type), f"{place}.{key}")
        elif field.default is MISSING:
            raise _fault(f"{place}.{key}", "is missing")
    if kind is TestResult:
        _one_of(values["outcome"], OUTCOMES, f"{place}.outcome")
    else:
        _one_of(values["verdict"], VERDICTS, f"{place}.verdict")
    return kind(**values)


def _value(value: Any, kind: str, place: str) -> Any:
    if kind == _TRIES:
        return tuple(_rows(TryReport, value, place))
    checked = _typed(value, kind, place)
    return tuple(checked) if isinstance(checked, list) else checked


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _fault(place, "should be an object")
    return value


def _typed(value: Any, kind: str, place: str) -> Any:
    types, words = _KINDS[kind]
    fits = isinstance(value, types) and (not isinstance(value, bool) or bool in types)
    if isinstance(value, float) and not math.isfinite(value):
        fits = False
    if not fits or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
        raise _fault(place, f"should be {words}")
    return value


def _one_of(value: Any, names: Sequence[str], place: str) -> str:
    if value not in names:
        raise _fault(place, f"should be one of {', '.join(names)}")
    return str(value)


def _fault(place: str, what: str) -> ConfigError:
    return ConfigError(
        f"report.json: {place} {what}",
        why="the file was cut off, edited, or written by another version",
        then="make the report anew from the results: gpuci report DIR",
    )
