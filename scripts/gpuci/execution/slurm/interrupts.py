"""Signals that ask us to end: counted, and able to cut short a wait for the cluster."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK_SECONDS = 0.2


class Interrupted(BaseException):
    """A signal came while we waited. No Exception, so that nothing on the way takes it for an error."""


class Interrupts:
    """Handles signals while it is entered. The first asks to cancel, the second to leave."""

    def __init__(self) -> None:
        self.count = 0
        self._noticed = 0  # of these, those that ended a wait
        self._cuts = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Interrupts:
        # What is ignored stays so: `nohup` sees to that a closed terminal ends nothing.
        heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._take) for number in heard}
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self._cuts:
            self._cuts = False
            raise Interrupted

    @contextmanager
    def cutting(self) -> Iterator[None]:
        """A signal that comes inside raises Interrupted there: around calls that can be repeated."""
        self._cuts = True
        try:
            yield
        finally:
            self._cuts = False

    def wait(self, seconds: float, tick: Callable[[], None]) -> None:
        """Wait, with a tick now and then; a signal ends the wait, also one that came shortly before it.

        No threading.Event: its lock is held for moments of each wait, and a handler that then sets it hangs.
        """
        while seconds > 0 and self.count == self._noticed:
            time.sleep(min(seconds, _TICK_SECONDS))
            seconds -= _TICK_SECONDS
            tick()
        self._noticed = self.count
