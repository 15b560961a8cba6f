"""From the start of a job to its first test: the container, the node's health, the image's set-up.

Runs on the compute node (Python >= 3.8, standard library only). What comes of each step is decided in
`opening`; here are the pipes.
"""

import os
import time
from typing import Any, Callable, Dict, Optional, Protocol

from gpuci_node import probe
from gpuci_node.supervisor import opening
from gpuci_node.supervisor.checkup import Checkup
from gpuci_node.supervisor.link import Link
from gpuci_node.supervisor.verdicts import Judged

_TAIL = 4096

Json = Dict[str, Any]


class Desk(Protocol):
    """What is asked of the keeper."""

    def register(self, fd: int, read: Callable[[int], None]) -> None:
        """Call `read` when there is something to read."""

    def unregister(self, fd: int) -> None:
        """Call it no longer."""

    def later(self, action: Callable[[], None]) -> None:
        """Call it after the moment that the signal for all of a job needs to reach us too."""

    def command(self, do: str, process_id: str, **more: Any) -> None:
        """Tell the starter."""

    def end(self, judged: Judged) -> None:
        """End the job."""

    def note(self, topic: str, text: str, level: str = "info") -> None:
        """Write a note."""

    def output(self, source: str, text: str) -> None:
        """Write to the log what something printed."""


class Preparation:
    """The steps before the tests; `open` when they are done."""

    def __init__(self, desk: Desk, job: Json, link: Link) -> None:
        self._desk, self._job, self._link = desk, job, link
        self._gpus: Dict[str, int] = {}  # of the job, outside and inside the container
        self._opening = opening.Opening(job, time.monotonic())
        self._said = b""
        self._checkup: Optional[Checkup] = None
        self.uptime = 0.0  # when the node was looked at, in seconds since it was started
        self.checked = False  # the node answered
        if link.said is not None:
            desk.register(link.said, self._read_said)
        if job["health"] is not None:
            self._checkup = Checkup(job, "before")
            desk.register(self._checkup.fd, self._read_health)

    @property
    def open(self) -> bool:
        """Whether tests may begin."""
        return self._opening.open

    @property
    def deadline(self) -> Optional[float]:
        """When the next step is late."""
        return self._opening.deadline

    def look(self, now: float) -> None:
        """Act on what is late, and begin the set-up when it is time."""
        for step in self._opening.late(now):
            if step == "start":
                self._desk.end(opening.not_started(None, self._words))
            elif step == "health":
                self._end_checkup(None)
            else:
                self._refuse(opening.bad_setup({}, self._job["setup"]["seconds"]))
        setup = self._opening.next_setup(now)
        if setup is not None:
            paths = self._job["paths"]
            self._desk.command(
                "setup", "", text=setup["text"], directory=paths["scratch"], tree=paths["root"]
            )

    def _refuse(self, judged: Optional[Judged]) -> None:
        if judged is not None:
            self._desk.end(judged)

    # -- the container -----------------------------------------------------------------------------

    @property
    def _words(self) -> str:
        return self._said.decode("utf-8", "replace")

    def _read_said(self, fd: int) -> None:
        """What the container's runtime says, and the starter itself if it breaks."""
        data = os.read(fd, 1 << 16)
        if data:
            self._said = (self._said + data)[-_TAIL:]
            self._desk.output("container", data.decode("utf-8", "replace"))
            return
        self._desk.unregister(fd)
        if self._opening.waits_for("start"):
            self._desk.later(self._never_started)

    def _never_started(self) -> None:
        if self._opening.waits_for("start"):
            self._desk.end(opening.not_started(self._link.process.wait(), self._words))

    def on_hello(self, event: Json) -> None:
        """The starter is there."""
        self._link.met()
        self._opening.passed("start")
        if event["root"] != probe.root_of_files():  # without a container there is nothing to leave out
            self._count_gpus("inside", event["devices"])

    def _count_gpus(self, where: str, count: int) -> None:
        """Runtimes leave GPUs out without a word."""
        self._gpus[where] = count
        if len(self._gpus) == 2:
            self._refuse(opening.lost_devices(self._gpus["outside"], self._gpus["inside"]))

    def on_setup(self, event: Json) -> None:
        """The set-up ended."""
        self._opening.passed("setup")
        self._refuse(opening.bad_setup(event, 0.0))

    # -- the node's health -------------------------------------------------------------------------

    def _read_health(self, fd: int) -> None:
        assert self._checkup is not None
        if self._checkup.read():
            self._end_checkup(self._checkup.result())

    def _end_checkup(self, found: Optional[Json]) -> None:
        assert self._checkup is not None
        self._desk.unregister(self._checkup.fd)
        self._opening.passed("health")
        if found is None:
            self._checkup.give_up()
            self._desk.note("health", "health: not checked: the look at the node broke or did not end")
            return
        self.checked, self.uptime = True, found["uptime"]
        if found["unchecked"]:
            self._desk.note("health", "health: not checked: " + ", ".join(found["unchecked"]))
        if found["faults"]:
            reason = "; ".join(found["faults"])
            self._desk.end(Judged("infra", reason, reason))
        if found["gpus"] is not None:
            self._count_gpus("outside", found["gpus"])

    def give_up(self) -> None:
        """The job ends: nothing of this goes on."""
        if self._checkup is not None and self._opening.waits_for("health"):
            self._checkup.give_up()
