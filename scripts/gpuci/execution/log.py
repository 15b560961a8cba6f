"""A job's log as it grows -> records. Pure."""

from __future__ import annotations

from gpuci.results import frames
from gpuci.results.journal import Record


class LogReader:
    """Feed it bytes in any pieces; only whole lines are read.

    `records` are the journal's. `verdict` is the last thing the keeper says, `end_code` the exit code of the
    job's script, None until they came. `text` are the last lines that are no frames, of shells and Slurm.
    """

    _KEPT_LINES = 50

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce
        self._rest: list[bytes] = []  # of a line that is not complete
        self.records: list[Record] = []
        self.verdict: Record | None = None
        self.end_code: int | None = None
        self.text: list[str] = []

    def feed(self, data: bytes) -> list[Record]:
        """Take bytes; return the records for those who watch: the journal's, and output of tests."""
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._rest.append(rest)
            return []
        text = b"".join([*self._rest, whole, newline]).decode("utf-8", "replace")
        self._rest = [rest]
        mark = f"{frames.WORD} {self._nonce} "
        self.text = [*self.text, *(line for line in text.split("\n") if line and mark not in line)]
        self.text = self.text[-self._KEPT_LINES :]
        return [record for record in frames.parse(text, self._nonce).records if self._take(record)]

    def _take(self, record: Record) -> bool:
        if record["kind"] == "verdict":
            self.verdict = record
        elif record["kind"] == "over":
            code = record.get("code")
            self.end_code = code if isinstance(code, int) else -1
        elif record["kind"] == "output":
            return True
        else:
            self.records.append(record)
            return True
        return False
