"""The controller's half of `engine: xdist`: gives each worker its seat, and records what they report.

Runs in the controller, inside the container (Python >= 3.8, pytest >= 7.0, pytest-xdist >= 3.0).
A seat (number and devices) goes to the worker as part of its gateway's specification, which a worker that
replaces a dead one inherits: so no two living workers have the same GPU or the same number.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Dict, Generator, List, Optional, Set

import pytest

from gpuci_node import processes
from gpuci_node.worker import coverage_data, options, outcome, policy, terminal, xdist_files
from gpuci_node.worker import main as worker
from gpuci_node.worker.warm import Line

_DYING_SECONDS = 0.5  # for a process whose connection ended to be gone
_DIFFERENT = "Different tests were collected"  # pytest-xdist's words


def run(spec: Dict[str, Any], line: Line, package: str) -> int:
    """Run pytest with pytest-xdist; return its exit code."""
    spec["package"] = package
    path = os.path.join(spec["scratch"], "xdist.json")
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(spec, stream)
    os.environ[xdist_files.SPEC] = path
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
        del os.environ[name]  # of a run that we are part of
    # pytest-xdist's workers get the path that is there when it is imported.
    sys.path.append(package)
    controller = Controller(spec, line)
    threading.Thread(target=controller.obey, daemon=True).start()
    args = [*spec["pytest_args"], *worker.xdist_arguments(spec), *spec["args"]]
    return int(pytest.main(args, plugins=[controller]))


class Controller:
    """The pytest plugin of the controller: the only one that writes records."""

    def __init__(self, spec: Dict[str, Any], line: Line) -> None:
        self.spec = spec
        self.line = line
        self.session: Any = None  # of pytest-xdist
        self.items: Dict[str, Dict[str, Any]] = {}  # by the node id that pytest-xdist uses
        self.collected = False
        self.speaking: Optional[int] = None  # the seat whose message is being handled
        self.trackers: Dict[str, outcome.Tracker] = {}
        self.usage: Dict[str, Dict[str, Any]] = {}
        self.flights: Dict[str, int] = {}  # our node id -> seat
        self.causes: Dict[int, str] = {}  # by seat: how the last worker there ended
        self.interrupted = False
        self.began: Set[str] = set()  # by the node id that pytest-xdist uses

    def send(self, kind: str, **fields: Any) -> None:
        """Write a record."""
        self.line.channel.send(kind, **fields)

    def interrupt(self, text: str) -> None:
        """Say why the run ends early; the first reason is the one."""
        if not self.interrupted:
            self.interrupted = True
            self.send("interrupted", text=outcome.one_line(text))

    # -- start -----------------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(
        self, early_config: pytest.Config, args: List[str]
    ) -> Generator[None, Any, None]:
        if coverage_data.Measuring(self.spec).redirect(early_config.known_args_namespace):
            self.send("coverage")
        self._choose_options(args)
        yield

    def _choose_options(self, args: List[str]) -> None:
        sys.path.remove(self.spec["package"])
        ours = worker.xdist_arguments(self.spec)
        kept, taken = options.neutralise([arg for arg in args if arg not in ours], options.OF_XDIST)
        args[:] = ours + kept
        for option in taken:
            self.send("note", level="info", topic="neutralised", text=option)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.maxfail = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """The hook that says that a test starts does not say in which worker: listen where it is called."""
        terminal.mark(session.config)
        self.session = session.config.pluginmanager.getplugin("dsession")
        original = self.session.worker_logstart

        def worker_logstart(node: Any, **fields: Any) -> None:
            self.speaking = seat_of(node)
            original(node=node, **fields)

        self.session.worker_logstart = worker_logstart

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: List[Any]) -> None:
        for seat, gateway in enumerate(specs):
            gateway.env.update(xdist_files.environment(self.spec, seat))

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["workerid"] = "gw%d" % seat_of(node)

    def files(self, seat: int) -> xdist_files.Files:
        """What the worker of a seat leaves for us."""
        return xdist_files.Files(self.spec["scratch"], seat)

    # -- collection ------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        found = self.files(seat_of(node)).read("collection")
        if found is None or found.get("failed"):
            self.interrupt(found["failed"] if found else "%s left no word of its tests" % node.gateway.id)
            pytest.exit("nothing to run")
        self._tell_collected(found)
        if found["early_cuda"] and not self.began:
            self.send("early_cuda")
            pytest.exit("CUDA was initialised while tests were collected")

    def _tell_collected(self, found: Dict[str, Any]) -> None:
        if not self.collected:
            self.collected, self.items = True, found["items"]
            for record in found["records"]:
                self.send(**record)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and _DIFFERENT in report.longreprtext:
            self.interrupt("pytest-xdist: " + report.longreprtext)

    # -- tests -----------------------------------------------------------------------------------

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        item, seat = self.items.get(nodeid), self.speaking
        if item is None or seat is None:
            return
        self.began.add(nodeid)
        self.trackers[nodeid] = outcome.Tracker((item["file"], item["line"]), self.spec)
        self.flights[item["nodeid"]] = seat
        known = {key: item[key] for key in ("task", "nodeid", "timeout", "file", "line")}
        self.send("start", seat=seat, **known)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        tracker, usage = self.trackers.get(report.nodeid), getattr(report, "gpuci_usage", None)
        if str(report.when) == "???":
            self._crashed(report)
        elif tracker is not None:
            tracker.add(report)
            if usage is not None:
                self.usage[report.nodeid] = usage

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        tracker = self.trackers.get(nodeid)
        if tracker is None or not tracker.complete:
            return
        item, seat = self.items[nodeid], self.flights.get(self.items[nodeid]["nodeid"], 0)
        record = {**tracker.record(), **self.usage.pop(nodeid, {})}
        spec = {**self.spec, "gpus": self.spec["seats"][seat]}
        if policy.skipped_for_lack_of_gpus(record, item["by_mark"], spec):
            self.send("gpu_skip", task=item["task"], nodeid=item["nodeid"], message=record["message"])
        else:
            self.send("end", task=item["task"], nodeid=item["nodeid"], **record)
        self._land(nodeid)

    def _land(self, nodeid: str) -> None:
        self.trackers.pop(nodeid, None)
        self.flights.pop(self.items[nodeid]["nodeid"], None)

    # -- workers that end ------------------------------------------------------------------------

    def _crashed(self, report: pytest.TestReport) -> None:
        """pytest-xdist names the test that a worker was at when it died."""
        seat = seat_of(report.node)
        item, cause = self.items[report.nodeid], self.causes.get(seat, "its worker is gone")
        output = self.files(seat).output()
        if item["nodeid"] in self.flights:
            self._end(report.nodeid, "failed", cause, output)
        elif report.nodeid not in self.began:
            self._end(report.nodeid, "not_finished", "its worker died before it began: " + cause, output)

    def _end(self, nodeid: str, how: str, message: str, output: str) -> None:
        """Write the record of a test that did not come to its own end."""
        item = self.items[nodeid]
        place = {"task": item["task"], "nodeid": item["nodeid"], "file": item["file"], "line": item["line"]}
        self.send("end", outcome=how, message=message, output=output, **place)
        self._land(nodeid)

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        seat = seat_of(node)
        text = getattr(node, "workeroutput", {}).get("gpuci_interrupted")
        if text:
            self._fail_flights_of(seat, str(text))
        if error:
            self.causes[seat] = _cause(node, error)
            self._kill(seat)  # it may live on without its connection, on the GPU of its replacement
            if not self.collected:
                self._give_up_collecting(seat)

    def _fail_flights_of(self, seat: int, text: str) -> None:
        for nodeid, item in self.items.items():
            if self.flights.get(item["nodeid"]) == seat:
                self._end(nodeid, "failed", text, "")

    def _give_up_collecting(self, seat: int) -> None:
        """Its replacement would die in the same way."""
        file = self.files(seat).read("collecting")
        if isinstance(file, str) and file:
            self.send("collecting", file=file)
        text = "%s while it collected %s" % (self.causes[seat], file or "the tests")
        self.interrupt(text)
        sys.stderr.write(self.files(seat).output())
        pytest.exit(text)

    def pytest_keyboard_interrupt(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self.interrupt("%s: %s" % (excinfo.typename, excinfo.value))

    def pytest_internalerror(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self.interrupt("INTERNALERROR %s" % excinfo.exconly())

    def pytest_sessionfinish(self) -> None:
        said = getattr(self.session, "_summary_report", None)
        if said:
            self.interrupt("pytest-xdist: " + said)

    # -- what the supervisor wants -------------------------------------------------------------------

    def obey(self) -> None:
        """In a thread of its own: kill a worker whose test is over its limit, after a look at its stacks."""
        while True:
            command = self.line.control.receive()
            if command is None:
                return
            seat, nodeid = command.content["seat"], command.content["nodeid"]
            pid = self.files(seat).pid()
            if self.flights.get(nodeid) != seat or pid is None:
                continue
            processes.send(pid, processes.DUMP_SIGNAL)
            time.sleep(command.content["seconds"])
            if self.flights.get(nodeid) == seat:
                self._kill(seat)

    def _kill(self, seat: int) -> None:
        """Kill the worker of a seat with what it started; what is left of that ends with the run."""
        pid = self.files(seat).pid()
        if pid is not None and pid in processes.descendants(os.getpid()):
            # At once: orphans are no longer below us.
            for member in processes.descendants(pid) | {pid}:
                processes.send(member, signal.SIGKILL)


def seat_of(node: Any) -> int:
    """The seat of a worker, in the specification that its replacement has too."""
    return int(node.gateway.spec.env[xdist_files.SEAT])


def _cause(node: Any, error: Any) -> str:
    """How a worker ended: its signal or exit code where the connection to it knows, else what xdist says."""
    popen: Any = getattr(getattr(node.gateway, "_io", None), "popen", None)
    code: Optional[int] = None
    with contextlib.suppress(AttributeError, subprocess.TimeoutExpired):
        code = popen.wait(timeout=_DYING_SECONDS)
    if code is None:
        return "its worker ended: %s" % (str(error).strip().splitlines() or [""])[-1]
    return (
        "killed by %s" % processes.signal_name(-code)
        if code < 0
        else "its worker left with exit code %d" % code
    )
