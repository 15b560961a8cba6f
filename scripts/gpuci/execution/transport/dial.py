"""Making the connection: the login nodes in turn, again after pauses of random length."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuci.errors import GpuciError
from gpuci.execution.transport import credentials, ssh_options
from gpuci.execution.transport.login import Host, Login, facts_of
from gpuci.execution.transport.master import Master, environment
from gpuci.execution.transport.messages import IDENTITY, LATER, REFUSED, Message, explain, plain
from gpuci.execution.transport.ssh_options import CONTROL

LONGEST_PAUSE = 15.0
TOLD_AGAIN_SECONDS = 15.0  # with LONGEST_PAUSE: what stays as it is is told each 15 to 30 s


class LinkLost(GpuciError):
    """No answer came. `sent`: the command may have run, in part too; `retry`: asking again may help."""

    def __init__(
        self, what: str, *, why: str = "", then: str = "", sent: bool = True, retry: bool = True
    ) -> None:
        super().__init__(what, why=why, then=then)
        self.sent = sent
        self.retry = retry


@dataclass
class Counts:
    """Attempts to connect, connections that stood, commands that were sent."""

    attempts: int = 0
    connections: int = 0
    commands: int = 0


def pause(attempt: int, end: float) -> None:
    """Sleep before attempt number `attempt` + 2, by "full jitter": many that failed together come apart.

    Between 0 and 1, 2, 4, … seconds, not beyond `end`. Marc Brooker: Exponential Backoff And Jitter, 2015.
    """
    longest = min(LONGEST_PAUSE, 2.0**attempt)
    time.sleep(max(0.0, min(random.uniform(0.1, longest), end - time.monotonic())))


class Dialer:
    """Connects; remembers which login node answered last, and what was told already."""

    def __init__(self, login: Login, below: Path, say: Callable[[str], None], counts: Counts) -> None:
        self._login = login
        self._below = below
        self._known_hosts = credentials.known_hosts(login)
        self._say = say
        self._counts = counts
        self._env = environment(login, os.environ)
        self._hosts = list(login.targets)
        self._told: dict[Host, tuple[str, float]] = {}  # what was told last, and when

    def connect(self, end: float) -> tuple[Master, Host]:
        """Return a master that stands; `end` is on the monotonic clock. Raises LinkLost."""
        failed: dict[Host, Message] = {}
        for attempt in itertools.count():
            for host in self._hosts:
                if host in failed and not failed[host].retry:
                    continue
                result = self._attempt(host, end)
                if isinstance(result, Master):
                    self._stands(host)
                    return result, host
                failed[host] = result
                self._tell(host, result, end)
            if time.monotonic() >= end or not any(message.retry for message in failed.values()):
                break
            pause(attempt, end)
        raise self._unreachable(failed)

    def _stands(self, host: Host) -> None:
        self._counts.connections += 1
        self._told.clear()
        self._hosts.remove(host)
        self._hosts.insert(0, host)

    def _attempt(self, host: Host, end: float) -> Master | Message:
        self._counts.attempts += 1
        left = max(1.0, end - time.monotonic())
        directory = credentials.private_directory(self._below)
        result: Master | Message | None = None
        try:
            credentials.write(directory / "known_hosts", self._known_hosts)
            with credentials.keys_in(directory, self._login, left) as key:
                text = ssh_options.config_text(self._login, str(directory), key=key)
                credentials.write(directory / "config", text)
                result = self._start(host, directory, left)
        except GpuciError as error:
            result = Message(REFUSED, error.what, error.why, error.then)
        finally:
            if not isinstance(result, Master):
                shutil.rmtree(directory, ignore_errors=True)
        return result

    def _start(self, host: Host, directory: Path, left: float) -> Master | Message:
        way = self._login.way
        control = str(directory / CONTROL)
        command = ssh_options.master_arguments(host, way, str(directory), control)
        seconds = min(left, self._login.connect_timeout * (1.0 + len(way)) + 5)
        end = time.monotonic() + seconds
        master = Master(command, control, directory, self._env)
        try:
            if master.ready(seconds):
                return master
        except BaseException:
            master.end()
            raise
        late = time.monotonic() >= end
        said = master.end()
        return _too_slow(host, seconds) if late else explain(said, host.name, facts_of(self._login, host))

    def _tell(self, host: Host, message: Message, end: float) -> None:
        """Tell of an attempt that failed. What ends the only host's is told by the error itself."""
        now = time.monotonic()
        what, at = self._told.get(host, ("", 0.0))
        repeats = what == message.what and now - at < TOLD_AGAIN_SECONDS
        if repeats or (len(self._hosts) == 1 and not (message.retry and now < end)):
            return
        self._told[host] = message.what, now
        more = f"; trying again, for up to {end - now:.0f} s" if message.retry and now < end else ""
        self._say(plain(f"ssh to {host}: {message.what}{more}"))

    def _unreachable(self, failed: Mapping[Host, Message]) -> LinkLost:
        # What worked once in this run was right: a home or an account service can be away for a while.
        worked = self._counts.connections > 0
        retry = any(message.retry or (worked and message.kind != IDENTITY) for message in failed.values())
        first = next(iter(failed.values()))
        if len({message.what for message in failed.values()}) == 1:
            return LinkLost(first.what, why=first.why, then=first.then, sent=False, retry=retry)
        # The status of a commit and the comment show this line alone: it names a reason too.
        what = f"no login node can be reached: {first.what}"
        others = [f"{host}: {message.what}" for host, message in list(failed.items())[1:]]
        lines = "\n        ".join(filter(None, [first.why, *others]))
        then = "\n        ".join(dict.fromkeys(message.then for message in failed.values() if message.then))
        return LinkLost(what, why=lines, then=then, sent=False, retry=retry)


def _too_slow(host: Host, seconds: float) -> Message:
    return Message(
        LATER,
        f"{host} did not let us in within {seconds:.0f} s",
        "the login node is overloaded, or what it asks about accounts and homes is slow",
        "try a plain `ssh` from this machine; ask the cluster's admins",
    )
