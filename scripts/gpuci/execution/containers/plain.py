"""No container: the tests run on the node itself. Pure."""

from __future__ import annotations

from shlex import quote

from gpuci.execution.containers import shell
from gpuci.execution.containers.settings import Settings

_REST = r"""container_pull() {
    rm -f -- "$GPUCI_JOB_DIR/pull-auth"
}
container_remove() {
    :
}
"""


def functions(settings: Settings) -> str:
    """The same functions without a container, which Slurm ends with the job."""
    python = quote(settings.python)
    check = [
        f"! command -v {python} >/dev/null || return 0",
        f'echo "the node has no "{python}" (container.python)"',
        "return 1",
    ]
    run = shell.function("container_run", [f'exec {python} "$@"'])
    return run + _REST + shell.function("container_check", check)
