"""durations.json, report.json, or a file with a plain map of node ids to seconds -> checked values."""

from __future__ import annotations

import json
from pathlib import Path

from gpuci.durations.parse import Durations, parse
from gpuci.errors import ConfigError


def read(path: Path) -> Durations:
    """Read what a JSON file holds of earlier runs; raises ConfigError naming the file and the bad keys."""
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"{path} can't be read: {error.strerror}", then="give a durations file that exists, or none"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not JSON: {_one_line(error)}", then="restore the file, or plan without it"
        ) from error
    return parse(document, str(path))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
