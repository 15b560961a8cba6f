"""Results, one JSON object a line: appended, never rewritten; a run that is there is not run again."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

KEY = ("commit", "mutant", "row", "seed")


def parse(text: str) -> list[dict[str, Any]]:
    """The results in a file; a last line that a killed run left torn is no result."""
    results = []
    for line in text.split("\n"):
        try:
            results.append(json.loads(line))
        except ValueError:
            continue
    return [result for result in results if isinstance(result, dict) and all(name in result for name in KEY)]


def latest(results: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    """The last result of each run."""
    return {tuple(result[name] for name in KEY): result for result in results}


class Ledger:
    """A file of results; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def read(self) -> list[dict[str, Any]]:
        """All of them."""
        return parse(self._path.read_text()) if self._path.exists() else []

    def append(self, result: Mapping[str, Any]) -> None:
        """Add one, on a line of its own also behind a torn one."""
        with self._lock, self._path.open("ab+") as stream:
            stream.seek(0, os.SEEK_END)
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")
            stream.write(json.dumps(result).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())


def commit(root: Path) -> str:
    """The last commit that touched the product or this table; changes that are not committed add a hash."""
    paths = ["--", "scripts", "tests/cluster"]
    name = _git(root, "log", "-1", "--format=%h", *paths).strip()
    changes = _git(root, "diff", "HEAD", *paths) + _git(root, "ls-files", "-o", "--exclude-standard", *paths)
    return f"{name}+{hashlib.sha256(changes.encode()).hexdigest()[:6]}" if changes else name


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, check=True)
    return done.stdout.decode(errors="replace")
