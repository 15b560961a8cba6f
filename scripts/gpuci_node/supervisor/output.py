"""What test processes print, cut into lines for the log, up to a limit per job. Pure.

Runs on the compute node, inside the container (Python >= 3.8, standard library only).
"""

from typing import List

from gpuci_node.processes import REPORTER_BEGIN, REPORTER_END

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


def unmarked(data: bytes) -> bytes:
    """All that was printed, without the marks of what pytest's reporter printed."""
    return data.translate(None, REPORTER_BEGIN + REPORTER_END)


class Printed:
    """The output of one process; `dropped` counts the bytes that were not passed on."""

    def __init__(self) -> None:
        self._rest = b""
        self._in_report = False
        self.dropped = 0

    def feed(self, data: bytes, allowance: Allowance) -> str:
        """The whole lines that may be passed on now, but for those of pytest's reporter."""
        if not allowance.used:
            return ""
        text, newline, rest = (self._rest + self._beside_reports(data)).rpartition(b"\n")
        cut = len(rest) - len(rest) % LONGEST
        self._rest = rest[cut:]
        return self._pass(text + newline + rest[:cut], allowance)

    def _beside_reports(self, data: bytes) -> bytes:
        parts = []
        while data:
            mark = REPORTER_END if self._in_report else REPORTER_BEGIN
            part, found, data = data.partition(mark)
            parts.append(b"" if self._in_report else part)
            self._in_report ^= bool(found)
        return b"".join(parts)

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
