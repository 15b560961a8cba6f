"""The items of a session, unit by unit as the supervisor hands them out.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import contextlib
import traceback
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, NamedTuple, Optional, Tuple

import pytest
from _pytest import runner

from gpuci_node import contract
from gpuci_node.worker import outcome, policy
from gpuci_node.worker.collecting import Collection
from gpuci_node.worker.originals import ORIGINALS
from gpuci_node.worker.warm import Line

_TRACEBACK = 6000  # characters of it that are kept


class Due(NamedTuple):
    """An item that is to run, and the task that it belongs to."""

    task: int
    item: pytest.Item
    timeout: float


class Feeder:
    """Runs a unit's items; asks for the next unit when the teardown of the last item begins.

    By then it must be known which test comes next (`nextitem`), so that fixtures that it shares are kept and
    all others end. It is asked for no earlier, so that a long last test keeps no unit from an idle worker.
    """

    def __init__(self, spec: Dict[str, Any], line: Line, collection: Collection) -> None:
        self._spec = spec
        self._line = line
        self._collection = collection
        self._due: Deque[Due] = deque()
        self._now: Optional[Due] = None
        self._more = bool(spec["more"])
        self._owner = ORIGINALS.getpid()
        self.memory_kept: Callable[[str], Optional[str]] = lambda file: None
        self.unit_done: Callable[[], None] = lambda: None

    @property
    def now(self) -> Due:
        """The item that runs."""
        assert self._now is not None
        return self._now

    def loop(self, session: pytest.Session) -> None:
        """Run all units; raises what pytest's own loop raises when the session is to stop."""
        with self._knowing_the_next(session):
            self._accept(self._spec["unit"])
            self._run(session)

    @contextlib.contextmanager
    def _knowing_the_next(self, session: pytest.Session) -> Iterator[None]:
        """Have pytest's teardown, and hooks of it, told of the real next item.

        The names are pytest's own as they are in 7.0 to 9.2; plugins that run tests in their own way use one
        or both of them.
        """
        call_and_report, teardown_exact = runner.call_and_report, session._setupstate.teardown_exact

        def call(item: pytest.Item, when: Any, log: bool = True, **more: Any) -> Any:
            if when == "teardown" and item.session is session:  # not one that a test runs
                more["nextitem"] = self._real_next(more.get("nextitem"))
            return call_and_report(item, when, log, **more)

        runner.call_and_report = call
        session._setupstate.teardown_exact = (  # type: ignore[method-assign]
            lambda nextitem: teardown_exact(self._real_next(nextitem))
        )
        try:
            yield
        finally:
            runner.call_and_report = call_and_report
            session._setupstate.teardown_exact = teardown_exact  # type: ignore[method-assign]

    def _real_next(self, nextitem: Optional[pytest.Item]) -> Optional[pytest.Item]:
        if nextitem is None and self._now is not None:
            self._ask()
            return self._due[0].item if self._due else None
        return nextitem

    def _run(self, session: pytest.Session) -> None:
        if not self._due:
            self._ask()
        while self._due:
            self._now = self._due.popleft()
            following = self._due[0].item if self._due else None
            item = self._now.item
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            if not self._due:
                self._ask()  # a test without a teardown of its own (pytest-forked) did not come to it
            before, self._now = self._now, None
            if self._due and self._due[0].task != before.task and self._spent(before):
                self._end_what_was_kept(session, before)
                break

    def _spent(self, done: Due) -> bool:
        """Whether a fresh process should go on, because this one does not get GPU memory back."""
        reason = self.memory_kept(self._collection.file_of(done.item) or "")
        if reason is not None:
            self._line.channel.send("spent", text=reason)
        return reason is not None

    def _end_what_was_kept(self, session: pytest.Session, last: Due) -> None:
        """End fixtures that were kept for the next unit; what fails there is an error of the last test."""
        try:
            session._setupstate.teardown_exact(None)
        except BaseException as error:
            message = outcome.one_line("at teardown: %s: %s" % (type(error).__name__, error))
            fields = {"message": message, "output": traceback.format_exc()[-_TRACEBACK:]}
            nodeid = self._collection.nodeid(last.item)
            self._line.channel.send("end", task=last.task, nodeid=nodeid, outcome="error", **fields)

    def _ask(self) -> None:
        """Get units until there is an item to run, or there are no more.

        A process that a test forks and lets escape asks for nothing: there is one line for both.
        """
        if ORIGINALS.getpid() != self._owner:
            self._more = False
            return
        self.unit_done()
        while self._more and not self._due:
            self._line.channel.send("next")
            command = self._line.control.receive()
            if command is None:
                self._more = False
            else:
                self._accept(command.content)

    def _accept(self, unit: Dict[str, Any]) -> None:
        """Take the items of a unit that stay here; say where the others go.

        A file that could not be collected beside others as a whole runs in a process of its own.
        """
        if self._spec["more"] and self._collection.failed(unit["file"]):
            return
        select = contract.indexed(unit["select"])
        only = None if unit["only"] is None else frozenset(unit["only"])
        chosen = []
        for item in self._collection.items.get(unit["file"], ()):
            nodeid = self._collection.nodeid(item)
            due = nodeid in only if only is not None else contract.selects(select, nodeid)
            if due and self._stays(unit["task"], nodeid, item):
                chosen.append(Due(unit["task"], item, unit["timeout"]))
        self._due += chosen[: unit["limit"]]

    def _stays(self, task: int, nodeid: str, item: pytest.Item) -> bool:
        marks = [mark.name for mark in item.iter_markers()]
        need = policy.need(marks, self._spec["markers"], self._spec["event"])
        stays, record = place(need, self._spec)
        if record is not None:
            kind, fields = record
            self._line.channel.send(kind, task=task, nodeid=nodeid, **fields)
        return stays


def place(need: policy.Need, spec: Dict[str, Any]) -> Tuple[bool, Optional[Tuple[str, Dict[str, Any]]]]:
    """Whether an item with this need runs in this process, and what is to be said of it."""
    if need.skip:
        return False, ("end", {"outcome": "skipped", "message": need.skip})
    here, all_gpus = len(spec["gpus"]), len(spec["job_gpus"])
    asked = {"gpus": need.gpus, "because": need.because}
    wider = need.gpus is not None and here < min(need.gpus, all_gpus)
    if all_gpus and (wider or (need.alone and not spec["alone"])):
        return False, ("deferred", {**asked, "alone": need.alone})
    if need.gpus is not None and need.gpus > all_gpus:
        return True, ("beyond_node", asked)
    return True, None
