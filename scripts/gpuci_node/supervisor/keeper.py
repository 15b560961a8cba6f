"""The keeper: one job from its document to its verdict. Journal, deadlines, lifeline.

Runs on the compute node, outside the container where it can (Python >= 3.8, standard library only).
Decisions are the engine's; here are the pipes, the clock and the files.
"""

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any, Dict, List, Optional, Tuple

from gpuci_node import contract, processes
from gpuci_node.supervisor import effects, engine, journal, records, xdist_engine
from gpuci_node.supervisor.child import Lines

_STOP_SECONDS = 0.6  # from SIGINT to SIGKILL for running tests when a job is ended
_GIVE_UP_SECONDS = 3.0  # and until the keeper leaves without their exits
_LONGEST_WAIT = 3600.0  # seconds; epoll_wait(2) counts milliseconds in an int
_NEVER_STARTED: Dict[str, Any] = {"code": None, "signal": None, "tail": "", "left_over": 0, "born": False}


class Keeper:
    """The event loop over the starter, the lifeline (standard input) and signals."""

    def __init__(self, job: Dict[str, Any]) -> None:
        self._job = job
        self._paths = job["paths"]
        xdist = job["settings"]["engine"] == "xdist"
        self._engine = xdist_engine.XdistEngine(job) if xdist else engine.Engine(job)
        self._journal = journal.Journal(os.path.join(self._paths["out"], "journal.jsonl"), job["token"], 1)
        self._started, self._started_at = time.time(), time.monotonic()
        self._ending: Optional[str] = None  # the verdict of a run that is being ended early
        self._reason = ""
        self._kill_at: Optional[float] = None
        self._give_up_at: Optional[float] = None
        self._busy: Dict[str, float] = {}
        self._gpu_seconds = 0.0
        self._signals = _signal_pipe()
        self._lines = Lines(longest=1 << 30)
        self._outbox = bytearray()  # commands that the starter did not take yet
        processes.become_subreaper()  # of what tests leave behind if the starter dies
        self._starter = _start_starter(job["python"])
        self._selector = selectors.DefaultSelector()
        self._register(_fileno(self._starter.stdout), self._read_starter)
        self._register(self._signals, self._read_signals)
        if job["lifeline"]:
            self._register(0, self._read_lifeline)

    def _register(self, fd: int, read: Any) -> None:
        self._selector.register(fd, selectors.EVENT_READ, read)

    def run(self) -> int:
        """Run all units; return the exit code of the verdict."""
        self._write(self._header())
        while True:
            self._apply(self._engine.fill(time.monotonic()))
            if self._done():
                break
            for key, _events in self._selector.select(self._patience()):
                key.data(key.fd)
            self._check_clock()
        self._leave_starter()
        return self._finish()

    def _done(self) -> bool:
        gave_up = self._give_up_at is not None and time.monotonic() > self._give_up_at
        return self._engine.finished or gave_up

    def _patience(self) -> Optional[float]:
        """Seconds until the clock has something to do, or None."""
        due = [self._engine.next_deadline(), self._kill_at, self._give_up_at, self._job_deadline()]
        known = [at - time.monotonic() for at in due if at is not None]
        return max(0.0, min([*known, _LONGEST_WAIT])) if known else None

    def _job_deadline(self) -> Optional[float]:
        seconds = self._job["deadline_seconds"]
        return None if seconds is None or self._ending else self._started_at + float(seconds)

    def _check_clock(self) -> None:
        now = time.monotonic()
        job_deadline = self._job_deadline()
        if job_deadline is not None and now >= job_deadline:
            self._end("timeout", "the job did not end within %g s" % self._job["deadline_seconds"])
        if self._kill_at is not None and now >= self._kill_at:
            for process_id in self._engine.running:
                self._command("kill", process_id)
            self._kill_at = None
        self._apply(self._engine.on_deadline(now))

    # -- what the engine wants ---------------------------------------------------------------------

    def _apply(self, wanted: effects.Effects) -> None:
        for effect in wanted:
            if isinstance(effect, effects.Write):
                self._write(effect.record)
            elif isinstance(effect, effects.Start):
                self._start(effect)
            elif isinstance(effect, effects.Tell):
                self._command("tell", effect.id, message=effect.message)
            elif isinstance(effect, effects.Dump):
                self._command("dump", effect.id)
            elif isinstance(effect, effects.Kill):
                self._command("kill", effect.id)
            elif isinstance(effect, effects.Stop):
                self._end(effect.verdict, effect.reason)

    def _write(self, record: Dict[str, Any]) -> None:
        self._journal.append({"t": round(time.time(), 3), **record})

    def _start(self, start: effects.Start) -> None:
        self._busy[start.id] = time.monotonic()
        spec = {**start.spec, "scratch": self._scratch(start.id)}
        self._command("start", start.id, spec=spec, env=start.env, parent=start.parent)

    def _scratch(self, process_id: str) -> str:
        return os.path.join(self._paths["scratch"], process_id)

    def _command(self, do: str, process_id: str, **more: Any) -> None:
        self._outbox += journal.encode({"do": do, "id": process_id, **more})
        self._send(_fileno(self._starter.stdin))

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
            self._lose_starter()
        for line in self._lines.feed(data):
            self._on_event(json.loads(line))  # the starter's own: nothing in it is nested

    def _lose_starter(self) -> None:
        self._end("infra", "the process that starts the tests died")
        self._give_up_at = time.monotonic()

    def _on_event(self, event: Dict[str, Any]) -> None:
        now = time.monotonic()
        if event["event"] == "record":
            self._apply(self._engine.on_record(event["id"], records.load(event["line"]), now))
            return
        if event["event"] == "refused":
            self._end("infra", event["reason"])
            if event["started"]:
                return
        if event["event"] in ("refused", "unborn"):
            event = {"id": event["id"], **_NEVER_STARTED}
        end = effects.Exit(*(event[name] for name in effects.Exit._fields))
        self._gpu_seconds += (now - self._busy.pop(event["id"])) * self._engine.width(event["id"])
        self._apply(self._engine.on_exit(event["id"], end, now))
        shutil.rmtree(self._scratch(event["id"]), ignore_errors=True)

    def _read_signals(self, fd: int) -> None:
        os.read(fd, 64)
        self._end("cancelled", "ended by a signal")

    def _read_lifeline(self, fd: int) -> None:
        if not os.read(fd, 64):
            self._selector.unregister(fd)
            self._end("cancelled", "whoever started the job ended it, or is gone")

    def _end(self, verdict: str, reason: str) -> None:
        """Begin to end the job early; a second call changes nothing."""
        if self._ending:
            return
        self._ending, self._reason = verdict, reason
        self._engine.stop()
        self._kill_at = time.monotonic() + _STOP_SECONDS
        self._give_up_at = self._kill_at + _GIVE_UP_SECONDS
        for process_id in self._engine.running:
            self._command("stop", process_id)

    # -- the end -------------------------------------------------------------------------------------

    def _leave_starter(self) -> None:
        with contextlib.suppress(OSError):
            os.close(_fileno(self._starter.stdin))
        try:
            self._starter.wait(timeout=_GIVE_UP_SECONDS)
        except subprocess.TimeoutExpired:
            self._starter.kill()
        processes.kill_all(lambda: processes.descendants(os.getpid()))

    def _finish(self) -> int:
        shutil.rmtree(self._paths["scratch"], ignore_errors=True)
        self._journal.close()
        verdict = self._verdict()
        problem = journal.write_verdict(os.path.join(self._paths["out"], "verdict.json"), verdict)
        if problem:
            reason = self._journal.error or problem  # the first thing that a full disk took
            verdict.update(verdict="infra", exit_code=contract.EXIT_CODES["infra"], reason=reason)
        self._journal.frame({"kind": "verdict", **verdict})
        return int(verdict["exit_code"])

    def _verdict(self) -> Dict[str, Any]:
        name, reason = self._judge()
        ended = time.time()
        return {
            "schema": contract.SCHEMAS["verdict"],
            "verdict": name,
            "exit_code": contract.EXIT_CODES[name],
            "reason": reason,
            "counts": contract.count_outcomes(self._engine.outcomes.values()),
            "node": self._job["node"]["name"],
            "shard": self._job["shard"],
            "try": self._job["try"],
            "started": round(self._started, 3),
            "ended": round(ended, 3),
            "journal": {"lines": self._journal.lines, "sha256": self._journal.digest},
            "gpu_seconds": {
                "used": round(self._gpu_seconds, 3),
                "total": round((ended - self._started) * len(self._job["node"]["gpus"]), 3),
            },
        }

    def _judge(self) -> Tuple[str, str]:
        if self._journal.error:
            return "infra", self._journal.error
        if self._ending:
            return self._ending, self._reason
        red = sum(outcome in contract.RED_OUTCOMES for outcome in self._engine.outcomes.values())
        return ("failed", "red tests: %d" % red) if red else ("passed", "")

    def _header(self) -> Dict[str, Any]:
        job, node = self._job, self._job["node"]
        return {
            "kind": "job",
            "schema": contract.SCHEMAS["journal"],
            "run": job["run"],
            "shard": job["shard"],
            "try": job["try"],
            "node": node["name"],
            "gpus": node["gpus"],
            "slots": len(node["gpus"]) * node["workers_per_gpu"] or node["cpu_workers"],
        }


def _fileno(stream: Any) -> int:
    return int(stream.fileno())


def _signal_pipe() -> int:
    """A descriptor that becomes readable when the job is to end."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _wake)
    return reader


def _wake(_number: int, _frame: Optional[FrameType]) -> None:
    """The descriptor of `set_wakeup_fd` does the work."""


def _start_starter(python: List[str]) -> "subprocess.Popen[bytes]":
    command = [*python, sys.argv[0], "starter"]
    starter = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    )
    os.set_blocking(_fileno(starter.stdin), False)
    return starter


def main(path: str) -> int:
    """Run the job document at `path`; the exit code is the verdict's."""
    with open(path, encoding="utf-8") as stream:
        job = json.load(stream)
    os.unlink(path)  # it holds the nonce of the frames, which tests never get
    return Keeper(job).run()
