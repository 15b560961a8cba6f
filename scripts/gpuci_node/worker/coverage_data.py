"""What pytest-cov measures: each test process leaves data of its own, which are merged when all is done.

Runs in the test process, inside the container (Python >= 3.8, standard library; coverage where there is one).

For pytest-cov each of our processes is a run of its own and no worker of pytest-xdist: such a worker drops
what was measured while the first conftests were loaded, because its controller measures that too.
"""

import contextlib
import os
import shutil
import sys
import traceback
import warnings
from typing import Any, Dict, Iterator, List

from gpuci_node.supervisor.spec import NO_DATA
from gpuci_node.worker.channel import Channel

_SILENT = ("_warn_unimported_source", "_warn_no_data")  # a process runs a part of the tests only


class Measuring:
    """pytest-cov in this process: told where to write, saved after each unit."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        self._parts = str(spec["coverage"])
        self._name = os.path.basename(spec["scratch"])
        self._controller: Any = None

    def prepare(self, options: Any) -> bool:
        """Change pytest-cov's options before it reads them; return whether it measures.

        Reports, of which each process would write its own, and the limit of `fail_under` are not for a part.
        The file's name is no other process's, because pytest-cov erases all NAME.* when it starts.
        """
        if not self.redirect(options):
            return False
        options.numprocesses, options.dist, options.distload = None, "no", False
        return True

    def redirect(self, options: Any) -> bool:
        """The same in a controller of pytest-xdist, which merges what its workers measure by itself."""
        if not getattr(options, "cov_source", None) or getattr(options, "no_cov", False):
            return False
        options.cov_report, options.cov_fail_under = {"": None}, 0
        os.makedirs(self._parts, exist_ok=True)
        os.environ["COVERAGE_FILE"] = os.path.join(self._parts, self._name)
        return True

    def adopt(self, pluginmanager: Any) -> None:
        """Once pytest-cov has started: names as they are in pytest-cov 4 to 7 and coverage 5.5 to 7."""
        plugin = pluginmanager.get_plugin("_cov")
        self._controller = getattr(plugin, "cov_controller", None)
        if self._controller is None:
            return
        plugin._is_worker = lambda session: False
        for cov in (self._controller.cov, getattr(self._controller, "combining_cov", None)):
            for flag in _SILENT:
                if cov is not None:
                    setattr(cov, flag, False)

    def save(self) -> None:
        """Write what was measured so far, so that a crash loses no more than the unit that crashed."""
        cov = getattr(self._controller, "cov", None)
        if cov is not None and not cov.get_option("run:dynamic_context"):
            with _told("coverage could not be saved"):
                cov.switch_context("")  # flushes what is collected (coverage's Collector.switch_context)

    def finish(self) -> None:
        """pytest-cov does not finish itself when the session is interrupted (7.0)."""
        if getattr(self._controller, "started", False):
            with _told("coverage could not be finished"):
                self._controller.finish()


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """An exception in here must not become a test's; no warning, as those may be errors."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError):
            os.write(2, ("%s: %s\n" % (what, error)).encode("utf-8", "replace"))


def measures() -> bool:
    """Whether coverage runs in this process already, started by the environment (COVERAGE_PROCESS_START)."""
    coverage = sys.modules.get("coverage")
    return coverage is not None and coverage.Coverage.current() is not None


def merge(spec: Dict[str, Any], channel: Channel) -> int:
    """Merge the files in `spec["coverage"]` into `spec["data"]`; return an exit code.

    Without the project's configuration: paths were mapped by it when each part was written. What can't be
    read is left out, and told. The parts are removed if all went well.
    """
    parts = _files(spec["coverage"])
    if not parts:
        return NO_DATA
    try:
        _combine(parts, spec["data"], channel)
    except Exception:
        traceback.print_exc()
        return 1
    shutil.rmtree(spec["coverage"], ignore_errors=True)
    return 0


def _combine(parts: List[str], data: str, channel: Channel) -> None:
    import coverage  # type: ignore[import-not-found,unused-ignore]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        whole = coverage.Coverage(data_file=data, config_file=False)
        whole.combine(parts, strict=True, keep=True)
        whole.save()
    for warning in caught:
        channel.send("note", level="warning", topic="coverage", text=str(warning.message))


def _files(directory: str) -> List[str]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(entry.path for entry in os.scandir(directory) if entry.is_file(follow_symlinks=False))
    return []
