"""Runs plain pytest sessions, each in a fork of a process that has only imported pytest and its plugins.

A program for the Python that is tested with (>= 3.8, pytest >= 7). Standard input is a JSON list of
`{"cwd", "env", "args", "output"}`; `output` is the file that gets what pytest prints.
"""

import importlib
import json
import os
import sys
from typing import Any, Dict  # noqa: UP035 (Python 3.8)

import pytest
from _pytest.config import default_plugins


class Xdist:
    """The fixtures of pytest-xdist, for where it is not installed."""

    @pytest.fixture(scope="session")
    def worker_id(self) -> str:
        """As without `-n`."""
        return "master"

    @pytest.fixture(scope="session")
    def testrun_uid(self) -> str:
        """Anything."""
        return "plain"


def run(session: Dict[str, Any]) -> int:  # noqa: UP006 (Python 3.8)
    """Be the command `pytest`."""
    output = os.open(session["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.environ.update(session["env"])
    os.chdir(session["cwd"])
    return int(pytest.main(session["args"], plugins=[Xdist()]))


def main() -> int:
    """Run them one after the other; return 1 if pytest ended one by more than failed tests."""
    for plugin in default_plugins:
        importlib.import_module("_pytest." + plugin)
    badly = 0
    for session in json.load(sys.stdin):
        pid = os.fork()
        if pid == 0:
            return run(session)
        status = os.waitpid(pid, 0)[1]
        badly += status not in (0, 1 << 8, 5 << 8)  # passed, failed, nothing to run
    return int(badly > 0)


if __name__ == "__main__":
    del sys.path[0]
    sys.argv = ["pytest"]
    sys.exit(main())
