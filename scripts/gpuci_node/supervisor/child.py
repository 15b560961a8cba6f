"""A test process as the starter holds it: its pid and its pipes.

Runs on the compute node, inside the container (Python >= 3.8, standard library only).
"""

import array
import contextlib
import json
import os
import socket
import subprocess
from typing import Any, Dict, List, Optional, Sequence, Set

from gpuci_node import processes
from gpuci_node.supervisor.output import Printed

_LONGEST_RECORD = 64 * 1024 * 1024  # what a file of 100,000 tests collected is about half of this


class Lines:
    """Cuts a byte stream into lines; a line longer than `longest` is dropped."""

    def __init__(self, longest: int = _LONGEST_RECORD) -> None:
        self._parts: List[bytes] = []  # of the line that is not complete; joined once, when it is
        self._size = 0
        self._longest = longest

    def feed(self, data: bytes) -> List[bytes]:
        """Return the lines that are complete now."""
        first, *others = data.split(b"\n")
        self._keep(first)
        if not others:
            return []
        lines = [b"".join(self._parts), *others[:-1]]
        self._parts, self._size = [], 0
        self._keep(others[-1])
        return lines

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._longest:
            self._parts, self._size = [], 0


class Pipes:
    """Both ends of what a test process is connected by: records and output out, commands in."""

    def __init__(self) -> None:
        self.records, records = os.pipe()
        self.output, output = os.pipe()
        self.control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        self.theirs = (records, output, self._theirs.fileno())

    def close_theirs(self) -> None:
        """Close the ends that the process has by now."""
        for fd in self.theirs[:2]:
            os.close(fd)
        self._theirs.close()

    def send(self, command: Dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one packet; a process that is gone, or takes none, ends by itself or at its limit."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, BlockingIOError):
            self.control.sendmsg([json.dumps(command).encode("ascii")], rights)

    def close(self) -> None:
        """Close our ends."""
        for fd in (self.records, self.output):
            os.close(fd)
        self.control.close()


class Child:
    """One test process with its pipes; `pid` is 0 until a forked one said that it is there."""

    def __init__(self, process_id: str, token: str, pid: int, directory: str, pipes: Pipes) -> None:
        self.id = process_id
        self.token = token
        self.pid = pid
        self.directory = directory  # its scratch: here we leave what it is told
        self.pipes = pipes
        self.popen: Optional[subprocess.Popen[bytes]] = None  # of one that we started ourselves
        self.lines = Lines()
        self.tail = b""
        self.printed = Printed()
        self.told = 0
        self.stopped = False  # the job is being ended
        self.signal: Optional[int] = None  # to be sent once it is there

    def family(self) -> Set[int]:
        """What it started and is still alive."""
        return processes.family(self.pid, self.token)

    def wait(self) -> int:
        """Collect the dead process; its exit code, or minus the signal that ended it."""
        if self.popen is not None:
            return self.popen.wait()
        _pid, status = os.waitpid(self.pid, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
