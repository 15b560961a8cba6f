"""Files of a root -> their tests, over worker processes. I/O.

A worker reads, parses and collects a chunk of files, so that only the tests travel back; modules that
tests import are read once per worker.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from gpuci.discovery.collect import Collector, FileReading
from gpuci.discovery.evaluate import Evaluator
from gpuci.discovery.pytest_config import PytestRules
from gpuci.source import cache as facts_cache
from gpuci.source.cache import FactsCache
from gpuci.source.facts import FileFacts
from gpuci.source.imports import ImportFinder
from gpuci.source.read import SourceTree, facts_of, quick, read_file, spread, workers_for

CHUNK = 64


class RootContext(NamedTuple):
    """What the files of a root have in common: ROOT, pytest's rules, where imports are looked for."""

    root: str
    rules: PytestRules
    bases: tuple[str, ...]


class ReadFile(NamedTuple):
    """What was read of one file; `packed` are its facts where they are to be cached."""

    path: str
    reading: FileReading
    error: tuple[int, str] | None
    doctest: bool
    packed: bytes | None = None


class _Chunk(NamedTuple):
    context: RootContext
    files: tuple[tuple[str, bytes | None], ...]  # (path, packed facts)
    keep: bool  # facts are wanted back


def read_files(
    context: RootContext, paths: Sequence[str], *, jobs: int | None = None, cache: FactsCache | None = None
) -> dict[str, ReadFile]:
    """Read Python files (ROOT-relative); `jobs` is the number of worker processes (None: one per core)."""
    keys = {} if cache is None else _digests(context.root, paths)
    packed = {path: cache.get(key) for path, key in keys.items()} if cache is not None else {}
    files = [(path, packed.get(path)) for path in paths]
    chunks = [
        _Chunk(context, tuple(files[start : start + CHUNK]), cache is not None)
        for start in range(0, len(files), CHUNK)
    ]
    found: dict[str, ReadFile] = {}
    for answer in spread(_read_chunk, chunks, workers_for(len(paths), jobs)):
        for file in answer:
            found[file.path] = file
            if cache is not None and file.packed is not None and file.path in keys:
                cache.put(keys[file.path], file.packed)
    return found


def _digests(root: str, paths: Sequence[str]) -> dict[str, bytes]:
    keys: dict[str, bytes] = {}
    for path in paths:
        try:
            keys[path] = facts_cache.digest(read_file(os.path.join(root, path)))
        except OSError:
            continue
    return keys


def _read_chunk(chunk: _Chunk) -> list[ReadFile]:
    reader = _reader(chunk.context)
    with quick():
        return [reader.read(path, packed, chunk.keep) for path, packed in chunk.files]


@lru_cache(maxsize=1)
def _reader(context: RootContext) -> _Reader:
    """One reader per process and root, so that imported modules are read once."""
    return _Reader(context)


class _Reader:
    def __init__(self, context: RootContext) -> None:
        self._root = context.root
        self._tree = SourceTree(Path(context.root))
        finder = ImportFinder(self._tree.names, context.bases)
        self._collector = Collector(Evaluator(self._tree, finder), context.rules)

    def read(self, path: str, packed: bytes | None, keep: bool) -> ReadFile:
        known = None if packed is None else facts_cache.unpack(packed)
        facts = facts_of(os.path.join(self._root, path)) if known is None else known
        blob = facts_cache.pack(facts) if keep and known is None else None
        return ReadFile(path, self._collected(path, facts), facts.error, facts.doctest, blob)

    def _collected(self, path: str, facts: FileFacts) -> FileReading:
        if facts.error is not None:
            return FileReading(opaque=f"line {facts.error[0]}: {facts.error[1]}")
        self._tree.add(path, facts)
        try:
            return self._collector.collect(path)
        finally:
            self._tree.forget(path)
