"""The keeper's line to its starter: pipes, or named pipes where a container's runtime stands between them.

Runs on the compute node (Python >= 3.8, standard library only).

A runtime's client and monitor pass standard input and output on, but not the death of who is at the other
end: Slurm may kill both and leave the container. A named pipe in a directory that the container has too ends
when the keeper does, whatever becomes of the runtime.
"""

import contextlib
import os
import subprocess
import sys
from typing import Any, List, Optional, Tuple

COMMANDS, EVENTS = "commands", "events"


class Link:
    """A started starter. `said` is what the command says besides (only with a directory), else None."""

    def __init__(self, python: List[str], directory: Optional[str]) -> None:
        command = [*python, sys.argv[0], "starter"]
        self._directory = directory
        self.said: Optional[int] = None
        if directory is None:
            self.process = _start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.commands, self.events = _fileno(self.process.stdin), _fileno(self.process.stdout)
        else:
            self.commands, self.events = _open(directory)
            self.process = _start(
                [*command, directory],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            self.said = _fileno(self.process.stdout)
        os.set_blocking(self.commands, False)

    def met(self) -> None:
        """The starter is there: nobody else shall find the way."""
        if self._directory is not None:
            for name in (COMMANDS, EVENTS):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._directory, name))

    def leave(self, seconds: float) -> bool:
        """Let it go: it kills all that it started. Return whether its command ended in time."""
        with contextlib.suppress(OSError):
            os.close(self.commands)
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def _start(command: List[str], **streams: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, bufsize=0, start_new_session=True, **streams)


def _fileno(stream: Any) -> int:
    return int(stream.fileno())


def _open(directory: str) -> Tuple[int, int]:
    os.makedirs(directory)
    for name in (COMMANDS, EVENTS):
        path = os.path.join(directory, name)
        os.mkfifo(path)
        os.chmod(path, 0o666)  # the container's user may be another; the directory above is ours alone
    # Read and write: without a reader it could not be opened yet (fifo(7)).
    commands = os.open(os.path.join(directory, COMMANDS), os.O_RDWR)
    return commands, os.open(os.path.join(directory, EVENTS), os.O_RDONLY | os.O_NONBLOCK)


def take(directory: str) -> None:
    """In the starter: commands become standard input, events standard output. Raises OSError.

    A keeper that was killed meanwhile is not waited for (fifo(7)): the container would live for ever.
    """
    commands = os.open(os.path.join(directory, COMMANDS), os.O_RDONLY | os.O_NONBLOCK)
    events = os.open(os.path.join(directory, EVENTS), os.O_WRONLY | os.O_NONBLOCK)
    for fd, standard in ((commands, 0), (events, 1)):
        os.set_blocking(fd, True)
        os.dup2(fd, standard)
        os.close(fd)
