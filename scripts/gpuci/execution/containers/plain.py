"""No container: the tests run on the node itself. Pure."""

from __future__ import annotations

from shlex import quote

from gpuci.execution.containers import shell
from gpuci.execution.containers.settings import Settings

_REST = r"""container_pull() {
    :
}
container_remove() {
    :
}
"""


def functions(settings: Settings) -> str:
    """The same functions without a container; the setup runs on the node."""
    program, first = shell.entry(settings.python, settings.setup)
    python = quote(settings.python)
    check = [
        f"! command -v {python} >/dev/null || return 0",
        f'echo "$(uname -n) has no "{python}',
        "return 1",
    ]
    run = shell.function("container_run", [" ".join(["exec", program, *first, '"$@"'])])
    return run + _REST + shell.function("container_check", check)
