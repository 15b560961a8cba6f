"""What a job left in its folder, held against what its log said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuci.execution.log import LogReader
from gpuci.results import journal
from gpuci.results.journal import Record


@dataclass(frozen=True)
class Outputs:
    """Records and verdict of one job; `problem` says what is wrong with the journal, or is empty."""

    records: tuple[Record, ...]
    verdict: dict[str, Any] | None
    problem: str


def read_outputs(folder: Path, log: LogReader) -> Outputs:
    """The journal if it is whole and the verdict's, else what the log carried.

    The log holds the same records: if the verdict was written for those, nothing is missing. A file that is
    there and holds others is a warning then.
    """
    verdict, problem = _read_json(folder / "verdict.json")
    verdict = verdict or log.verdict
    records = tuple(log.records)
    complete = _is_of(verdict, log)
    try:
        data = (folder / "journal.jsonl").read_bytes()
        disagreement = journal.problem(data, verdict)
        written = journal.parse(data).records
        # Without a verdict neither is complete: the one that has more.
        if (verdict is not None and not disagreement) or (verdict is None and len(written) > len(records)):
            records = written
        if disagreement and complete:
            records = (*records, journal.REPLACED)
        problem = problem or disagreement
    except OSError as error:
        problem = problem or f"the journal can't be read: {error.strerror}"
    return Outputs(records, verdict, "" if complete else problem)


def _is_of(verdict: dict[str, Any] | None, log: LogReader) -> bool:
    """Whether the log carried the very journal that the verdict was written for."""
    claimed = verdict.get("journal") if verdict is not None else None
    return claimed == {"lines": log.lines, "sha256": log.digest}


def _read_json(path: Path) -> tuple[dict[str, Any] | None, str]:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError, RecursionError) as error:
        return None, f"{path.name} can't be read: {error}"
    return (document, "") if isinstance(document, dict) else (None, f"{path.name} is no verdict")
