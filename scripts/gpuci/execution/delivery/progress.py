"""Tells how far an upload is. I/O: a thread that watches the position of the file which is read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import IO

SECONDS = 2.0


class Progress:
    """A context in which each `seconds` one line is said; whoever reads the open file moves its position."""

    def __init__(
        self,
        stream: IO[bytes],
        size: int,
        whole: int,
        say: Callable[[str], None],
        seconds: float | None = None,
    ) -> None:
        """`size`: bytes of the stream; `whole`: of what is in it, which is what a person knows."""
        self._stream = stream
        self._size = size
        self._what = f"delivering {max(1, round(whole / 1e6))} MB"
        self._say = say
        self._seconds = SECONDS if seconds is None else seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gpuci-delivery", daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._seconds):
            at = os.lseek(self._stream.fileno(), 0, os.SEEK_CUR)
            self._say(f"{self._what}: {min(100, 100 * at // max(1, self._size))} %")
