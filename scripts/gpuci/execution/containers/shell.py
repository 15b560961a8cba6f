"""Shell text that all runtimes share. Pure.

Configured values are quoted where they are written; what only the node knows is a variable of its
environment: GPUCI_SCRATCH, GPUCI_JOB_DIR, SLURM_JOB_ID. The text is POSIX sh and works under `set -eu`.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

# Where the starter of the tests finds its protocol is standard input and output, so the setup gets neither.
# In the same shell, so that what it exports or activates is there for the tests; python and setup are its
# arguments, so no text of theirs is ever part of this one.
_SETUP = r"""
gpuci_python=$0 gpuci_setup=$1
shift
trap 'echo "gpuci: container.setup failed" >&2' EXIT
set -e
eval "$gpuci_setup" </dev/null >&2
set +e
trap - EXIT
unset gpuci_setup
exec "$gpuci_python" "$@"
"""


def entry(python: str, setup: str) -> tuple[str, tuple[str, ...]]:
    """(program, its first arguments) as shell words: Python, or a shell that becomes it after the setup."""
    if not setup:
        return quote(python), ()
    return "/bin/sh", ("-c", quote(_SETUP.strip()), quote(python), quote(setup))


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
