"""Config <-> its JSON form, as it travels in the plan. Pure, standard library only.

The document holds no secret, because a configuration can't.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from gpuci.config.model import Config, MarkerRule, Node, Profile, Shards
from gpuci.errors import ConfigError
from gpuci_node.contract import SCHEMAS

_T = TypeVar("_T")
_SCHEMA = SCHEMAS["config"]


def to_document(config: Config) -> dict[str, Any]:
    """The configuration as values that JSON has, in a stable order."""
    document: dict[str, Any] = {"schema": _SCHEMA}
    document.update(_json_form(asdict(config)))
    return document


def from_document(document: Mapping[str, Any]) -> Config:
    """The configuration of a document of `to_document`; raises ConfigError for anything else."""
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise _broken("configuration", f"a document of the schema {_SCHEMA}")
    return _instance(Config, {key: value for key, value in document.items() if key != "schema"}, "config")


def _json_form(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_form(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_form(item) for item in value]
    return value


def _broken(where: str, wanted: str) -> ConfigError:
    return ConfigError(
        f"the configuration in the document is broken: {where} is not {wanted}",
        why="the document was edited, cut, or written by another version",
        then="make the plan again",
    )


def _instance(kind: type[_T], value: Any, where: str) -> _T:
    """A dataclass from a mapping that has exactly its fields."""
    declared = fields(kind)  # type: ignore[arg-type]
    names = [field.name for field in declared]
    if not isinstance(value, dict) or set(value) != set(names):
        raise _broken(where, "a mapping with exactly the keys " + ", ".join(names))
    # The annotations of the shared dataclasses are text: each names its reader.
    readers = {field.name: _READERS[str(field.type)] for field in declared}
    return kind(**{name: readers[name](value[name], f"{where}.{name}") for name in names})


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _broken(where, "text")
    return value


def _integer(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _broken(where, "a whole number")
    return value


def _number(value: Any, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise _broken(where, "a number")
    return value


def _list(read: Callable[[Any, str], _T]) -> Callable[[Any, str], tuple[_T, ...]]:
    def read_list(value: Any, where: str) -> tuple[_T, ...]:
        if not isinstance(value, (list, tuple)):
            raise _broken(where, "a list")
        return tuple(read(item, f"{where}[{index}]") for index, item in enumerate(value))

    return read_list


def _optional(read: Callable[[Any, str], _T]) -> Callable[[Any, str], _T | None]:
    return lambda value, where: None if value is None else read(value, where)


def _of(kind: type[_T]) -> Callable[[Any, str], _T]:
    return lambda value, where: _instance(kind, value, where)


def _pair(value: Any, where: str) -> tuple[str, str]:
    texts = _list(_text)(value, where)
    if len(texts) != 2:
        raise _broken(where, "a pair of path and mode")
    return texts[0], texts[1]


def _section(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _broken(where, "a mapping")
    return {_text(key, where): item for key, item in value.items()}


def _texts_by_name(value: Any, where: str) -> dict[str, str]:
    return {key: _text(item, f"{where}.{key}") for key, item in _section(value, where).items()}


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "str": _text,
    "str | None": _optional(_text),
    "int": _integer,
    "int | None": _optional(_integer),
    "float": _number,
    "float | None": _optional(_number),
    "tuple[str, ...]": _list(_text),
    "tuple[tuple[str, str], ...]": _list(_pair),
    "tuple[MarkerRule, ...]": _list(_of(MarkerRule)),
    "tuple[Profile, ...]": _list(_of(Profile)),
    "dict[str, str]": _texts_by_name,
    "dict[str, Any]": _section,
    "Node": _of(Node),
    "Shards": _of(Shards),
}
