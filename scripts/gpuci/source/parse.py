"""The bytes of a Python file -> its facts. Pure; never raises for any bytes."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize

from gpuci.source.facts import FileFacts
from gpuci.source.statements import bindings_of
from gpuci.source.terms import dotted

MAX_BYTES = 10_000_000
_DEVICE_CALLS = ("set_device", "cuda.device")
_WORKER_NAMES = ("PYTEST_XDIST_WORKER", "worker_id", "workerinput")
_DEVICE_CALL = re.compile(rb"\b(set_device|cuda\.device)\s*\(")
_WORKER_NAME = re.compile("|".join(_WORKER_NAMES).encode())


def parse_source(data: bytes) -> FileFacts:
    """Read one file; a file that isn't Python gives facts with `error` set."""
    if len(data) > MAX_BYTES:
        return FileFacts(error=(1, f"larger than {MAX_BYTES // 1_000_000} MB, not read"))
    try:
        text = decode(data)
        tree = ast.parse(text)
        return _facts(data, text, tree)
    except SyntaxError as error:
        return FileFacts(error=(error.lineno or 1, error.msg), doctest=b">>>" in data)
    except (ValueError, LookupError) as error:
        return FileFacts(error=(1, str(error)), doctest=b">>>" in data)
    except (RecursionError, MemoryError):
        return FileFacts(error=(1, "nested too deeply to be read"), doctest=b">>>" in data)


def decode(data: bytes) -> str:
    """The text by its coding cookie or byte order mark (PEP 263), with `\\n` line ends.

    Raises SyntaxError (unknown coding) or UnicodeDecodeError, as Python itself would.
    """
    if b"coding" in data[:300]:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    else:
        encoding = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    text = data.decode(encoding)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _facts(data: bytes, text: str, tree: ast.Module) -> FileFacts:
    return FileFacts(
        bindings=bindings_of(text, tree),
        doctest=b">>>" in data,
        device_line=_device_line(data, tree),
        registered=_registered(data, tree),
        collects=_collects(data, tree),
    )


def _device_line(data: bytes, tree: ast.Module) -> int:
    """Where the file puts a worker on a device of its own, or 0."""
    if not _DEVICE_CALL.search(data) or not _WORKER_NAME.search(data):
        return 0
    nodes = list(ast.walk(tree))
    if not any(_reads_worker(node) for node in nodes):
        return 0
    calls = [node for node in nodes if isinstance(node, ast.Call) and _selects_device(node)]
    return min((call.lineno for call in calls), default=0)


def _selects_device(call: ast.Call) -> bool:
    name = "." + (dotted(call.func) or "")
    return any(name.endswith("." + device) for device in _DEVICE_CALLS)


def _reads_worker(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in _WORKER_NAMES
    if isinstance(node, ast.arg):
        return node.arg in _WORKER_NAMES
    return isinstance(node, ast.Attribute) and node.attr in _WORKER_NAMES


def _registered(data: bytes, tree: ast.Module) -> tuple[str, ...]:
    """Markers registered by `config.addinivalue_line("markers", "name(args): text")`."""
    if b"addinivalue_line" not in data:
        return ()
    return tuple(
        marker_name(call.args[1].value)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "addinivalue_line"
        and len(call.args) == 2
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value == "markers"
        and isinstance(call.args[1], ast.Constant)
        and isinstance(call.args[1].value, str)
    )


def marker_name(line: str) -> str:
    """The name in a line of `markers`: `gpus(n): text` -> `gpus`."""
    return line.partition(":")[0].partition("(")[0].strip()


def _collects(data: bytes, tree: ast.Module) -> tuple[str, ...]:
    """Strings in `pytest_collect_file`, and in the constants and functions that it uses.

    The suffixes and names that it looks for are among them.
    """
    if b"pytest_collect_file" not in data:
        return ()
    binding: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in _bound(node):
            binding.setdefault(name, []).append(node)
    used = binding.pop("pytest_collect_file", [])
    for statement in used:  # grows
        for part in ast.walk(statement):
            if isinstance(part, ast.Name):
                used += binding.pop(part.id, [])
    return tuple(
        node.value
        for statement in used
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _bound(node: ast.stmt) -> set[str]:
    """The name of a function, or the names that an assignment binds."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return {target.id for target in targets if isinstance(target, ast.Name)}
