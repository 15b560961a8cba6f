"""The keeper: one job from its document to its verdict. Journal, deadlines, lifeline, lease.

Runs on the compute node, outside the container where it can (Python >= 3.8, standard library only).
Decisions are the engine's; here are the pipes, the clock and the files.
"""

import json
import os
import selectors
import shutil
import signal
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from gpuci_node import contract, processes
from gpuci_node.supervisor import (
    allocation,
    effects,
    engine,
    journal,
    leaving,
    records,
    verdicts,
    xdist_engine,
)
from gpuci_node.supervisor.child import Lines
from gpuci_node.supervisor.link import Link
from gpuci_node.supervisor.preparation import Preparation
from gpuci_node.supervisor.verdicts import Judged
from gpuci_node.supervisor.vigil import Vigil

_STOP_SECONDS = 0.6  # from SIGINT to SIGKILL for running tests when a job is ended
_GIVE_UP_SECONDS = 1.5  # and until the keeper leaves without their exits: Slurm may kill it after 5 s
_LONGEST_WAIT = 3600.0  # seconds; epoll_wait(2) counts milliseconds in an int
# `scancel` signals all processes of a job at once: what dies of that is not to be taken for its own fault.
_SAME_MOMENT = 0.4
_NEVER_STARTED: Dict[str, Any] = {"code": None, "signal": None, "tail": "", "left_over": 0, "born": False}

_CANCELLED = Judged("cancelled", "ended by a signal")
_TIME_LIMIT = "its tests were ended (slurm.time-limit, else from the plan)"
_NEARLY_OVER = Judged("timeout", "the job's time limit is near: " + _TIME_LIMIT)
_NOBODY = Judged("cancelled", "whoever started the job ended it, or is gone")
_STARTER_DIED = Judged("infra", "the process that starts the tests died")


class Keeper:
    """The event loop over the starter, the lifeline (standard input), signals and the clock."""

    def __init__(self, job: Dict[str, Any]) -> None:
        self._job = job
        self._paths = job["paths"]
        xdist = job["settings"]["engine"] == "xdist"
        self._engine = xdist_engine.XdistEngine(job) if xdist else engine.Engine(job)
        self._journal = journal.Journal(os.path.join(self._paths["out"], "journal.jsonl"), job["token"], 1)
        self._started, self._started_at = time.time(), time.monotonic()
        self._ending: Optional[Judged] = None  # of a job that is being ended early
        self._kill_at: Optional[float] = None
        self._give_up_at: Optional[float] = None
        self._later: List[Tuple[float, Callable[[], None]]] = []
        self._busy: Dict[str, float] = {}
        self._gpu_seconds = 0.0
        self._dropped = 0  # bytes of output that the log does not have
        self._signals = leaving.signal_pipe()
        self._lines = Lines(longest=1 << 30)
        self._outbox = bytearray()  # commands that the starter did not take yet
        processes.become_subreaper()  # of what tests leave behind if the starter dies
        self._selector = selectors.DefaultSelector()
        self._link = Link(job["python"], job["link"])
        self.register(self._link.events, self._read_starter)
        self.register(self._signals, self._read_signals)
        if job["lifeline"]:
            self.register(0, self._read_lifeline)
        self._vigil = Vigil(job, self._started_at)

    def run(self) -> int:
        """Run all units; return the exit code of the verdict."""
        self._write(verdicts.header(self._job))
        self._begin()
        while True:
            if self._preparation.open or self._ending:
                self._apply(self._engine.fill(time.monotonic()))
            if self._done():
                break
            for key, _events in self._selector.select(self._patience()):
                key.data(key.fd)
            self._check_clock()
        return self._leave()

    def _begin(self) -> None:
        self._preparation = Preparation(self, self._job, self._link)
        if self._job["output_bytes"]:
            self.command("output", "", bytes=self._job["output_bytes"])
        if allocation.inside(os.environ):
            self.note("keeper_inside", "the node has no Python 3.8: the keeper runs in the container")
        fault = allocation.fault(self._job)
        if fault:
            self.end(Judged("infra", fault, fault))

    def _done(self) -> bool:
        gave_up = self._give_up_at is not None and time.monotonic() > self._give_up_at
        prepared = self._preparation.open or self._ending is not None
        return (prepared and self._engine.finished) or gave_up

    def _patience(self) -> Optional[float]:
        """Seconds until the clock has something to do, or None."""
        due = [
            self._engine.next_deadline(),
            self._kill_at,
            self._give_up_at,
            self._job_deadline(),
            self._journal.next_sync,
            self._next_look(),
            *(at for at, _action in self._later),
        ]
        known = [at - time.monotonic() for at in due if at is not None]
        return max(0.0, min([*known, _LONGEST_WAIT])) if known else None

    def _next_look(self) -> Optional[float]:
        if self._ending:
            return None
        due = [self._vigil.next_look(self._journal.written), self._preparation.deadline]
        return min([at for at in due if at is not None], default=None)

    def _job_deadline(self) -> Optional[float]:
        seconds = self._job["deadline_seconds"]
        return None if seconds is None or self._ending else self._started_at + float(seconds)

    def _check_clock(self) -> None:
        now = time.monotonic()
        job_deadline = self._job_deadline()
        if job_deadline is not None and now >= job_deadline:
            text = "the job did not end within %g s: " % self._job["deadline_seconds"]
            self.end(Judged("timeout", text + _TIME_LIMIT))
        if self._kill_at is not None and now >= self._kill_at:
            for process_id in self._engine.running:
                self.command("kill", process_id)
            self._kill_at = None
        self._do_what_was_put_off(now)
        if not self._ending:
            self._preparation.look(now)
            self._apply(self._vigil.look(now, self._journal.written, self._engine.running))
        self._apply(self._engine.on_deadline(now))
        if self._journal.next_sync is not None and now >= self._journal.next_sync:
            self._journal.sync()

    def later(self, action: Callable[[], None]) -> None:
        """Do this after the moment that a signal to all processes of the job needs to reach us too."""
        self._later.append((time.monotonic() + (0.0 if self._ending else _SAME_MOMENT), action))

    def _do_what_was_put_off(self, now: float) -> None:
        due = [action for at, action in self._later if now >= at or self._ending]
        self._later = [(at, action) for at, action in self._later if action not in due]
        for action in due:
            action()

    # -- what the engine and the preparation want ----------------------------------------------------

    def register(self, fd: int, read: Callable[[int], None]) -> None:
        """Call `read` when there is something to read."""
        self._selector.register(fd, selectors.EVENT_READ, read)

    def unregister(self, fd: int) -> None:
        """Call it no longer."""
        self._selector.unregister(fd)

    def _apply(self, wanted: effects.Effects) -> None:
        for effect in wanted:
            if isinstance(effect, effects.Write):
                self._write(effect.record)
            elif isinstance(effect, effects.Start):
                self._start(effect)
            elif isinstance(effect, effects.Tell):
                self.command("tell", effect.id, message=effect.message)
            elif isinstance(effect, effects.Dump):
                self.command("dump", effect.id)
            elif isinstance(effect, effects.Kill):
                self.command("kill", effect.id)
            elif isinstance(effect, effects.Stop):
                self.end(Judged(effect.verdict, effect.reason))

    def _write(self, record: Dict[str, Any]) -> None:
        self._journal.append({"t": round(time.time(), 3), **record})

    def note(self, topic: str, text: str, level: str = "info") -> None:
        """Write a note."""
        self._write({"kind": "note", "level": level, "topic": topic, "text": text})

    def output(self, source: str, text: str) -> None:
        """Write to the log, not to the journal, what something printed."""
        self._journal.frame({"kind": "output", "t": round(time.time(), 3), "slot": source, "text": text})

    def _start(self, start: effects.Start) -> None:
        self._busy[start.id] = time.monotonic()
        spec = {**start.spec, "scratch": self._scratch(start.id)}
        self.command("start", start.id, spec=spec, env=start.env, parent=start.parent)

    def _scratch(self, process_id: str) -> str:
        return os.path.join(self._paths["scratch"], process_id)

    def command(self, do: str, process_id: str, **more: Any) -> None:
        """Tell the starter."""
        self._outbox += journal.encode({"do": do, "id": process_id, **more})
        self._send(self._link.commands)

    def _send(self, fd: int) -> None:
        """Write what the starter takes now. To wait for it could be for ever: it may wait for us to read."""
        try:
            while self._outbox:
                del self._outbox[: os.write(fd, self._outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self._outbox.clear()  # it is gone: the end of what it said comes next
        watched = fd in self._selector.get_map()
        if self._outbox and not watched:
            self._selector.register(fd, selectors.EVENT_WRITE, self._send)
        elif watched and not self._outbox:
            self._selector.unregister(fd)

    # -- events --------------------------------------------------------------------------------------

    def _read_starter(self, fd: int) -> None:
        data = os.read(fd, 1 << 16)
        if not data:
            self._selector.unregister(fd)
            self.later(self._lose_starter)
        for line in self._lines.feed(data):
            self._on_event(json.loads(line))  # the starter's own: nothing in it is nested

    def _lose_starter(self) -> None:
        self.end(_STARTER_DIED)
        self._give_up_at = time.monotonic()

    def _on_event(self, event: Dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "record":
            record = records.load(event["line"])
            self._apply(self._engine.on_record(event["id"], record, time.monotonic()))
        elif kind == "output":
            self.output(event["id"].partition(".")[0], event["text"])
        elif kind == "hello":
            self._preparation.on_hello(event)
        elif kind == "setup":
            self._preparation.on_setup(event)
        elif kind == "refused":
            self.end(Judged("infra", event["reason"], event["reason"]))
            if not event["started"]:
                self._on_exit({"id": event["id"], **_NEVER_STARTED})
        elif kind == "unborn":
            self._on_exit({"id": event["id"], **_NEVER_STARTED})
        elif event["signal"] == "SIGTERM":
            self.later(lambda: self._on_exit(event))
        else:
            self._on_exit(event)

    def _on_exit(self, event: Dict[str, Any]) -> None:
        now = time.monotonic()
        self._dropped += event.get("dropped", 0)
        end = effects.Exit(*(event[name] for name in effects.Exit._fields))
        self._gpu_seconds += (now - self._busy.pop(event["id"])) * self._engine.width(event["id"])
        self._apply(self._engine.on_exit(event["id"], end, now))

    def _read_signals(self, fd: int) -> None:
        numbers = os.read(fd, 64)
        self.end(_NEARLY_OVER if set(numbers) == {signal.SIGUSR1} else _CANCELLED)

    def _read_lifeline(self, fd: int) -> None:
        if os.read(fd, 64):  # where signals don't get through: see batch.sh
            self.end(_NEARLY_OVER)
        else:
            self._selector.unregister(fd)
            self.end(_NOBODY)

    def end(self, judged: Judged) -> None:
        """Begin to end the job early; a second call changes nothing."""
        if self._ending:
            return
        self._ending = judged
        self._engine.stop()
        self._preparation.give_up()
        self._kill_at = time.monotonic() + _STOP_SECONDS
        self._give_up_at = self._kill_at + _GIVE_UP_SECONDS
        for process_id in self._engine.running:
            self.command("stop", process_id)

    # -- the end -------------------------------------------------------------------------------------

    def _leave(self) -> int:
        early, contained = self._ending is not None, allocation.contained(os.environ)
        leaving.end_processes(self._link, early, contained)
        if not self._ending and self._preparation.checked:
            for topic, text in leaving.left_on_gpus(self._job, self._preparation.uptime, self._signals):
                self.note(topic, text, "warning")
        if self._dropped:
            self.note("output", "output beyond the limit: %d bytes are not in the log" % self._dropped)
        shutil.rmtree(self._paths["scratch"], ignore_errors=True)
        self._journal.close()
        verdict = self._verdict()
        problem = journal.write_verdict(os.path.join(self._paths["out"], "verdict.json"), verdict)
        if problem:
            reason = self._journal.error or problem  # the first thing that a full disk took
            verdict.update(verdict="infra", exit_code=contract.EXIT_CODES["infra"], reason=reason)
        self._journal.frame({"kind": "verdict", **verdict})
        self._journal.sync_log()
        return int(verdict["exit_code"])

    def _verdict(self) -> Dict[str, Any]:
        outcomes = self._engine.outcomes.values()
        judged = self._ending or verdicts.of_tests(outcomes)
        if self._journal.error:
            judged = Judged("infra", self._journal.error)
        sums = verdicts.Sums(
            self._started, time.time(), self._gpu_seconds, self._journal.lines, self._journal.digest
        )
        return verdicts.document(self._job, judged, outcomes, sums)


def main(path: str) -> int:
    """Run the job document at `path`; the exit code is the verdict's."""
    with open(path, encoding="utf-8") as stream:
        job = json.load(stream)
    os.unlink(path)  # it holds the nonce of the frames, which tests never get
    return Keeper(job).run()
