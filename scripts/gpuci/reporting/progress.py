"""Progress of a run while it runs: live bars on a terminal, else a line now and then. Writes to a stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from gpuci.model import Plan, ShardState
from gpuci.reporting.bars import shards_of
from gpuci.reporting.text import clip, width_of
from gpuci.results.verdict import shard_name

LINE_SECONDS = 30.0
REDRAW_SECONDS = 0.1
LOG_WIDTH = 300
_HIDE_CURSOR, _SHOW_CURSOR, _CLEAR_BELOW = "\x1b[?25l", "\x1b[?25h", "\x1b[J"
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


class Progress:
    """Feed it records, tick it with the time, close it. A stream that breaks ends the progress, not the run.

    Live bars need a terminal with a TERM other than `dumb`; NO_COLOR takes the colour from them
    (no-color.org). Not for several threads. `now` and the records' `t` are epoch seconds,
    which may jump.
    """

    def __init__(
        self,
        plan: Plan,
        stream: TextIO,
        *,
        environ: Mapping[str, str],
        elsewhere: bool = False,
        size: Callable[[], tuple[int, int]] | None = None,
    ) -> None:
        """`elsewhere`: the cpu units do not run here. `size` gives (columns, lines), else the stream does."""
        self._stream = stream
        self._live = stream.isatty() and environ.get("TERM", "dumb") != "dumb"
        self._colour = self._live and not environ.get("NO_COLOR")
        self._size = size or self._terminal_size
        self._shards = {shard.index: shard for shard in shards_of(plan, elsewhere=elsewhere)}
        self._drawn: list[int] = []
        self._last: float | None = None
        self._hidden = False
        self._closed = False

    def feed(self, shard: int, record: dict[str, Any]) -> None:
        """Take a record of a shard's journal, as `journal.read_record` gives it; nothing is written."""
        if shard in self._shards:
            self._shards[shard].feed(record)

    def state(self, shard: int, state: ShardState) -> None:
        """What a shard waits for; its next job record ends that."""
        if shard in self._shards and state.phase in ("submitted", "waiting"):
            self._shards[shard].pause(f"{state.phase} ({state.text})" if state.text else state.phase)

    def say(self, lines: Sequence[str]) -> None:
        """Write lines of the caller's at once; above the bars, which they would break."""
        if self._live and self._last is not None:
            self._draw(self._last, self._failures(), lines)
        else:
            self._write("".join(f"{line}\n" for line in lines))

    def tick(self, now: float) -> None:
        """Write what is due: new failures at once, bars at most ten times a second, lines each 30 s."""
        failures = self._failures()
        if self._live:
            if failures or self._last is None or abs(now - self._last) >= REDRAW_SECONDS:
                self._draw(now, failures)
            return
        if self._last is None:
            self._last = now
        lines = failures
        if abs(now - self._last) >= LINE_SECONDS:
            lines.append(self._summary(now))
            self._last = now
        self._write("".join(f"{line}\n" for line in lines))

    def close(self) -> None:
        """Write the last state of the bars and give the cursor back; safe to call twice."""
        if self._closed:
            return
        if self._last is not None:
            failures = self._failures()
            if self._live:
                self._draw(self._last, failures)
            else:
                self._write("".join(f"{line}\n" for line in failures))
        self._write(_SHOW_CURSOR if self._hidden else "")
        self._closed = True

    def _draw(self, now: float, failures: list[str], said: Sequence[str] = ()) -> None:
        columns, lines = self._size()
        room = max(1, columns - 1)  # a full last column makes some terminals wrap
        bars = self._bars(now, room, max(1, lines - 2))
        failed = [self._red(line) for line in failures]
        text = "".join(f"{line}\n" for line in [*failed, *said, *bars])
        self._write(f"{'' if self._hidden else _HIDE_CURSOR}{self._erase(columns)}{text}")
        self._hidden = True
        self._drawn = [width_of(line) for line in bars]
        self._last = now

    def _failures(self) -> list[str]:
        """A line for each new failure, as wide as it may be."""
        width = max(1, self._size()[0] - 1) if self._live else LOG_WIDTH
        return [line for shard in self._shards.values() for line in shard.take_failures(width)]

    def _erase(self, columns: int) -> str:
        """Back to the first bar; a terminal that got narrower has broken the old bars into more lines."""
        rows = sum(max(1, -(-width // max(1, columns))) for width in self._drawn)
        return f"\r\x1b[{rows}A{_CLEAR_BELOW}" if rows else ""

    def _bars(self, now: float, room: int, limit: int) -> list[str]:
        bars = [shard.line(now, room) for shard in self._shards.values()]
        if len(bars) <= limit:
            return bars
        return [*bars[: limit - 1], clip(f"and {len(bars) - limit + 1} more shards", room)]

    def _summary(self, now: float) -> str:
        shards = self._shards.values()
        done, total = sum(shard.done for shard in shards), sum(shard.total for shard in shards)
        parts = [f"{done}/{total} tests"]
        for shard in shards:
            if shard.done < shard.total:
                state = ", ".join([f"{shard.done}/{shard.total}", *shard.counts(now)])
                parts.append(f"{shard_name(shard.index)}: {state}")
        return "; ".join(parts)

    def _red(self, text: str) -> str:
        return f"{_RED}{text}{_PLAIN}" if self._colour else text

    def _write(self, text: str) -> None:
        if not text or self._closed:
            return
        encoding = self._stream.encoding or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe or stream
            self._closed = True

    def _terminal_size(self) -> tuple[int, int]:
        try:
            columns, lines = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return (columns or 80, lines or 24)
