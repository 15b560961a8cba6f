"""Who a test process is, told to conftests and plugins the way pytest-xdist tells its workers.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import os
import socket
import tempfile
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

# Plugins that do other things in xdist's workers when they are configured: one asks the controller for a
# port, the other runs no benchmarks and warns. They are told when the session starts.
_TOLD_LATER = ("rerunfailures", "benchmark")

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def is_told_later(config: pytest.Config) -> bool:
    """Whether a plugin is there that must not know at once that this is a worker."""
    return any(map(config.pluginmanager.hasplugin, _TOLD_LATER))


def settle(config: pytest.Config) -> Optional[int]:
    """Before plugins are configured: what xdist's controller decides for all; return pytest-randomly's seed.

    pytest-randomly would take another seed in each process. pytest-rerunfailures would start a server for
    crashes of workers, a thread that no fork survives.
    """
    rerunfailures: Any = config.pluginmanager.get_plugin("rerunfailures")
    if hasattr(rerunfailures, "HAS_PYTEST_HANDLECRASHITEM"):
        rerunfailures.HAS_PYTEST_HANDLECRASHITEM = False
    if not hasattr(config.option, "randomly_seed"):
        return None
    if not isinstance(config.option.randomly_seed, int):  # "default", "last"
        config.option.randomly_seed = zlib.crc32(os.environ["PYTEST_XDIST_TESTRUNUID"].encode())
    return int(config.option.randomly_seed)


def tell(config: pytest.Config, wrap: Callable[[Dict[str, Any]], Dict[str, Any]]) -> None:
    """Give conftests and plugins what they ask pytest-xdist's workers for, once."""
    if hasattr(config, "workerinput"):
        return
    config.workerinput = wrap(  # type: ignore[attr-defined]
        {
            "workerid": os.environ["PYTEST_XDIST_WORKER"],
            "workercount": int(os.environ["PYTEST_XDIST_WORKER_COUNT"]),
            "testrunuid": os.environ["PYTEST_XDIST_TESTRUNUID"],
            # pytest-cov asks whether the controller is on this machine: there is one, in a way
            "cov_master_host": socket.gethostname(),
            "cov_master_topdir": os.getcwd(),
            "cov_master_rsync_roots": [],
            "randomly_seed": getattr(config.option, "randomly_seed", None),
        }
    )
    config.workeroutput = {}  # type: ignore[attr-defined]


def become(config: pytest.Config, spec: Dict[str, Any]) -> None:
    """Make the copy of a collected session that a fork left a worker of its own.

    Name, temporary directories, cache and captured output were its parent's. Names of pytest's own as they
    are in 7.0 to 9.2.
    """
    config.workerinput["workerid"] = os.environ["PYTEST_XDIST_WORKER"]  # type: ignore[attr-defined]
    scratch = Path(spec["scratch"])
    config.option.basetemp = str(scratch / "tmp")
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:
        factory._given_basetemp, factory._basetemp = scratch / "tmp", None
    cache = getattr(config, "cache", None)
    if cache is not None:
        cache._cachedir = scratch / "cache"
    capture = config.pluginmanager.getplugin("capturemanager")
    both = getattr(capture, "_global_capturing", None)
    captures: List[Any] = [getattr(both, "out", None), getattr(both, "err", None)]
    for each in captures:
        if hasattr(each, "targetfd"):
            # Else all copies would write to one file, at one position. What modules keep of sys.stdout since
            # they were imported leads to that descriptor, so it is not closed.
            with tempfile.TemporaryFile(buffering=0) as fresh:
                os.dup2(fresh.fileno(), each.tmpfile.fileno(), inheritable=False)


class Devices:
    """From the first test on a process sees its slot's devices; collection saw all of the job's.

    What the tests' own code sets is left alone until the next unit; what an import set is left alone.
    """

    def __init__(self, spec: Dict[str, Any]) -> None:
        self._spec = spec
        self._task: Optional[int] = None
        self._given = os.environ.get(_VISIBLE)
        self._theirs = spec["isolation"] != "mask"

    def before(self, task: int) -> None:
        """A test of this task begins."""
        first = self._task is None
        if first and os.environ.get(_VISIBLE, self._given) != self._given:
            self._theirs = True  # somebody knows better
        if not self._theirs and (first or task != self._task or _VISIBLE not in os.environ):
            os.environ[_VISIBLE] = ",".join(self._spec["gpus"])
        self._task = task
