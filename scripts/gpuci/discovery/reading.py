"""Files of a root -> their tests, over worker processes. I/O.

A worker reads, parses and collects a chunk of files, so that only the tests travel back; modules that
tests import are read once per worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gpuci.discovery.collect import Collector, FileReading
from gpuci.discovery.evaluate import Evaluator
from gpuci.discovery.patterns import hint_pattern
from gpuci.discovery.pytest_config import PytestRules
from gpuci.source import cache as facts_cache
from gpuci.source.cache import FactsCache
from gpuci.source.facts import FileFacts
from gpuci.source.imports import ImportFinder
from gpuci.source.parse import parse_source
from gpuci.source.read import SourceTree, quick, read_file, spread, workers_for

CHUNK = 64


class RootContext(NamedTuple):
    """What the files of a root have in common: ROOT, pytest's rules, where imports are looked for."""

    root: str
    rules: PytestRules
    bases: tuple[str, ...]


class ReadFile(NamedTuple):
    """What was read of one file; `key` and `packed` (if new) are for the cache."""

    path: str
    reading: FileReading
    error: tuple[int, str] | None
    doctest: bool
    key: bytes | None = None
    packed: bytes | None = None


def read_files(
    context: RootContext, paths: Sequence[str], *, jobs: int | None = None, cache: FactsCache | None = None
) -> Iterator[ReadFile]:
    """Read Python files (ROOT-relative), in order, as workers hand them in.

    `jobs` is the number of worker processes (None: one per core).
    """
    start = partial(_start, context, None if cache is None else cache.known)
    chunks = [tuple(paths[first : first + CHUNK]) for first in range(0, len(paths), CHUNK)]
    for answer in spread(_read_chunk, chunks, workers_for(len(paths), jobs), start):
        for file in answer:
            if cache is not None and file.key is not None:
                cache.use(file.key, file.packed)
            yield file


class _Reader:
    """Reads files of one root, one after another; modules that they import are read once."""

    def __init__(self, context: RootContext, packed: dict[bytes, bytes] | None) -> None:
        self._root = context.root
        self._packed = packed
        self._tree = SourceTree(Path(context.root))
        finder = ImportFinder(self._tree.names, context.bases)
        self._collector = Collector(Evaluator(self._tree, finder), context.rules)
        self._hints = hint_pattern(context.rules)

    def read(self, path: str) -> ReadFile:
        try:
            data = read_file(os.path.join(self._root, path))
        except OSError as error:
            facts = FileFacts(error=(1, error.strerror or "can't be read"))
            return ReadFile(path, self._collected(path, facts), facts.error, False)
        facts, key, packed = self._facts(data)
        reading = self._collected(path, facts)
        if not reading.items and reading.opaque is None and self._hints.search(data):
            reading = FileReading(opaque="no test can be seen, but the text speaks of tests")
        return ReadFile(path, reading, facts.error, facts.doctest, key, packed)

    def _facts(self, data: bytes) -> tuple[FileFacts, bytes | None, bytes | None]:
        """Facts, and what the cache is to keep: the key, and the packed facts if they are new."""
        if self._packed is None:
            return parse_source(data), None, None
        key = facts_cache.digest(data)
        known = facts_cache.unpack(self._packed[key]) if key in self._packed else None
        if known is not None:
            return known, key, None
        facts = parse_source(data)
        return facts, key, facts_cache.pack(facts)

    def _collected(self, path: str, facts: FileFacts) -> FileReading:
        if facts.error is not None:
            return FileReading(opaque=f"line {facts.error[0]}: {facts.error[1]}")
        self._tree.add(path, facts)
        try:
            return self._collector.collect(path)
        finally:
            self._tree.forget(path)


# One reader per process: a worker serves one root, and tasks that carried it would be slow.
_readers: list[_Reader] = []


def _start(context: RootContext, packed: dict[bytes, bytes] | None) -> None:
    _readers[:] = [_Reader(context, packed)]


def _read_chunk(paths: tuple[str, ...]) -> list[ReadFile]:
    with quick():
        return [_readers[0].read(path) for path in paths]
