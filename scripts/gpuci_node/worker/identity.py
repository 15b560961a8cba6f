"""Who a test process is, told to conftests and plugins the way pytest-xdist tells its workers.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import os
import socket
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest

# Plugins that do other things in xdist's workers when they are configured: one asks the controller for a
# port, the other runs no benchmarks and warns. They are told when the session starts.
_TOLD_LATER = ("rerunfailures", "benchmark")


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
    if capture is not None:
        # Else all copies would write to one temporary file, at one position.
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
