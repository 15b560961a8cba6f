"""plan.json <-> Plan. Pure; the checks are written by hand, since jsonschema takes seconds for a big plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from gpuci.config import document as config_document
from gpuci.durations import needs as needs_document
from gpuci.errors import ConfigError
from gpuci.model import LearnedNeed, Plan, Root, Shard, SkippedTest, Unit
from gpuci_node.contract import MODES, SCHEMAS, Select

SCHEMA = SCHEMAS["plan"]
LONGEST = 1e12  # seconds: refuses infinity, NaN and numbers that no float holds
_T = TypeVar("_T")


def to_document(plan: Plan) -> dict[str, Any]:
    """The JSON form, gpuci/plan/1: a key per field."""
    document = {"schema": SCHEMA, **_plain(plan)}
    for name in ("roots", "units", "shards", "skipped"):
        document[name] = [_plain(value) for value in document[name]]
    document["needs"] = needs_document.to_document(plan.needs)
    return document


def from_document(document: object) -> Plan:
    """Check a parsed plan.json and build the Plan; raises ConfigError naming the first bad place.

    Beyond the shape: the configuration is one, unit ids are unique, and each unit is in one shard of its
    profile, or in `cpu_units` if its mode is cpu.
    """
    try:
        mapping = _mapping(document)
        if mapping.get("schema") != SCHEMA:
            raise _Bad(f"schema is {_show(mapping.get('schema'))}, not {SCHEMA!r}")
        plan = _build(Plan, mapping, _PLAN)
        _check_places(plan)
    except _Bad as bad:
        raise ConfigError(
            f"not a plan: {bad}",
            why="the file was cut short, changed by hand, or made by another version",
            then="make it again with `gpuci plan --json`",
        ) from None
    config_document.from_document(plan.config)
    return plan


class _Bad(Exception):
    """What is wrong, and where: `units[3].gpus`."""

    def __init__(self, text: str, place: str = "") -> None:
        super().__init__(f"{place.lstrip('.')}: {text}" if place else text)
        self.text = text
        self.place = place

    def inside(self, place: str) -> _Bad:
        return _Bad(self.text, place + self.place)


def _plain(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _build(kind: type[_T], value: object, readers: Mapping[str, _Reader]) -> _T:
    """Read the fields of a dataclass; only those with a default may be missing, other keys are ignored."""
    mapping = _mapping(value)
    optional = {f.name for f in fields(kind) if f.default is not MISSING or f.default_factory is not MISSING}  # type: ignore[arg-type]
    missing = [name for name in readers if name not in mapping and name not in optional]
    if missing:
        raise _Bad(f"{', '.join(missing)} missing")
    return kind(
        **{name: _at(f".{name}", read, mapping[name]) for name, read in readers.items() if name in mapping}
    )


def _at(place: str, read: _Reader, value: object) -> Any:
    try:
        return read(value)
    except _Bad as bad:
        raise bad.inside(place) from None


def _each(read: _Reader) -> _Reader:
    def read_list(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _Bad(f"a list was expected, not {_show(value)}")
        return tuple(_at(f"[{i}]", read, item) for i, item in enumerate(value))

    return read_list


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Bad(f"a mapping was expected, not {_show(value)}")
    return value


def _texts(value: object) -> dict[str, str]:
    return {_text(name): _at(f".{name}", _text, text) for name, text in _mapping(value).items()}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Bad(f"text was expected, not {_show(value)}")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _Bad(f"a whole number from 0 was expected, not {_show(value)}")
    return value


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LONGEST:
        raise _Bad(f"a number of seconds was expected, not {_show(value)}")
    return float(value)


def _mode(value: object) -> str:
    if value not in MODES or value == "skip":
        raise _Bad(f"{_show(value)} is not a mode; there are {', '.join(MODES[:-1])}")
    return _text(value)


def _select(value: object) -> Select:
    if value == "all":
        return "all"
    if isinstance(value, dict) and list(value) == ["except"]:
        return {"except": list(_at(".except", _each(_text), value["except"]))}
    if isinstance(value, list | tuple):
        return list(_each(_text)(value))
    raise _Bad(f'"all", a list of ids or {{"except": [ids]}} was expected, not {_show(value)}')


def _needs(value: object) -> dict[str, LearnedNeed]:
    try:
        return needs_document.from_document(value)
    except ValueError as error:
        raise _Bad(str(error)) from None


def _show(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


_Reader = Callable[[object], Any]
_ROOT: dict[str, _Reader] = {
    "path": _text,
    "config_file": _text_or_none,
    "args": _each(_text),
    "files": _each(_text),
    "opaque": _texts,
    "gpu_isolation": _text,
    "because": _text,
}
_UNIT: dict[str, _Reader] = {
    "id": _text,
    "root": _text,
    "file": _text,
    "select": _select,
    "mode": _mode,
    "gpus": _count,
    "profile": _text,
    "expected_seconds": _seconds,
    "timeout_seconds": _seconds,
    "tests": _count,
    "longest_timeout_seconds": _seconds,
}
_SHARD: dict[str, _Reader] = {
    "index": _count,
    "profile": _text,
    "units": _each(_text),
    "expected_seconds": _seconds,
}
_PLAN: dict[str, _Reader] = {
    "config": _mapping,
    "sha": _text_or_none,
    "event": _text,
    "roots": _each(lambda value: _build(Root, value, _ROOT)),
    "targets": _each(_text),
    "units": _each(lambda value: _build(Unit, value, _UNIT)),
    "shards": _each(lambda value: _build(Shard, value, _SHARD)),
    "cpu_units": _each(_text),
    "skipped": _each(lambda value: _build(SkippedTest, value, {"nodeid": _text, "because": _text})),
    "makespan_seconds": _seconds,
    "lower_bound_seconds": _seconds,
    "unknown_durations": _count,
    "notes": _each(_text),
    "needs": _needs,
}


def _check_places(plan: Plan) -> None:
    """Every unit has one id and one place: a shard of its profile, or the CPU pool."""
    units = {unit.id: unit for unit in plan.units}
    if len(units) != len(plan.units):
        raise _Bad("an id is used by two units", "units")
    pool = (0, None, plan.cpu_units)
    places = [pool, *((shard.index, shard.profile, shard.units) for shard in plan.shards)]
    if sorted(index for index, _, _ in places) != list(range(len(places))):
        raise _Bad("indices are not 1, 2, …", "shards")
    for index, profile, ids in places:
        for unit in ids:
            if unit not in units:
                raise _Bad(f"no unit has the id {_show(unit)}", _place(index))
            if profile != (None if units[unit].mode == "cpu" else units[unit].profile):
                raise _Bad(f"unit {_show(unit)} is of another kind of node", _place(index))
    placed = [unit for _, _, ids in places for unit in ids]
    if len(placed) != len(units) or len(set(placed)) != len(units):
        raise _Bad("every unit has to be in one shard, or in cpu_units", "units")


def _place(index: int) -> str:
    return f"shards[{index - 1}].units" if index else "cpu_units"
