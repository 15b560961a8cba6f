"""Shell text that all runtimes share. Pure.

Configured values are quoted where they are written; what only the node knows is a variable of its
environment: GPUCI_SCRATCH, GPUCI_JOB_DIR, SLURM_JOB_ID. The text is POSIX sh and works under `set -eu`.
"""

from __future__ import annotations

from collections.abc import Iterable


def function(name: str, lines: Iterable[str]) -> str:
    """A shell function of some lines."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"{name}() {{\n{body}}}\n"


def prepend(words: Iterable[str], *, condition: str = "") -> str:
    """The line that puts words before the function's arguments, if a condition holds."""
    line = " ".join(["set --", *words, '"$@"'])
    return f"! {condition} || {line}" if condition else line


def is_set(name: str) -> str:
    """The condition that a variable is set, also to nothing; `name` was checked to be a name."""
    return f'[ -n "${{{name}+x}}" ]'
