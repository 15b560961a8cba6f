"""Reads files below a root into facts: many at once over worker processes, single ones on demand."""

from __future__ import annotations

import gc
import marshal
import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpuci.source import cache as facts_cache
from gpuci.source.cache import FactsCache
from gpuci.source.facts import FileFacts
from gpuci.source.parse import MAX_BYTES, parse_source

CHUNK = 64
# Below this many files one process is done before the workers have started.
MIN_FILES_FOR_WORKERS = 200


def read_file(path: str) -> bytes:
    """The content of a regular file, at most one byte more than MAX_BYTES; raises OSError."""
    with open(path, "rb") as stream:
        return stream.read(MAX_BYTES + 1)


def facts_of(path: str) -> FileFacts:
    """Read and parse one file; one that can't be read gives facts with `error` set."""
    try:
        data = read_file(path)
    except OSError as error:
        return FileFacts(error=(1, error.strerror or "can't be read"))
    return parse_source(data)


def read_facts(
    root: Path, paths: Sequence[str], *, jobs: int | None = None, cache: FactsCache | None = None
) -> dict[str, FileFacts]:
    """Facts of the files `paths` (relative to `root`), in the same order.

    `jobs` is the number of worker processes (default: one per core; 1: none).
    """
    known, keys, missing = _cached(root, paths, cache)
    for path, blob in _parsed(root, missing, _workers(len(missing), jobs)):
        known[path] = facts_cache.unpack(blob)
        if cache is not None and path in keys:
            cache.put(keys[path], blob)
    return {path: known[path] for path in paths}


def _cached(
    root: Path, paths: Sequence[str], cache: FactsCache | None
) -> tuple[dict[str, FileFacts], dict[str, bytes], Sequence[str]]:
    known: dict[str, FileFacts] = {}
    keys: dict[str, bytes] = {}
    if cache is None:
        return known, keys, paths
    for path in paths:
        try:
            keys[path] = facts_cache.digest(read_file(os.path.join(root, path)))
        except OSError:
            continue
        facts = cache.get(keys[path])
        if facts is not None:
            known[path] = facts
    return known, keys, [path for path in paths if path not in known]


def _workers(files: int, jobs: int | None) -> int:
    if files < MIN_FILES_FOR_WORKERS:
        return 1
    if jobs is not None:
        return max(1, jobs)
    return cores()


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _parsed(root: Path, paths: Sequence[str], workers: int) -> Iterator[tuple[str, bytes]]:
    chunks = [(str(root), paths[start : start + CHUNK]) for start in range(0, len(paths), CHUNK)]
    if workers == 1:
        for chunk in chunks:
            yield from marshal.loads(_parse_chunk(chunk))
        return
    # A fork of a process with threads can deadlock, and macOS frameworks don't survive one.
    method = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    with multiprocessing.get_context(method).Pool(workers) as pool:
        for answer in pool.imap(_parse_chunk, chunks):
            yield from marshal.loads(answer)


def _parse_chunk(chunk: tuple[str, Iterable[str]]) -> bytes:
    root, paths = chunk
    with _quick():
        return marshal.dumps([(path, facts_cache.pack(facts_of(os.path.join(root, path)))) for path in paths])


@contextmanager
def _quick() -> Iterator[None]:
    """No collection of cycles (syntax trees have none worth finding), no SyntaxWarnings of others' code."""
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
    """Files below `root` by relative path: facts on demand, and where an import leads."""

    def __init__(self, root: Path, known: dict[str, FileFacts] | None = None) -> None:
        self._root = str(root)
        self._real = os.path.realpath(root)
        self._facts: dict[str, FileFacts | None] = dict(known or {})
        self._exists: dict[str, bool] = {}

    def facts(self, path: str) -> FileFacts | None:
        """The facts of a file; None if it isn't there, leaves the tree or isn't Python."""
        if path not in self._facts:
            self._facts[path] = self._read(path) if self.exists(path) else None
        return self._facts[path]

    def _read(self, path: str) -> FileFacts | None:
        with _quick():
            facts = facts_of(os.path.join(self._root, path))
        return None if facts.error else facts

    def has_prompt(self, path: str) -> bool:
        """Whether a text file holds a `>>>`, without which it has no doctest."""
        try:
            return b">>>" in read_file(os.path.join(self._root, path))
        except OSError:
            return True

    def exists(self, path: str) -> bool:
        """Whether `path` is a regular file that lies inside the root, links followed."""
        known = self._exists.get(path)
        if known is None:
            full = os.path.join(self._root, path)
            known = os.path.isfile(full) and self._inside(full)
            self._exists[path] = known
        return known

    def _inside(self, full: str) -> bool:
        return os.path.realpath(full).startswith(self._real.rstrip(os.sep) + os.sep)
