"""How a test process talks with the supervisor: records out, commands in.

Runs in the test process, inside the container (Python >= 3.8, standard library only). Tests see neither:
the descriptors are not inherited by what they start.
"""

import array
import os
import socket
from typing import Any, Dict, List, NamedTuple, Optional

from gpuci_node.worker.originals import ORIGINALS

_LARGEST_COMMAND = 64 * 1024  # a path of at most 4096 bytes (PATH_MAX), as JSON
_MOST_DESCRIPTORS = 3


class Channel:
    """Writes records to the supervisor, one JSON line each."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._fd = fd
        self._owner = ORIGINALS.getpid()

    def send(self, kind: str, **fields: Any) -> None:
        """Write one record; nothing from a process that a test forked, which would tell everything twice."""
        if ORIGINALS.getpid() != self._owner:
            return
        view = memoryview(ORIGINALS.encode({"kind": kind, **fields}).encode("ascii") + b"\n")
        while view:
            view = view[ORIGINALS.write(self._fd, view) :]

    def close(self) -> None:
        """Close the descriptor: in a forked process, which has a channel of its own."""
        os.close(self._fd)


class Command(NamedTuple):
    """`do` is run, fork or end; `content` is the JSON of the file that came with it; `fds` are for a fork."""

    do: str
    content: Dict[str, Any]
    fds: List[int]


class Control:
    """Reads commands: one packet each, `{"do", "path"}`, and descriptors for a fork."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)

    def receive(self) -> Optional[Command]:
        """Wait for the next command; None when the supervisor is gone or wants no more."""
        size = array.array("i").itemsize * _MOST_DESCRIPTORS
        data, ancillary, _flags, _address = self._socket.recvmsg(_LARGEST_COMMAND, socket.CMSG_LEN(size))
        if not data:
            return None
        fds = array.array("i")
        for _level, _kind, content in ancillary:
            fds.frombytes(content)
        for fd in fds:
            os.set_inheritable(fd, False)
        said = ORIGINALS.decode(data.decode("ascii"))
        if said["do"] == "end":
            return None
        return Command(said["do"], ORIGINALS.load(said["path"]), list(fds))

    def close(self) -> None:
        """Close the socket: in a forked process, which has one of its own."""
        self._socket.close()
