"""Removes from the shared folder what old runs left. I/O."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuci.errors import GpuciError
from gpuci.execution.delivery.link import Link, marked

KEPT_JOBS = 50
SECONDS = 120.0  # the text itself stops after one minute
_TEXT = Path(__file__).with_name("texts") / "clean.sh"
_MARK = "gpuci-clean"


@dataclass(frozen=True)
class Cleaned:
    """Names of the job directories and paths of the files that were removed; `notes`: what could not be."""

    jobs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def clean(connection: Link, shared: str, *, kept: int = KEPT_JOBS) -> Cleaned:
    """Remove job directories older than three days, or of which `kept` newer ones are there, if not in use;
    trees, node code and broken uploads older than a day that no job directory links.

    In use is what was written within the hour. Never raises GpuciError: a run does not fail for old files.
    """
    try:
        answer = connection.run(_TEXT.read_text("utf-8"), shared, str(kept), timeout=SECONDS)
    except GpuciError as error:
        return Cleaned(notes=(f"old files were not cleaned: {error.what}",))
    told = marked(answer.out, _MARK)
    notes = [rest for word, rest in told if word == "note"]
    if answer.code != 0:
        notes.append(f"cleaning ended with code {answer.code}")
    return Cleaned(
        jobs=tuple(rest for word, rest in told if word == "job"),
        files=tuple(rest for word, rest in told if word == "file"),
        notes=tuple("".join(c if c.isprintable() else "?" for c in note)[:300] for note in notes),
    )
