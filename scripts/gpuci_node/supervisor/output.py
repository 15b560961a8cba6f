"""What test processes print, cut into lines for the log, up to a limit per job. Pure.

Runs on the compute node, inside the container (Python >= 3.8, standard library only).
"""

from typing import List

LONGEST = 8 * 1024  # bytes of a line; a longer one comes in pieces
STACKS = 256 * 1024  # bytes more for each time that stacks are asked for


class Allowance:
    """How many bytes of output the log still takes; 0 at first."""

    def __init__(self) -> None:
        self.left = 0
        self.used = False  # it was given something: output is wanted at all

    def give(self, size: int) -> None:
        """So many more."""
        self.left += size
        self.used = True

    def take(self, size: int) -> bool:
        """Whether this much may be passed on."""
        if size > self.left:
            return False
        self.left -= size
        return True


class Printed:
    """The output of one process; `dropped` counts the bytes that were not passed on."""

    def __init__(self) -> None:
        self._rest = b""
        self.dropped = 0

    def feed(self, data: bytes, allowance: Allowance) -> str:
        """The whole lines that may be passed on now."""
        if not allowance.used:
            return ""
        text, newline, rest = (self._rest + data).rpartition(b"\n")
        cut = len(rest) - len(rest) % LONGEST
        self._rest = rest[cut:]
        return self._pass(text + newline + rest[:cut], allowance)

    def end(self, allowance: Allowance) -> str:
        """What it said without a line end at last."""
        rest, self._rest = self._rest, b""
        return self._pass(rest, allowance)

    def _pass(self, data: bytes, allowance: Allowance) -> str:
        lines: List[bytes] = []
        for line in data.splitlines(keepends=True):
            if allowance.take(len(line)):
                lines.append(line)
            else:
                self.dropped += len(line)
        return b"".join(lines).decode("utf-8", "replace")
