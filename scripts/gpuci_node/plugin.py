"""The pytest plugin of a test process: choose, pin to devices, record.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import contextlib
import os
import socket
import sys
from pathlib import Path
from typing import Any, Dict, Generator, List, Optional

import pytest

from gpuci_node import contract, options, outcome, policy
from gpuci_node.worker import Channel, here, in_tree, own_arguments

# Plugins that do other things in xdist's workers when they are configured: one asks the controller for a
# port, the other runs no benchmarks and warns. They are told when the session starts.
_TOLD_LATER = ("rerunfailures", "benchmark")


class WorkerPlugin:
    """Lets one file through collection, runs what the spec selects of it, records each test."""

    def __init__(self, spec: Dict[str, Any], channel: Channel) -> None:
        self.spec = spec
        self.channel = channel
        self.file = Path(here(spec, spec["file"]))
        self.select = contract.indexed(spec["select"])
        self.only = None if spec["only"] is None else frozenset(spec["only"])
        self.deselected: List[str] = []
        self.errors: List[Dict[str, Any]] = []
        self.skipped: List[Dict[str, Any]] = []
        self.tracker: Optional[outcome.Tracker] = None
        self.masked = spec["mask_from_start"]

    # -- options ---------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, args: List[str]) -> None:
        # Before the final parse, so that an option of a plugin that is not installed (-n) does no harm.
        ours = own_arguments(self.spec)
        kept, taken = options.neutralise([arg for arg in args if arg not in ours])
        args[:] = ours + kept
        for option in taken:
            self.channel.send("note", level="info", topic="neutralised", text=option)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.maxfail = 0
        if hasattr(config.option, "cov_fail_under"):
            config.option.cov_fail_under = 0
        if not any(map(config.pluginmanager.hasplugin, _TOLD_LATER)):
            self._become_worker(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._become_worker(session.config)

    def _become_worker(self, config: pytest.Config) -> None:
        """Give conftests and plugins what they ask pytest-xdist's workers for."""
        if hasattr(config, "workerinput"):
            return
        config.workerinput = {  # type: ignore[attr-defined]
            "workerid": os.environ["PYTEST_XDIST_WORKER"],
            "workercount": int(os.environ["PYTEST_XDIST_WORKER_COUNT"]),
            "testrunuid": os.environ["PYTEST_XDIST_TESTRUNUID"],
            # pytest-cov asks whether the controller is on this machine: there is one, in a way
            "cov_master_host": socket.gethostname(),
            "cov_master_topdir": os.getcwd(),
            "cov_master_rsync_roots": [],
        }
        config.workeroutput = {}  # type: ignore[attr-defined]

    # -- collection ------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> Optional[bool]:
        """Let only our file through, and what pytest needs on the way to it.

        The file is no argument, because pytest does not apply `collect_ignore` and `python_files` to those.
        """
        if collection_path == self.file or collection_path in self.file.parents:
            return None
        if collection_path.name == "__init__.py" and collection_path.parent in self.file.parents:
            return None
        return True

    def pytest_deselected(self, items: List[pytest.Item]) -> None:
        self.deselected += [self.nodeid(item) for item in items if item.path == self.file]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.errors.append(
                {"nodeid": self._collector_id(report.nodeid), **outcome.collect_failure(report)}
            )
        elif report.skipped:
            self.skipped.append(
                {"nodeid": self._collector_id(report.nodeid), "message": outcome.skip_reason(report)}
            )

    def _collector_id(self, nodeid: str) -> str:
        path, separator, rest = nodeid.partition("::")
        return (in_tree(self.spec, path) if path else self.spec["file"]) + separator + rest

    def nodeid(self, item: pytest.Item) -> str:
        """ROOT-relative path + what pytest prints after the first `::`."""
        return in_tree(self.spec, str(item.path)) + "::" + item.nodeid.partition("::")[2]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: List[pytest.Item]) -> Generator[None, Any, None]:
        hooks = yield  # all of the project, and -k and -m
        if hooks.excinfo:
            return  # an expression that is none, or a hook that fails: pytest ends, and says why
        ours = [item for item in items if item.path == self.file]
        marks = {self.nodeid(item): [mark.name for mark in item.iter_markers()] for item in ours}
        self.channel.send(
            "collected",
            file=self.spec["file"],
            ids=list(marks),
            marks={nodeid: names for nodeid, names in marks.items() if names},
            deselected=self.deselected,
            errors=self.errors,
            skipped=self.skipped,
        )
        items[:] = self._choose(ours, marks)
        if items and self._cuda_came_early():
            self.channel.send("early_cuda")
            items[:] = []

    def _choose(self, items: List[pytest.Item], marks: Dict[str, List[str]]) -> List[pytest.Item]:
        chosen = []
        for item in items:
            nodeid = self.nodeid(item)
            due = nodeid in self.only if self.only is not None else contract.selects(self.select, nodeid)
            if due and self._stays(
                nodeid, policy.need(marks[nodeid], self.spec["markers"], self.spec["event"])
            ):
                chosen.append(item)
        return chosen[: self.spec["limit"]]

    def _stays(self, nodeid: str, need: policy.Need) -> bool:
        """Whether the item runs here; if not, say where it goes."""
        if need.skip:
            self.channel.send("end", nodeid=nodeid, outcome="skipped", message=need.skip)
            return False
        spec = self.spec
        wider = need.gpus is not None and len(spec["gpus"]) < min(need.gpus, len(spec["job_gpus"]))
        if spec["job_gpus"] and (wider or (need.alone and not spec["alone"])):
            self.channel.send(
                "deferred", nodeid=nodeid, gpus=need.gpus, alone=need.alone, because=need.because
            )
            return False
        if need.gpus is not None and need.gpus > len(spec["job_gpus"]):
            self.channel.send("beyond_node", nodeid=nodeid, gpus=need.gpus, because=need.because)
        return True

    def _cuda_came_early(self) -> bool:
        if self.masked or len(self.spec["gpus"]) == len(self.spec["job_gpus"]):
            return False
        return self.spec["isolation"] == "mask" and _cuda_is_initialised()

    # -- running ---------------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        self._mask()
        nodeid = self.nodeid(item)
        self.tracker = outcome.Tracker(item, self.spec)
        path, line = self.tracker.item_place()
        limit = outcome.timeout(item, self.spec["timeout"])
        self.channel.send("start", nodeid=nodeid, timeout=limit, file=path, line=line)
        yield
        if _closed(sys.stdout) or _closed(sys.stderr):
            # pytest's capture is broken from here on: the rest of the file runs in a fresh process.
            item.session.shouldstop = "a test closed sys.stdout or sys.stderr"
        tracker, self.tracker = self.tracker, None
        if not tracker.complete:
            return  # pytest.exit or an internal error: the supervisor names the test in flight
        record = tracker.record()
        if self._skipped_for_lack_of_gpus(item, record):
            self.channel.send("gpu_skip", nodeid=nodeid, message=record["message"])
        else:
            self.channel.send("end", nodeid=nodeid, **record)

    def _mask(self) -> None:
        """From now on the process sees its slot's devices only; collection saw all of the job's."""
        if self.spec["isolation"] == "mask":
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(self.spec["gpus"])

    def _skipped_for_lack_of_gpus(self, item: pytest.Item, record: Dict[str, Any]) -> bool:
        spec = self.spec
        if record["outcome"] != "skipped" or spec["isolation"] != "mask":
            return False
        if len(spec["gpus"]) >= len(spec["job_gpus"]) or not policy.is_gpu_skip(record["message"]):
            return False
        # A condition that collection evaluated saw all devices, unless they were masked by then.
        return spec["mask_from_start"] or not outcome.skipped_by_mark(item)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.tracker is not None:
            self.tracker.add(report)

    # -- the end ---------------------------------------------------------------------------------

    def pytest_keyboard_interrupt(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self.channel.send("interrupted", text=outcome.one_line("%s: %s" % (excinfo.typename, excinfo.value)))

    def pytest_internalerror(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self.channel.send("interrupted", text=outcome.one_line("INTERNALERROR %s" % excinfo.exconly()))

    @pytest.fixture(scope="session")
    def worker_id(self, request: pytest.FixtureRequest) -> str:
        """The slot's name, as pytest-xdist's fixture gives it."""
        return str(request.config.workerinput["workerid"])  # type: ignore[attr-defined]

    @pytest.fixture(scope="session")
    def testrun_uid(self, request: pytest.FixtureRequest) -> str:
        """The same in all processes of a run, as pytest-xdist's fixture."""
        return str(request.config.workerinput["testrunuid"])  # type: ignore[attr-defined]


def _closed(stream: Any) -> bool:
    return bool(getattr(stream, "closed", False))


def _cuda_is_initialised() -> bool:
    torch = sys.modules.get("torch")
    with contextlib.suppress(Exception):
        return bool(torch is not None and torch.cuda.is_initialized())
    return False
