"""A job's log as it grows -> records. Pure."""

from __future__ import annotations

import hashlib

from gpuci.results import frames
from gpuci.results.journal import Record


class LogReader:
    """Feed it bytes in any pieces; only whole lines are read.

    `records` are the journal's; `lines` and `digest` are those of the journal that they make up. `verdict` is
    the last thing the keeper says, `end_code` the exit code of the job's script, None until they came. `text`
    are the last lines that are no frames, of shells and Slurm.
    """

    _KEPT_LINES, _KEPT_LENGTH = 50, 4000
    MOST_HELD = 64 * 1024 * 1024  # bytes of one line

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._rest: list[bytes] = []  # of a line that is not complete
        self._hash = hashlib.sha256()
        self.records: list[Record] = []
        self.lines = 0
        self.verdict: Record | None = None
        self.end_code: int | None = None
        self.text: list[str] = []

    def feed(self, data: bytes) -> list[Record]:
        """Take bytes; return the records for those who watch: the journal's, and output of tests."""
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._hold(rest)
            return []
        text = b"".join([*self._rest, whole, newline]).decode("utf-8", "replace")
        self._rest = [rest]
        mark = f"{frames.WORD} {self._nonce} "
        plain = [line for line in text.split("\n") if line and mark not in line][-self._KEPT_LINES :]
        self.text = [*self.text, *(line[: self._KEPT_LENGTH] for line in plain)][-self._KEPT_LINES :]
        found = []
        for line in text.split("\n"):
            record = frames.parse(line + "\n", self._nonce).records if mark in line else ()
            found += [each for each in record if self._take(each, line.partition(mark)[2])]
        return found

    def _hold(self, part: bytes) -> None:
        """More of a line. Of one that never ends its last bytes are kept: a frame may stand behind them."""
        self._rest.append(part)
        held = sum(map(len, self._rest))
        while len(self._rest) > 1 and held > self.MOST_HELD:
            held -= len(self._rest.pop(0))

    @property
    def digest(self) -> str:
        """sha256, in hexadecimal, of the journal that the frames make up: each is a line of it."""
        return self._hash.hexdigest()

    def _take(self, record: Record, line: str) -> bool:
        if record["kind"] == "verdict":
            self.verdict = record
        elif record["kind"] == "over":
            code = record.get("code")
            self.end_code = code if isinstance(code, int) else -1
        elif record["kind"] == "output":
            return True
        else:
            self.records.append(record)
            self.lines += 1
            self._hash.update(line.encode() + b"\n")
            return True
        return False
