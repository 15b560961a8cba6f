"""Run the shards of a plan on this machine: a keeper per shard, their logs followed as they grow."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

from gpuci.config.model import Config
from gpuci.execution import jobs, node_package
from gpuci.execution.local.devices import Devices
from gpuci.execution.log import LogReader
from gpuci.execution.outputs import read_outputs
from gpuci.model import Plan, ShardRun
from gpuci.results.ownership import CPU_POOL, shard_folder

_TICK_SECONDS = 0.2


class Listener(Protocol):
    """Who watches a run."""

    def feed(self, shard: int, record: dict[str, Any]) -> None:
        """A record of a shard, as it was written."""

    def tick(self, now: float) -> None:
        """Time went by (epoch seconds)."""


@dataclass(frozen=True)
class Options:
    """How to run: `python` runs the tests; `out` and `scratch` (temporary files) hold a folder a shard.

    A shard gets its profile's number of `devices` at most; with `whole_sets` a whole set of them.
    """

    root: Path
    out: Path
    run: str
    python: str
    devices: Devices
    cpu_workers: int
    scratch: Path
    whole_sets: bool = False


@dataclass
class Running:
    """A living keeper and what it said so far."""

    index: int
    out: Path
    device_set: int
    process: subprocess.Popen[bytes]
    started: float
    log: LogReader


class LocalRun:
    """Runs the cpu pool and as many shards at once as there are sets of devices."""

    def __init__(self, plan: Plan, config: Config, options: Options, listener: Listener) -> None:
        self._plan = plan
        self._config = config
        self._options = options
        self._listener = listener
        self._package = options.out / "gpuci_node.pyz"
        self._waiting = [shard.index for shard in plan.shards]
        self._free = list(range(len(options.devices.sets)))
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, Running] = {}
        self._done: list[ShardRun] = []
        self._interrupts = 0

    def run(self) -> list[ShardRun]:
        """Run everything; returns also after an interrupt, with what was finished by then."""
        node_package.build(self._package)
        with self._interruptible():
            if self._plan.cpu_units:
                self._start(CPU_POOL, device_set=-1)
            while self._running or (self._waiting and not self._interrupts):
                self._start_waiting()
                for key, _events in self._selector.select(_TICK_SECONDS):
                    self._read(key.data)
                self._listener.tick(time.time())
        never = [
            ShardRun(index, (), _cancelled("the run was stopped before it began")) for index in self._waiting
        ]
        return sorted([*self._done, *never], key=lambda run: run.index)

    def _start_waiting(self) -> None:
        while self._waiting and self._free and not self._interrupts:
            self._start(self._waiting.pop(0), self._free.pop(0))

    def _start(self, index: int, device_set: int) -> None:
        try:
            running = self._launch(index, device_set)
        except OSError as error:  # a full disk, no process left
            problem = f"it can't be started: {error}"
            self._done.append(ShardRun(index, (), None, problem=problem))
            self._give_back(device_set)
            return
        self._running[index] = running
        self._selector.register(_stdout(running), selectors.EVENT_READ, running)
        if self._interrupts:  # a signal came before we knew of this keeper
            _let_end(running)

    def _give_back(self, device_set: int) -> None:
        if device_set >= 0:
            self._free.append(device_set)

    def _launch(self, index: int, device_set: int) -> Running:
        out = self._options.out / shard_folder(index)
        out.mkdir()
        nonce = secrets.token_hex(16)
        document = self._document(index, device_set, out, nonce)
        path = out / "job.json"
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as stream:
            json.dump(document, stream)
        command = [sys.executable, "-I", str(self._package), "keeper", str(path)]
        # A session of its own: the terminal's Ctrl-C reaches us only, and we end the keepers in order.
        with open(out / "keeper.log", "wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._options.root,
                start_new_session=True,
            )
        return Running(index, out, device_set, process, time.monotonic(), LogReader(nonce))

    def _document(self, index: int, device_set: int, out: Path, nonce: str) -> dict[str, Any]:
        options = self._options
        paths = jobs.Paths(str(options.root), str(out), str(options.scratch / out.name))
        return jobs.job_document(
            self._plan,
            self._config,
            index,
            run=options.run,
            token=nonce,
            node=self._node(index, device_set),
            paths=paths,
            python=[options.python],
        )

    def _node(self, index: int, device_set: int) -> jobs.NodeFacts:
        # Pretended devices of two shards are different devices: told apart by the node's name.
        name = f"{os.uname().nodename}-{index}-{self._options.run.rpartition('-')[2]}"
        if device_set < 0:
            return jobs.NodeFacts(name, (), cpu_workers=self._options.cpu_workers)
        gpus = self._options.devices.sets[device_set]
        if not self._options.whole_sets:
            gpus = gpus[: self._config.profile(self._plan.shard(index).profile).gpus]
        return jobs.NodeFacts(name, gpus, workers_per_gpu=self._config.node.workers_per_gpu)

    # -- following -------------------------------------------------------------------------------

    def _read(self, running: Running) -> None:
        data = os.read(_stdout(running).fileno(), 1 << 16)
        if not data:
            self._finish(running)
            return
        for record in running.log.feed(data):
            self._listener.feed(running.index, record)

    def _finish(self, running: Running) -> None:
        self._selector.unregister(_stdout(running))
        with running.process:  # closes its pipes
            running.process.wait()
        del self._running[running.index]
        self._give_back(running.device_set)
        self._done.append(_shard_run(running, self._interrupts))

    # -- ending ----------------------------------------------------------------------------------

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        # What is ignored stays so: `nohup` sees to that a closed terminal ends nothing.
        heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._interrupt) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """First: let the keepers end their tests and write their verdicts. Second: kill the keepers."""
        self._interrupts += 1
        for running in self._running.values():
            if self._interrupts == 1:
                _let_end(running)
            else:
                running.process.kill()


def _stdout(running: Running) -> IO[bytes]:
    assert running.process.stdout is not None
    return running.process.stdout


def _let_end(running: Running) -> None:
    """Cut the keeper's lifeline. A signal would kill one that is just starting, without a verdict."""
    assert running.process.stdin is not None
    running.process.stdin.close()


def _shard_run(running: Running, interrupts: int) -> ShardRun:
    """A keeper that we killed had no time for a verdict: it was cancelled, and did not break.

    One that we let end knows only that nobody holds its lifeline any more.
    """
    killed = interrupts > 1
    left = read_outputs(running.out, running.log)
    verdict, problem = left.verdict, left.problem
    if verdict is None:
        verdict = _cancelled("killed by a second signal") if killed else None
        problem = "" if killed else _no_verdict(running.out)
    elif interrupts and verdict["verdict"] == "cancelled":
        verdict = {**verdict, "reason": "the run was cancelled"}
    wall = time.monotonic() - running.started
    return ShardRun(running.index, left.records, verdict, wall_seconds=wall, problem=problem)


def _no_verdict(out: Path) -> str:
    return f"the keeper left without a verdict{_last_words(out / 'keeper.log')}"


def _cancelled(reason: str) -> dict[str, Any]:
    return {"verdict": "cancelled", "reason": reason}


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""
