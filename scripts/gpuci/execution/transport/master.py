"""The ssh process that holds the one connection, and the programs that use it."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from gpuci.execution.transport import ssh_options
from gpuci.execution.transport.login import AGENT, Login

END_SECONDS = 3.0
CHECK_SECONDS = 5.0

# Ends ssh when we do, however that comes about: then the pipe on its standard input ends. The private
# directory, $0, goes first: there may be a key in it. Not PR_SET_PDEATHSIG: that is bound to the thread
# that starts a child, and Linux alone has it. Neither holds an output of ours: GitHub's runner waits 5 s for
# who does so behind the end of a step (actions/runner, ProcessInvoker.cs, ProcessExitedHandler).
_GUARD = """\
"$@" </dev/null &
exec >/dev/null
read -r word
rm -rf -- "$0"
trap '' TERM
kill 0
wait
"""


def environment(login: Login, ours: Mapping[str, str]) -> dict[str, str]:
    """Return what ssh sees of our environment: no secret, and a shell for a jump that we know."""
    kept = {name: ours[name] for name in ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR") if name in ours}
    agent = {AGENT: login.agent} if login.agent else {}
    return {"PATH": os.defpath, **kept, **agent, "SHELL": "/bin/sh", "LC_ALL": "C"}


class Heard(NamedTuple):
    """What came of one session; the code is that of ssh, None if the time was over."""

    code: int | None
    out: bytes
    err: bytes


class Input:
    """Standard input of a command: bytes, or a file from where it stands now, as often as it is asked for."""

    def __init__(self, stdin: bytes | IO[bytes]) -> None:
        self._stdin = stdin
        self._start = None if isinstance(stdin, bytes) or not stdin.seekable() else stdin.tell()

    def given(self) -> tuple[int | IO[bytes], bytes | None]:
        """(what Popen gets, what is to be written to it)."""
        if isinstance(self._stdin, bytes):
            return (subprocess.PIPE, self._stdin) if self._stdin else (subprocess.DEVNULL, None)
        if self._start is not None:
            self._stdin.seek(self._start)
        try:
            descriptor = self._stdin.fileno()
        except OSError:  # a stream in memory
            return subprocess.PIPE, self._stdin.read()
        if self._start is not None:
            # The buffer of a reader may be ahead of it.
            os.lseek(descriptor, self._start, os.SEEK_SET)
        return descriptor, None


class Master:
    """A started master; `ready` tells when it is connected. Its sessions go over the socket `control`.

    `directory` is its own: it ends with it.
    """

    def __init__(self, command: Sequence[str], control: str, directory: Path, env: Mapping[str, str]) -> None:
        self.control = control
        self._env = env
        self._directory = directory
        # Not a pipe: nobody would read it later, and a full one would stop ssh.
        self._log = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed by `end`
        self._told = 0
        self._last = ""
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, str(directory), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=env,
            # A Ctrl-C is for us: the line is still needed then, to cancel jobs.
            start_new_session=True,
        )

    def ready(self, seconds: float) -> bool:
        """Wait until the connection stands; False if ssh ended, or the time did."""
        stream = self._process.stdout
        assert stream is not None
        end = time.monotonic() + seconds
        heard = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while b"\n" not in heard:
                if not selector.select(max(0.0, end - time.monotonic())):
                    return False
                piece = os.read(stream.fileno(), 4096)
                if not piece:
                    return False
                heard += piece
        self._told = os.fstat(self._log.fileno()).st_size
        return ssh_options.READY.encode() in heard

    def alive(self) -> bool:
        """Whether ssh still holds the connection; says nothing of a link that is silent."""
        try:
            done = subprocess.run(
                ssh_options.check_arguments(self.control),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self._env,
                timeout=CHECK_SECONDS,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def said(self) -> str:
        """The end of what ssh printed; once it is connected, of what it printed since then."""
        if self._log.closed:
            return self._last
        # By position: where ssh writes next is shared with us.
        end = os.fstat(self._log.fileno()).st_size
        start = max(self._told, end - 8192)
        return os.pread(self._log.fileno(), end - start, start).decode("utf-8", "replace")

    def end(self) -> str:
        """End ssh, by force if it does not listen; return what it had said."""
        try:
            self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        finally:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        self._last = self.said()
        self._log.close()
        return self._last

    def session(self, command: str, stdin: Input, seconds: float) -> Heard:
        """Run one command line over the connection; a command that takes longer is left to itself."""
        source, content = stdin.given()
        process = subprocess.Popen(
            ssh_options.session_arguments(self.control, command),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._env,
            start_new_session=True,
        )
        with process:
            try:
                out, err = process.communicate(content, timeout=seconds)
            except BaseException as error:
                # No second communicate: the master holds the pipes for as long as the link is silent.
                process.kill()
                if isinstance(error, subprocess.TimeoutExpired):
                    return Heard(None, error.output or b"", error.stderr or b"")
                raise
        return Heard(process.returncode, out, err)
