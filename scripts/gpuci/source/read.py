"""Reads files below a root into facts: single ones on demand, many over worker processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gpuci.errors import GpuciError
from gpuci.source.facts import FileFacts
from gpuci.source.parse import MAX_BYTES, parse_source

# Below this many files one process is done before the workers have started.
MIN_FILES_FOR_WORKERS = 200
BLOCK = 64 * 1024

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def read_file(path: str) -> bytes:
    """The content of a regular file, at most BLOCK more than MAX_BYTES; raises OSError.

    Three system calls for a usual file, where `open()` makes eight: they are most of the time spent on it.
    """
    # O_NONBLOCK: a pipe put in the place of a file can't hold us up.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        blocks = [os.read(descriptor, BLOCK)]
        while len(blocks[-1]) == BLOCK and len(blocks) * BLOCK <= MAX_BYTES:
            blocks.append(os.read(descriptor, BLOCK))
        return b"".join(blocks) if len(blocks) > 1 else blocks[0]
    finally:
        os.close(descriptor)


def facts_of(path: str) -> FileFacts:
    """Read and parse one file; one that can't be read gives facts with `error` set."""
    try:
        return parse_source(read_file(path))
    except OSError as error:
        return FileFacts(error=(1, error.strerror or "can't be read"))


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_for(files: int, jobs: int | None) -> int:
    """How many processes read `files` files; `jobs` is what the user asked for."""
    if files < MIN_FILES_FOR_WORKERS:
        return 1
    return cores() if jobs is None else max(1, jobs)


def spread(
    work: Callable[[Task], Answer], tasks: Sequence[Task], workers: int, start: Callable[[], None]
) -> Iterator[Answer]:
    """The answers of `work`, in the order of its tasks, from `workers` processes.

    `start` runs once in each process. Both are module-level functions, or partials of one. Raises
    GpuciError when a process dies.
    """
    if workers == 1:
        start()
        for task in tasks:
            yield work(task)
        return
    # A fork of a process with threads can deadlock, and macOS frameworks don't survive one.
    method = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    context = multiprocessing.get_context(method)
    # Not a `multiprocessing.Pool`: that one waits for ever for the answer of a process that was killed.
    with ProcessPoolExecutor(workers, context, _start_worker, (start,)) as pool:
        try:
            yield from pool.map(work, tasks)
        except BrokenProcessPool:
            raise GpuciError(
                "a process that reads the tests has died",
                why="it was killed, mostly for lack of memory, or a file is nested too deeply for Python",
                then="run again on a machine with more memory, or with a newer Python",
            ) from None


def _start_worker(start: Callable[[], None]) -> None:
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends the pool
    start()


@contextmanager
def quick() -> Iterator[None]:
    """No search for cycles while trees are built, no SyntaxWarnings of others' code."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if collecting:
            gc.enable()


class SourceTree:
    """Files below `root` by relative path: facts on demand, and what directories hold."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._real = os.path.realpath(root)
        self._facts: dict[str, FileFacts | None] = {}
        self._names: dict[str, frozenset[str]] = {}

    def add(self, path: str, facts: FileFacts) -> None:
        """Facts of a file that was read elsewhere."""
        self._facts[path] = facts

    def forget(self, path: str) -> None:
        """Let go of the facts of a file."""
        self._facts.pop(path, None)

    def facts(self, path: str) -> FileFacts | None:
        """The facts of a file; None if it isn't there, leaves the tree or isn't Python."""
        if path not in self._facts:
            self._facts[path] = self._read(os.path.join(self._root, path))
        return self._facts[path]

    def _read(self, full: str) -> FileFacts | None:
        if not os.path.isfile(full) or not self._inside(full):
            return None
        with quick():
            facts = facts_of(full)
        return None if facts.error else facts

    def names(self, directory: str) -> frozenset[str]:
        """The names in a directory; none if there is no such directory."""
        known = self._names.get(directory)
        if known is None:
            try:
                known = frozenset(os.listdir(os.path.join(self._root, directory)))
            except (OSError, ValueError):  # ValueError: a name that no file can have
                known = frozenset()
            self._names[directory] = known
        return known

    def has_prompt(self, path: str) -> bool:
        """Whether a text file holds a `>>>`, without which it has no doctest."""
        try:
            return b">>>" in read_file(os.path.join(self._root, path))
        except OSError:
            return True

    def _inside(self, full: str) -> bool:
        return os.path.realpath(full).startswith(self._real.rstrip(os.sep) + os.sep)
