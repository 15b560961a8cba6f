"""manifest.json <-> Manifest. Pure; checked by hand, since jsonschema is slow on many targets.

The shape is schemas/manifest.schema.json. `class` of a target is the model's `kind`; `opaque` of the
document's roots maps files to reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpuci.errors import ConfigError
from gpuci.model import Manifest, Marker, Root, SourceError, TestTarget
from gpuci_node.contract import MODES, SCHEMAS

KINDS = ("cpu", "gpu", "either", "unknown")
_T = TypeVar("_T")


def to_document(manifest: Manifest) -> dict[str, Any]:
    """The document of a manifest: JSON values only, in a stable order."""
    return {
        "schema": SCHEMAS["manifest"],
        "roots": [_root(root) for root in manifest.roots],
        "files": list(manifest.files),
        "targets": [_target(target) for target in manifest.targets],
        "errors": [
            {"path": error.path, "line": error.line, "message": error.message} for error in manifest.errors
        ],
    }


def _root(root: Root) -> dict[str, Any]:
    return {
        "path": root.path,
        "config_file": root.config_file,
        "args": list(root.args),
        "files": list(root.files),
        "opaque": dict(root.opaque),
        "gpu_isolation": root.gpu_isolation,
        "because": root.because,
    }


def _target(target: TestTarget) -> dict[str, Any]:
    return {
        "nodeid": target.nodeid,
        "test_path": target.test_path,
        "test_class": target.test_class,
        "test_function": target.test_function,
        "test_method": target.test_method,
        "root": target.root,
        "line": target.line,
        "run_mode": target.run_mode,
        "runs_on": target.runs_on,
        "skip": target.skip,
        "gpus": target.gpus,
        "class": target.kind,
        "timeout": target.timeout,
        "markers": [_marker(marker) for marker in target.markers],
        "opaque": target.opaque,
    }


def _marker(marker: Marker) -> dict[str, Any]:
    document = {
        "name": marker.name,
        "args": list(marker.args),
        "kwargs": dict(marker.kwargs),
        "line": marker.line,
    }
    return {**document, "some": True} if marker.some else document


def from_document(document: object) -> Manifest:
    """The manifest of a document; raises ConfigError that names the place of the first thing wrong."""
    fields = _Fields(document, "manifest")
    if fields.text("schema") != SCHEMAS["manifest"]:
        raise _wrong("manifest.schema", f"is not {SCHEMAS['manifest']}")
    return Manifest(
        targets=fields.each("targets", _read_target),
        roots=fields.each("roots", _read_root),
        errors=fields.each("errors", _read_error),
    )


class _Fields:
    """A mapping of the document, read with checks; `where` names it in messages."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, Mapping):
            raise _wrong(where, "is not an object")
        self.value = value
        self.where = where

    def get(self, name: str, *types: type) -> Any:
        value = self.value.get(name)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise _wrong(f"{self.where}.{name}", "is missing or of a wrong type")
        return value

    def text(self, name: str) -> str:
        return str(self.get(name, str))

    def optional_text(self, name: str) -> str | None:
        return None if self.value.get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        number = int(self.get(name, int))
        if number < 0:
            raise _wrong(f"{self.where}.{name}", "is negative")
        return number

    def seconds(self, name: str) -> float:
        value = float(self.get(name, int, float))
        if not 0 < value < float("inf"):
            raise _wrong(f"{self.where}.{name}", "is no positive number")
        return value

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name)
        if value not in allowed:
            raise _wrong(f"{self.where}.{name}", f"is none of {', '.join(allowed)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.get(name, list)
        if not all(isinstance(value, str) for value in values):
            raise _wrong(f"{self.where}.{name}", "is not a list of strings")
        return tuple(values)

    def mapping(self, name: str) -> dict[str, str]:
        values = self.get(name, dict)
        if not all(isinstance(part, str) for pair in values.items() for part in pair):
            raise _wrong(f"{self.where}.{name}", "is not an object of strings")
        return dict(values)

    def each(self, name: str, read: Callable[[_Fields], _T]) -> tuple[_T, ...]:
        values = self.get(name, list)
        return tuple(
            [read(_Fields(value, f"{self.where}.{name}[{index}]")) for index, value in enumerate(values)]
        )


def _wrong(where: str, what: str) -> ConfigError:
    return ConfigError(
        f"{where} {what}",
        why="the file is no manifest, or another version of gpuci wrote it",
        then="write it again with `gpuci manifest --json`",
    )


def _read_root(fields: _Fields) -> Root:
    return Root(
        path=fields.text("path"),
        config_file=fields.optional_text("config_file"),
        args=fields.texts("args"),
        files=fields.texts("files"),
        opaque=fields.mapping("opaque"),
        gpu_isolation=fields.one_of("gpu_isolation", ("mask", "worker-index")),
        because=fields.text("because"),
    )


def _read_target(fields: _Fields) -> TestTarget:
    return TestTarget(
        nodeid=fields.text("nodeid"),
        test_path=fields.text("test_path"),
        test_class=fields.optional_text("test_class"),
        test_function=fields.optional_text("test_function"),
        test_method=fields.optional_text("test_method"),
        root=fields.text("root"),
        line=fields.number("line"),
        run_mode=fields.one_of("run_mode", MODES),
        runs_on=fields.optional_text("runs_on"),
        skip=fields.optional_text("skip"),
        gpus=fields.number("gpus"),
        kind=fields.one_of("class", KINDS),
        timeout=None if fields.value.get("timeout") is None else fields.seconds("timeout"),
        markers=fields.each("markers", _read_marker),
        opaque=fields.optional_text("opaque"),
    )


def _read_marker(fields: _Fields) -> Marker:
    return Marker(
        fields.text("name"),
        fields.texts("args"),
        tuple(fields.mapping("kwargs").items()),
        fields.number("line"),
        fields.value.get("some") is True,
    )


def _read_error(fields: _Fields) -> SourceError:
    return SourceError(fields.text("path"), fields.number("line"), fields.text("message"))
