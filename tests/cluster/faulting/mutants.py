"""The product broken on purpose, in a few places: the table has to see it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Mutant:
    """`edits` are (file below scripts, text, text in its place); `rows` are those that must turn red."""

    what: str
    rows: tuple[str, ...]
    edits: tuple[tuple[str, str, str], ...]


SLURM = "gpuci/execution/slurm"
MUTANTS = {
    "follow": Mutant(
        "the place in the log is forgotten when the connection was made again",
        ("master-killed", "session-killed"),
        (
            (
                f"{SLURM}/run.py",
                "attempt.name: attempt.offset for",
                "attempt.name: attempt.offset * (self._connection.counts.connections < 2) for",
            ),
        ),
    ),
    "adopt": Mutant(
        "a job is submitted without looking whether it is there",
        ("runner-killed",),
        ((f"{SLURM}/texts/submit.sh", "case $claim,$known in", "case , in"),),
    ),
    "cleanup": Mutant(
        "a job that is to end is not cancelled",
        ("ignores-term", "sigint"),
        ((f"{SLURM}/texts/cancel.sh", 'exec scancel -- "$@"', "exit 0"),),
    ),
    "container": Mutant(
        "a job does not remove its container",
        ("keeper-killed",),
        ((f"{SLURM}/batch.sh", "container_remove", ":"),),
    ),
}


def copy(directory: Path, mutant: str = "") -> Path:
    """A copy of scripts/, with a mutant in it; raises ValueError when the text that it changes is not there.

    A copy also of the real ones: a run that takes an hour is not to see what is edited meanwhile.
    """
    for folder in ("scripts", "schemas"):
        ignore = shutil.ignore_patterns("__pycache__", ".venv*")
        shutil.copytree(ROOT / folder, directory / folder, ignore=ignore)
    for file, old, new in MUTANTS[mutant].edits if mutant else ():
        path = directory / "scripts" / file
        text = path.read_text()
        if old not in text:
            raise ValueError(f"mutant {mutant}: {file} has no {old!r} any more")
        path.write_text(text.replace(old, new))
    return directory / "scripts"
