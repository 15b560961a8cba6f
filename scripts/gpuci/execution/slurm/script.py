"""The text of a batch job: values in, one sh program with its #SBATCH lines out. Pure.

sbatch splits a #SBATCH line into words by rules of its own (`get_argument` in its source, tried with 22.05):
quotes group, a backslash takes the next character as it is except a blank outside of quotes, an unquoted `#`
starts a comment, and the words `hetjob` and `packjob` are blanked out wherever they stand.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from gpuci.errors import ConfigError

# Slurm's own limit, which a site may raise or lower: max_script_size in SchedulerParameters.
MAX_BYTES = 4 * 1024 * 1024
_SAFE_WORD = re.compile(r"[A-Za-z0-9_.,:;/@%+=&|\[\]*-]+")
_BLANKED = re.compile(r"(het|pack)(?=job)", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIRECTIVE = re.compile(r"^#(SBATCH|SLURM|PBS|BSUB)", re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True)
class BatchJob:
    """What a batch script is made of.

    `options` are sbatch's, each `--name=value`. `variables` are set before the functions, in the order of
    their names. `functions` and `body` are sh text: the container's functions, and what a job does.
    """

    options: tuple[str, ...]
    variables: Mapping[str, str]
    functions: str
    body: str


def batch_script(job: BatchJob) -> str:
    """The text for sbatch. The same job gives the same text.

    Raises ConfigError on what can't stand in a script: control characters in an option, NUL, a carriage
    return at the end of a line (sbatch refuses it), a text that is not UTF-8, or more than Slurm takes;
    ValueError on a variable's name that sh has no use for, and on text of ours that holds a #SBATCH line.
    """
    parts = [
        "#!/bin/sh",
        *(f"#SBATCH {directive(option)}" for option in job.options),
        "# gpuci: one try of one shard. Written by a program; what it does is below, in plain sh.",
        *(assignment(name, job.variables[name]) for name in sorted(job.variables)),
        _own(job.functions),
        _own(job.body),
    ]
    text = "\n".join(part.rstrip("\n") for part in parts) + "\n"
    _check(text)
    return text


def directive(option: str) -> str:
    """One option as a word of a #SBATCH line; raises ConfigError on control characters other than a tab."""
    if _CONTROL.search(option):
        raise ConfigError(
            f"a control character in an option for sbatch: {option!r}",
            then="write the option on one line",
        )
    if _SAFE_WORD.fullmatch(option) and not _BLANKED.search(option):
        return option
    quoted = re.sub(r'([\\"#])', r"\\\1", option)
    return '"' + _BLANKED.sub(r"\1\\", quoted) + '"'


def assignment(name: str, value: str) -> str:
    """`name='value'` for sh. No line of it starts with `#`: old sbatch reads #SBATCH anywhere in a script."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"not the name of a variable: {name!r}")
    return f"{name}={shlex.quote(value)}".replace("\n#", "\n''#")


def _own(text: str) -> str:
    found = _DIRECTIVE.search(text)
    if found:
        raise ValueError(f"a line of the script starts with {found[0]}, which sbatch reads")
    return text


def _check(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"the batch script is not UTF-8: {text[error.start : error.end]!r}",
            why="a setting holds bytes that are no text",
        ) from error
    for bad, name in (("\0", "a NUL character"), ("\r\n", "a line that ends in a carriage return")):
        if bad in text:
            raise ConfigError(
                f"the batch script holds {name}, which sbatch refuses",
                why="a setting was written with it; `container.setup` is the longest",
                then="save the configuration with UNIX line ends",
            )
    if size > MAX_BYTES:
        raise ConfigError(
            f"the batch script has {size} bytes, and Slurm takes {MAX_BYTES}",
            then="put long texts (`container.setup`) into a file of the tree",
        )
