"""Where a run leaves its files: one new directory, old ones of ours cleaned by count."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from gpuci.errors import ConfigError, GpuciError

KEPT_RUNS = 10
_BEGINNING_SECONDS = 3600.0  # longer than any run takes to reach its first shard


def new_directory(root: Path, run: str, asked: str | None) -> Path:
    """Make the directory of a run: `asked`, or ROOT/.gpuci/runs/RUN, or a temporary one if ROOT is read-only.

    Raises ConfigError if `asked` holds anything: nothing of another run is ever overwritten.
    """
    if asked is not None:
        return _asked(Path(asked).absolute())
    home = root / ".gpuci"
    try:
        path = home / "runs" / run
        path.mkdir(parents=True)
        (home / ".gitignore").write_text("*\n")
    except OSError:
        return Path(tempfile.mkdtemp(prefix=f"gpuci-{run}-"))
    return path


def _asked(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        empty = not any(path.iterdir())
    except OSError as error:
        raise ConfigError(
            f"--out {path}: {error.strerror}", then="name a directory that can be made"
        ) from error
    if not empty:
        raise ConfigError(f"--out {path} is not empty", then="name a new directory, or remove that one")
    return path


def keep_newest(runs: Path, count: int = KEPT_RUNS) -> None:
    """Remove all but the newest finished runs (those with a report) below `runs`, and old ones of no shard.

    What has a shard and no report can be a run that waits in a queue: it stays.
    """
    found = [path for path in runs.glob("*") if path.is_dir()]
    for path in found:
        if time.time() - path.stat().st_mtime > _BEGINNING_SECONDS:
            discard_unbegun(path)
    finished = [path for path in found if (path / "report.json").is_file()]
    finished.sort(key=lambda path: (path / "report.json").stat().st_mtime)
    for path in finished[:-count]:
        shutil.rmtree(path, ignore_errors=True)


def discard_unbegun(out: Path) -> None:
    """Remove the directory of a run that ended before anything ran: no report, no shard's folder."""
    if not (out / "report.json").exists() and not any(path.is_dir() for path in out.glob("*")):
        shutil.rmtree(out, ignore_errors=True)


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write a document whole or not at all; raises GpuciError naming the path."""
    write_text(path, json.dumps(document) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text whole or not at all; raises GpuciError naming the path."""
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> GpuciError:
    """What to tell of a file of the run that can't be written."""
    return GpuciError(
        f"{path} can't be written: {error.strerror}",
        why="the disk is full or read-only",
        then="make room, or name another place with --out",
    )


def read_document(path: Path, *, then: str) -> Any:
    """Read a JSON document; raises ConfigError naming the file, with what to do `then`."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}", then=then) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON document: {error}", then=then) from error
