"""Changes <-> changes.json (schemas/changes.schema.json). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuci.changes.model import Changes, Due, FileChange
from gpuci.errors import ConfigError
from gpuci_node.contract import SCHEMAS

_SCHEMA = SCHEMAS["changes"]


def to_document(changes: Changes) -> dict[str, Any]:
    """The document, in a stable order."""
    return {
        "schema": _SCHEMA,
        "base": changes.base,
        "head": changes.head,
        "everything": changes.everything,
        "because": list(changes.because),
        "packages": list(changes.packages),
        "tests": [{"path": one.path, "because": list(one.because), "why": one.why} for one in changes.tests],
        "changed": [{"path": one.path, "kind": one.kind} for one in changes.changed],
        "ignored": list(changes.ignored),
        "proposed": list(changes.proposed),
    }


def from_document(document: Any) -> Changes:
    """The changes of a document of `to_document`; raises ConfigError for anything else."""
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise _broken(f"it is no document of the schema {_SCHEMA}")
    if not isinstance(document.get("everything"), bool):
        raise _broken("everything is neither true nor false")
    return Changes(
        base=_text(document, "base"),
        head=_text(document, "head"),
        everything=document["everything"],
        because=_texts(document, "because"),
        packages=_texts(document, "packages"),
        tests=tuple(
            Due(_text(one, "path"), _texts(one, "because"), _text(one, "why"))
            for one in _list(document, "tests")
        ),
        changed=tuple(
            FileChange(_text(one, "path"), _text(one, "kind")) for one in _list(document, "changed")
        ),
        ignored=_texts(document, "ignored"),
        proposed=_texts(document, "proposed"),
    )


def _broken(what: str) -> ConfigError:
    return ConfigError(
        f"changes.json is broken: {what}",
        why="it was edited, cut, or written by another version",
        then="run find-changed again, or leave changes.json out: then every test is due",
    )


def _text(mapping: Any, key: str) -> str:
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    if not isinstance(value, str):
        raise _broken(f"{key} is no text")
    return value


def _list(mapping: Any, key: str) -> list[Any]:
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    if not isinstance(value, list):
        raise _broken(f"{key} is no list")
    return value


def _texts(mapping: Any, key: str) -> tuple[str, ...]:
    values = _list(mapping, key)
    if not all(isinstance(value, str) for value in values):
        raise _broken(f"{key} holds something else than texts")
    return tuple(values)
