"""Where the private environment of our actions lives: outside of the caller's Python, and fit for a cache.

Runs of a pull request see the caches of the default branch, and under `pull_request_target` keep none
themselves (docs.github.com, "Dependency caching reference"; github.blog, "Control GitHub Actions cache access
with cache-mode"): what a push to the default branch kept is what they find.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from gpuci import environment

SCRIPTS = Path(__file__).resolve().parents[2]
REQUIREMENTS = SCRIPTS / "requirements.txt"


def key() -> str:
    """A name for what the environment depends on: the locked requirements, and the Python that runs this.

    The ABI (`cpython-312-x86_64-linux-gnu`) has version, architecture and C library; an environment's
    `python` is a link to the one that made it.
    """
    abi = sysconfig.get_config_var("SOABI") or sysconfig.get_platform()
    base = os.path.realpath(sys.executable)
    parts = (REQUIREMENTS.read_bytes(), abi.encode(), sys.version.encode(), os.fsencode(base))
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return f"gpuci-{abi}-{digest[:16]}"


def place(environ: Mapping[str, str]) -> tuple[Path, str]:
    """(directory, name in it) of the environment.

    RUNNER_TOOL_CACHE outlives the job on a runner of one's own, and is the same directory in every job of a
    hosted one, as a cache needs it; RUNNER_TEMP is emptied. Without a runner it is the clone's.
    """
    for variable in ("RUNNER_TOOL_CACHE", "RUNNER_TEMP"):
        given = environ.get(variable)
        if given and _is_ours(Path(given) / "gpuci"):
            return Path(given) / "gpuci", key()
    return SCRIPTS.parent, ".venv"


def _is_ours(base: Path) -> bool:
    """Whether this directory, made if need be, is this user's: we run what lies there, with a token."""
    try:
        base.mkdir(exist_ok=True)
        return base.stat().st_uid == os.geteuid() and os.access(base, os.W_OK)
    except OSError:
        return False


def is_ready(environ: Mapping[str, str]) -> bool:
    """Whether the environment is there and whole."""
    base, name = place(environ)
    return environment.is_fresh(base / name, environment.stamp_of(REQUIREMENTS))


def enter(environ: Mapping[str, str]) -> None:
    """Become the Python of the private environment: the same process, so that it gets the runner's signals.

    It gets `environ`. Makes the environment if it is not there; raises GpuciError as `environment.ensure`
    does.
    """
    base, name = place(environ)
    if _is_in(base / name):
        return
    python = environment.ensure(base, name, REQUIREMENTS)
    if not _is_in(python.parent.parent):
        os.execve(python, [str(python), "-I", *sys.argv], dict(environ))


def _is_in(directory: Path) -> bool:
    return Path(sys.prefix).resolve() == directory.resolve()
