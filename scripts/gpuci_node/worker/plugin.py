"""The pytest plugin of a test process: collect, pin to devices, run what is handed out, record.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import gc
import sys
from pathlib import Path
from typing import Any, Dict, Generator, List, Optional

import pytest

from gpuci_node.worker import (
    coverage_data,
    identity,
    options,
    outcome,
    policy,
    provenance,
    safety,
    terminal,
    torch_memory,
    usage,
    warm,
)
from gpuci_node.worker.collecting import Collection
from gpuci_node.worker.feeding import Feeder
from gpuci_node.worker.fork import Forking
from gpuci_node.worker.main import own_arguments


class WorkerPlugin:
    """Collects the files of the spec, runs units of them, records each test; see `worker` for the roles."""

    def __init__(self, spec: Dict[str, Any], parent: warm.Parent) -> None:
        self.spec = spec
        self.parent = parent
        self.collection = Collection(spec)
        self.forking = Forking(spec) if spec["role"] == "template" else None
        if self.forking:
            parent.seeds.start()
        self.forked = False
        self.refused = False
        self.feeder: Optional[Feeder] = None
        self.tracker: Optional[outcome.Tracker] = None
        self.usage = usage.Usage()
        self.memory = torch_memory.Memory()
        self.coverage = coverage_data.Measuring(spec)
        self.early_cuda = False
        self.devices = identity.Devices(spec)

    def send(self, kind: str, **fields: Any) -> None:
        """Write a record."""
        self.parent.line.channel.send(kind, **fields)

    # -- options ---------------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(
        self, early_config: pytest.Config, args: List[str]
    ) -> Generator[None, Any, None]:
        # Before the final parse, so that an option of a plugin that is not installed (-n) does no harm.
        ours = own_arguments(self.spec)
        kept, taken = options.neutralise([arg for arg in args if arg not in ours])
        args[:] = ours + kept
        for option in taken:
            self.send("note", level="info", topic="neutralised", text=option)
        measures = self.coverage.prepare(early_config.known_args_namespace)
        yield
        if measures:
            self.coverage.adopt(early_config.pluginmanager)
            self.send("coverage")

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.maxfail = 0
        if hasattr(config.option, "cov_fail_under"):
            config.option.cov_fail_under = 0
        seed = identity.settle(config)
        if seed is not None:
            self.send("note", level="info", topic="seed", text="--randomly-seed=%d" % seed)
        if not identity.is_told_later(config):
            self._tell_identity(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        terminal.mark(session.config)
        self._tell_identity(session.config)

    def _tell_identity(self, config: pytest.Config) -> None:
        identity.tell(config, self.forking.watch.workerinput if self.forking else dict)

    # -- collection ------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Optional[bool]:
        """Where something speaks against forks already, nothing is collected for them."""
        findings = self.forking.hooks(session.config.pluginmanager) if self.forking else []
        if not findings:
            return None
        self.send("ready", findings=findings)
        self.refused = True
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> Optional[bool]:
        return self.collection.ignores(collection_path)

    def pytest_deselected(self, items: List[pytest.Item]) -> None:
        self.collection.deselect(items)

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        file = self.collection.name(collector.path)
        if file is not None and isinstance(collector, pytest.File):
            self.send("collecting", file=file)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        result = yield
        self.collection.shield(collector, result)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if self.collection.report(report):
            self.send("collecting", file=None)

    def _tell_what_is_collected(self, session: pytest.Session) -> None:
        """What is left after all hooks, -k and -m. If one of these fails, pytest ends, and says why."""
        self.collection.take(session.items)
        for text in provenance.elsewhere(self.spec):
            self.send("note", level="warning", topic="not_the_tree", text=text)
        for file in self.spec["files"]:
            self.send("collected", **self.collection.record(file))
        if session.items and self._cuda_came_early():
            self.early_cuda = True
            self.send("early_cuda")

    def _cuda_came_early(self) -> bool:
        if self.spec["role"] == "template" or not policy.is_masked_later(self.spec):
            return False
        return bool(safety.gpu())

    # -- running ---------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Hand out forks (a template) or run units."""
        if not self.refused:
            self._tell_what_is_collected(session)
        if self.forking and not self._serve(session):
            return True
        if not self.early_cuda:
            self.feeder = Feeder(self.spec, self.parent.line, self.collection)
            self.feeder.memory_kept = self.memory.returned
            self.feeder.unit_done = self.coverage.save
            self.feeder.loop(session)
        return True

    def _serve(self, session: pytest.Session) -> bool:
        """Fork on request; return True in a forked process, False in the template in the end."""
        if self.refused or not self.forking:
            return False
        findings = self.forking.findings(session.config.pluginmanager)
        self.send("ready", findings=findings)
        self.parent.collected = True
        spec = None if findings else self.parent.serve()
        if spec is None:
            return False
        self.forking, self.forked = None, True
        gc.unfreeze()  # tests of leaks look at all objects
        self.spec.update(spec)
        identity.become(session.config, self.spec)
        return True

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        assert self.feeder
        due = self.feeder.now
        self.devices.before(due.task)
        nodeid = self.collection.nodeid(item)
        path, line = outcome.item_place(item, self.spec)
        self.tracker = outcome.Tracker((path, line), self.spec)
        limit = outcome.timeout(item, due.timeout)
        self.send("start", task=due.task, nodeid=nodeid, timeout=limit, file=path, line=line)
        self.usage.before()
        yield
        if _closed(sys.stdout) or _closed(sys.stderr):
            # pytest's capture is broken from here on: the rest of the file runs in a fresh process.
            item.session.shouldstop = "a test closed sys.stdout or sys.stderr"
        tracker, self.tracker = self.tracker, None
        if not tracker.complete:
            return  # pytest.exit or an internal error: the supervisor names the test in flight
        record = {**tracker.record(), **self.usage.after()}
        if policy.skipped_for_lack_of_gpus(record, outcome.skipped_by_mark(item), self.spec):
            self.send("gpu_skip", task=due.task, nodeid=nodeid, message=record["message"])
        else:
            self.send("end", task=due.task, nodeid=nodeid, **record)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        self.usage.sample()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.tracker is not None:
            self.tracker.add(report)

    # -- the end ---------------------------------------------------------------------------------

    def pytest_sessionfinish(self) -> None:
        self.coverage.finish()

    def pytest_keyboard_interrupt(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self.send("interrupted", text=outcome.one_line("%s: %s" % (excinfo.typename, excinfo.value)))

    def pytest_internalerror(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self.send("interrupted", text=outcome.one_line("INTERNALERROR %s" % excinfo.exconly()))

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
