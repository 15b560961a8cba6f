"""The worker's half of `engine: xdist`: `-p gpuci_node.worker.xdist_plugin` in the workers of pytest-xdist.

Runs in the workers, inside the container (Python >= 3.8, pytest >= 7.0, pytest-xdist >= 3.0). pytest-xdist
runs the tests and reports them; here the tests of the units are chosen, devices are pinned, and what only a
worker knows is left for the controller.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, Generator, List, Optional

import pytest

from gpuci_node import contract
from gpuci_node.worker import main as worker
from gpuci_node.worker import options, outcome, policy, safety, usage, xdist_files
from gpuci_node.worker.collecting import Collection
from gpuci_node.worker.feeding import place


def pytest_addhooks(pluginmanager: "pytest.PytestPluginManager") -> None:
    """In a worker, before conftests are loaded: become one; nothing in the controller."""
    seat = os.environ.pop(xdist_files.SEAT, None)
    if seat is None:
        return
    with open(os.environ.pop(xdist_files.SPEC), encoding="utf-8") as stream:
        spec = json.load(stream)
    sys.path[:] = [entry for entry in sys.path if entry != spec["package"]]
    pluginmanager.register(Worker(spec, int(seat)), "gpuci-worker")


class Worker:
    """Filters what is collected, masks devices, measures; tells the controller by files and on reports."""

    def __init__(self, spec: Dict[str, Any], seat: int) -> None:
        self.spec = {**spec, "gpus": spec["seats"][seat]}
        self.files = xdist_files.Files(spec["scratch"], seat)
        self.collection = Chosen(self.spec)
        self.usage = usage.Usage()
        self.output: Dict[str, Any] = {}
        self.files.write("pid", os.getpid())
        self._keep_output()

    def _keep_output(self) -> None:
        """Output and stacks of each worker in a file of its own: all share the controller's."""
        with open(self.files.path("output"), "wb", buffering=0) as stream:
            for fd in (1, 2):
                os.dup2(stream.fileno(), fd)
        worker.answer_dumps()

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, args: List[str]) -> None:
        ours = worker.xdist_arguments(self.spec)
        kept, _said_by_the_controller = options.neutralise(
            [arg for arg in args if arg not in ours], options.OF_XDIST
        )
        args[:] = ours + kept

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.maxfail = 0
        self.output = config.workeroutput  # type: ignore[attr-defined]

    # -- collection ------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> Optional[bool]:
        return self.collection.ignores(collection_path)

    def pytest_deselected(self, items: List[pytest.Item]) -> None:
        self.collection.deselect(items)

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        file = self.collection.name(collector.path)
        if file is not None and isinstance(collector, pytest.File):
            self.files.write("collecting", file)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, None]:
        result = yield
        self.collection.shield(collector, result)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.collection.report(report)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: List[pytest.Item]) -> Generator[None, Any, None]:
        self.files.write("collecting", "")  # all files are: what fails from here on is no file's doing
        self.collection.remember(items)
        hooks = yield  # all of the project, -k and -m, and loadgroup, which renames items
        if hooks.excinfo:  # an expression that is none, or a hook that fails
            self.files.write(
                "collection", {"failed": "%s: %s" % (hooks.excinfo[0].__name__, hooks.excinfo[1])}
            )
            return
        self.collection.take(items)
        records = [{"kind": "collected", **self.collection.record(file)} for file in self.spec["files"]]
        due: Dict[str, Dict[str, Any]] = {}
        for unit in self.spec["units"]:
            self._choose(unit, due, records)
        items[:] = [item for item in items if item.nodeid in due]
        early = bool(items) and policy.is_masked_later(self.spec) and bool(safety.gpu())
        self.files.write("collection", {"records": records, "items": due, "early_cuda": early})

    def _choose(self, unit: Dict[str, Any], due: Dict[str, Dict[str, Any]], records: List[Any]) -> None:
        """The items of a unit that run here go into `due`, what is to be said of others into `records`."""
        select = contract.indexed(unit["select"])
        only = None if unit["only"] is None else frozenset(unit["only"])
        for item in self.collection.items[unit["file"]]:
            nodeid = self.collection.nodeid(item)
            if not (nodeid in only if only is not None else contract.selects(select, nodeid)):
                continue
            marks = [mark.name for mark in item.iter_markers()]
            stays, said = place(policy.need(marks, self.spec["markers"], self.spec["event"]), self.spec)
            if said is not None:
                records.append({"kind": said[0], "task": unit["task"], "nodeid": nodeid, **said[1]})
            if stays:
                due[item.nodeid] = self._known(item, unit, nodeid)

    def _known(self, item: pytest.Item, unit: Dict[str, Any], nodeid: str) -> Dict[str, Any]:
        """What the controller has to know of an item."""
        path, line = outcome.item_place(item, self.spec)
        limit = outcome.timeout(item, unit["timeout"])
        by_mark = outcome.skipped_by_mark(item)
        return {
            **{"task": unit["task"], "nodeid": nodeid, "timeout": limit},
            **{"file": path, "line": line, "by_mark": by_mark},
        }

    # -- running ---------------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, None]:
        if self.spec["isolation"] == "mask":
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(self.spec["gpus"])
        self.usage.before()
        yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        self.usage.sample()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: "pytest.CallInfo[None]") -> Generator[None, Any, None]:
        result = yield
        if call.when == "teardown" and not result.excinfo:
            # pytest-xdist passes the attributes of a report on.
            result.get_result().gpuci_usage = self.usage.after()

    def pytest_keyboard_interrupt(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        text = outcome.one_line("%s: %s" % (excinfo.typename, excinfo.value))
        self.output["gpuci_interrupted"] = text


class Chosen(Collection):
    """A collection whose items may be renamed: loadgroup adds `@group` to their node ids."""

    def __init__(self, spec: Dict[str, Any]) -> None:
        super().__init__(spec)
        self._ids: Dict[int, str] = {}  # by identity: an item's hash is that of its node id

    def remember(self, items: List[pytest.Item]) -> None:
        """Keep the node ids as they are now."""
        self._ids = {id(item): super(Chosen, self).nodeid(item) for item in items}

    def nodeid(self, item: pytest.Item) -> str:
        """The node id before it was changed."""
        return self._ids.get(id(item)) or super().nodeid(item)
