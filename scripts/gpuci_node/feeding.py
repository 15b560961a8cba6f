"""The items of a session, unit by unit as the supervisor hands them out.

Runs in the test process, inside the container (Python >= 3.8, pytest >= 7.0).
"""

import os
from collections import deque
from typing import Any, Callable, Deque, Dict, NamedTuple, Optional, Tuple

import pytest

from gpuci_node import contract, policy
from gpuci_node.collecting import Collection
from gpuci_node.warm import Line


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
        self.memory_kept: Callable[[str], Optional[str]] = lambda file: None
        self.unit_done: Callable[[], None] = lambda: None

    @property
    def now(self) -> Due:
        """The item that runs."""
        assert self._now is not None
        return self._now

    def loop(self, session: pytest.Session) -> None:
        """Run all units; raises what pytest's own loop raises when the session is to stop."""
        teardown_exact = session._setupstate.teardown_exact
        owner = os.getpid()  # a test that is forked (pytest-forked) is torn down in its own process too

        def teardown_before_the_real_next(nextitem: Optional[pytest.Item]) -> None:
            if nextitem is None and self._now is not None and os.getpid() == owner:
                self._ask()
                nextitem = self._due[0].item if self._due else None
            teardown_exact(nextitem)

        session._setupstate.teardown_exact = teardown_before_the_real_next  # type: ignore[method-assign]
        try:
            self._accept(self._spec["unit"])
            self._run(session)
        finally:
            session._setupstate.teardown_exact = teardown_exact  # type: ignore[method-assign]

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
                return

    def _spent(self, done: Due) -> bool:
        """Whether a fresh process should go on, because this one does not get GPU memory back."""
        reason = self.memory_kept(self._collection.file_of(done.item) or "")
        if reason is not None:
            self._line.channel.send("spent", text=reason)
        return reason is not None

    def _ask(self) -> None:
        """Get units until there is an item to run, or there are no more."""
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
