"""One connection to the login node: texts go in, answers come out, and what breaks is connected again."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from gpuci.errors import ConfigError
from gpuci.execution.transport.command import Answer, answer_of, remote_command, started
from gpuci.execution.transport.dial import Counts, Dialer, LinkLost, pause
from gpuci.execution.transport.login import Login
from gpuci.execution.transport.master import Heard, Input, Master
from gpuci.execution.transport.messages import explain, quoted
from gpuci.execution.transport.ssh_options import IN_BETWEEN, NO_MASTER

__all__ = ["Answer", "Connection", "Counts", "LinkLost"]

SESSIONS = 8  # at a time; sshd's MaxSessions is 10
PROBE_SECONDS = 10.0


class Connection:
    """A context manager; threads may share it. `say` gets one harmless line for each thing worth telling."""

    def __init__(self, login: Login, directory: Path, say: Callable[[str], None]) -> None:
        self.login = login
        self.counts = Counts()
        self.host = ""  # the login node in use, or the last one
        self._say = say
        self._below = directory
        self._dialer: Dialer | None = None
        self._master: Master | None = None
        self._suspect = False
        self._lock = threading.Lock()
        self._sessions = threading.BoundedSemaphore(SESSIONS)

    def __enter__(self) -> Connection:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Connect, within `login.patience` seconds.

        Raises ConfigError for what only a person can put right (key, known_hosts), LinkLost if no login
        node answers.
        """
        try:
            self._current(time.monotonic() + self.login.patience)
        except LinkLost as error:
            self.close()
            if error.retry:
                raise
            raise ConfigError(error.what, why=error.why, then=error.then) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection; nothing of it is left on this machine."""
        with self._lock:
            self._drop()

    def run(self, text: str, *args: str, stdin: bytes | IO[bytes] = b"", timeout: float = 60.0) -> Answer:
        """Run a constant `sh` text with $1, $2, … = `args` on the login node; the seconds include connecting.

        A `stdin` that is a file is sent from where it stands. On the remote side a broken link looks like
        its end, so a size or checksum has to be told. Any exit code is an answer. Raises LinkLost; the
        next call connects again where that is needed.
        """
        end = time.monotonic() + timeout
        nonce = secrets.token_hex(8)
        command = remote_command(text, args, nonce)
        source = Input(stdin)
        with self._session(end):
            for attempt in itertools.count():
                master = self._current(end)
                left = end - time.monotonic()
                if left <= 0:
                    raise _late("connecting took all of its time")
                heard = master.session(command, source, left)
                answer = answer_of(nonce, heard.out, heard.err)
                if answer is None and _not_sent(heard, nonce):
                    self._pause(master, heard, attempt, end)
                    continue
                self.counts.commands += 1
                if answer is None:
                    raise self._lost(master, heard, nonce, timeout)
                return answer
        raise AssertionError("the loop ends by an answer or an error")

    @contextlib.contextmanager
    def _session(self, end: float) -> Iterator[None]:
        if not self._sessions.acquire(timeout=max(0.0, end - time.monotonic())):
            raise _late("all sessions of the connection are in use")
        try:
            yield
        finally:
            self._sessions.release()

    def _current(self, end: float) -> Master:
        """The master, connected again if there is none or it does not answer."""
        with self._lock:
            if self._suspect and self._master is not None and not _answers(self._master, end):
                self._drop()
            self._suspect = False
            if self._master is None:
                self._connect(end)
            assert self._master is not None
            return self._master

    def _connect(self, end: float) -> None:
        if self._dialer is None:
            self._dialer = Dialer(self.login, self._below, self._say, self.counts)
        again = self.counts.connections > 0
        self._master, host = self._dialer.connect(end)
        self.host = host.name
        if again:
            self._say(f"connected to {host} again")

    def _drop(self) -> None:
        if self._master is not None:
            self._master.end()
            self._master = None

    def _pause(self, master: Master, heard: Heard, attempt: int, end: float) -> None:
        """Before the same command is tried again: let go of a master that died, wait for one that is full."""
        if not master.alive():
            self._give_up(master)
        elif time.monotonic() < end:
            pause(attempt, end)
        else:
            message = explain(heard.err.decode("utf-8", "replace"), self.host)
            raise LinkLost(message.what, why=message.why, then=message.then, sent=False)

    def _give_up(self, master: Master) -> None:
        with self._lock:
            if self._master is master:
                self._drop()

    def _lost(self, master: Master, heard: Heard, nonce: str, timeout: float) -> LinkLost:
        """Say why there is no answer: late, killed over there, never begun, or the link is gone."""
        if heard.code is None:
            self._suspect = True
            return LinkLost(
                f"{self.host} gave no answer within {timeout:.0f} s",
                why="the link is silent, the login node is overloaded, or its file system hangs",
            )
        if master.alive():
            begun = started(nonce, heard.out, heard.err)
            never_ran = heard.code != 255 and not begun
            return _not_run(self.host, heard) if never_ran else _killed(self.host)
        message = explain(master.said(), self.host)
        self._give_up(master)
        return LinkLost(message.what, why=message.why, then=message.then)


def _not_sent(heard: Heard, nonce: str) -> bool:
    """Whether ssh surely did not ask the server to run the command."""
    said = heard.err.decode("utf-8", "replace")
    return NO_MASTER in said and IN_BETWEEN not in said and not started(nonce, heard.out, heard.err)


def _answers(master: Master, end: float) -> bool:
    """Whether something comes back over the link, in half of the time that is left at most."""
    seconds = min(PROBE_SECONDS, max(1.0, (end - time.monotonic()) / 2))
    return master.session("exec true", Input(b""), seconds).code == 0


def _late(because: str) -> LinkLost:
    return LinkLost(f"a command for the login node waited too long: {because}", sent=False)


def _killed(host: str) -> LinkLost:
    return LinkLost(
        f"a command on {host} was killed before it had answered",
        why="the login node limits memory or time of processes, or somebody ended it; the connection stands",
    )


def _not_run(host: str, heard: Heard) -> LinkLost:
    said = heard.err.decode("utf-8", "replace")
    return LinkLost(
        f"{host} did not run the command: the login shell ended with {heard.code}",
        why="it said:\n" + quoted(said) if said.strip() else "the account has no shell, or a forced command",
        then="the account needs a shell that runs `sh -c`, and a key without `command=` in authorized_keys",
        sent=False,
        retry=False,
    )
