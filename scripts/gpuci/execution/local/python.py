"""Which Python runs the tests on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from gpuci import environment
from gpuci.errors import ConfigError

_PROBE = "import sys, pytest; print(pytest.__version__); sys.exit(sys.version_info < (3, 8))"


def choose(configured: str | None, root: Path) -> tuple[str, str]:
    """Return the Python for test processes and the reason for it.

    `node.python`, else the active environment's or PATH's python3 if it imports pytest, else gpuci's
    own environment, which gets pytest on first use. Raises ConfigError if `node.python` has no pytest.
    """
    if configured:
        return _configured(configured, root), "node.python"
    for python, because in _candidates():
        if _pytest_version(python):
            return python, because
    return str(environment.own_pytest()), "gpuci's own environment; no python3 in reach imports pytest"


def _configured(configured: str, root: Path) -> str:
    # A name is looked up on PATH, a path is one below ROOT.
    python = shutil.which(configured) if "/" not in configured else str(root / configured)
    if python is None or not _pytest_version(python):
        raise ConfigError(
            f"node.python: {configured} does not run pytest",
            why="it is missing, older than Python 3.8, or pytest is not installed for it",
            then=f"install pytest there ({configured} -m pip install pytest), or remove node.python",
        )
    return python


def _candidates() -> Iterator[tuple[str, str]]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix:
            yield f"{prefix}/bin/python", f"the active environment ({variable})"
    python = shutil.which("python3")
    if python:
        yield python, "python3 on PATH"


def _pytest_version(python: str) -> str | None:
    try:
        # Not in the tree under test: a `pytest.py` there would be imported.
        done = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, cwd="/", check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
