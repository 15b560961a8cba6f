"""The walk: which files of a root pytest would collect, in its order. I/O: lists directories.

Facts: `_pytest/main.py` (pytest_ignore_collect, Dir.collect), `_pytest/python.py`, `_pytest/doctest.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from gpuci.discovery.conftests import Conftest, Ignoring
from gpuci.discovery.patterns import matches_any
from gpuci.discovery.pytest_config import PytestRules
from gpuci.errors import ConfigError
from gpuci.source.imports import join

# Never looked into, whatever an ini file says.
EXCLUDED = frozenset({"__pycache__", "node_modules", ".git", ".gpuci"})
_ENVIRONMENT = frozenset({"pyvenv.cfg", "conda-meta"})

ReadConftest = Callable[[str], Conftest | None]


@dataclass(frozen=True)
class FoundFile:
    """A file that pytest would collect: as a module, as a doctest, or by a hook (`hook` says which)."""

    path: str
    module: bool
    doctest: bool = False
    hook: str | None = None


@dataclass(frozen=True)
class _Place:
    """A directory on the walk: its path below ROOT, its real path, and those of the directories above."""

    path: str
    real: str
    above: frozenset[str]
    ignoring: Ignoring


class Walk:
    """Walks one root; `root` is ROOT, paths are relative to it."""

    def __init__(self, root: Path, base: str, rules: PytestRules, read_conftest: ReadConftest) -> None:
        self._root = os.path.realpath(root)
        self._base = "" if base == "." else base
        self._rules = rules
        self._read_conftest = read_conftest
        self._ignored = tuple(join(self._base, path) for path in rules.ignore)
        self._ignored_globs = tuple(join(self._base, pattern) for pattern in rules.ignore_glob)

    def files(self, start: str) -> Iterator[FoundFile]:
        """All files at or below `start` (a directory or a file below ROOT)."""
        start = "" if start == "." else start
        full = os.path.join(self._root, start)
        if not self._inside(os.path.realpath(full)):
            return
        if os.path.isfile(full):
            found = self._file(start, self._ignoring_at(start.rpartition("/")[0]), given=True)
            if found is not None:
                yield found
        elif os.path.isdir(full):
            above = self._ignoring_at(start.rpartition("/")[0]) if start else Ignoring()
            yield from self._directory(_Place(start, os.path.realpath(full), frozenset(), above))

    def _ignoring_at(self, directory: str) -> Ignoring:
        """What the conftests from the root down to a directory say."""
        ignoring = Ignoring()
        if directory != self._base and not directory.startswith(self._base + "/" if self._base else ""):
            return ignoring
        rest = directory[len(self._base) :].strip("/")
        path = self._base
        for part in ["", *rest.split("/")] if rest else [""]:
            path = join(path, part) if part else path
            ignoring = self._with_conftest(path, ignoring)
        return ignoring

    def _with_conftest(self, directory: str, ignoring: Ignoring) -> Ignoring:
        conftest = self._read_conftest(join(directory, "conftest.py"))
        return ignoring if conftest is None else ignoring.below(conftest)

    def _directory(self, place: _Place) -> Iterator[FoundFile]:
        # No recursion: a path has room for more directories than Python has for calls.
        open_directories = [self._listing(place)]
        while open_directories:
            found = next(open_directories[-1], None)
            if found is None:
                open_directories.pop()
            elif isinstance(found, _Place):
                open_directories.append(self._listing(found))
            else:
                yield found

    def _listing(self, place: _Place) -> Iterator[FoundFile | _Place]:
        """The files of a directory, and the directories below it that are to be walked, in order."""
        entries = _entries(os.path.join(self._root, place.path))
        names = {entry.name for entry in entries}
        if names & _ENVIRONMENT and place.above:
            return
        ignoring = (
            self._with_conftest(place.path, place.ignoring) if "conftest.py" in names else place.ignoring
        )
        above = place.above | {place.real}
        for entry in entries:
            path = join(place.path, entry.name)
            if _is_dir(entry):
                real = self._enter(entry, path, place.real, above, ignoring)
                if real is not None:
                    yield _Place(path, real, above, ignoring)
            elif _is_file(entry):
                found = self._entry(entry, path, ignoring)
                if found is not None:
                    yield found

    def _enter(
        self, entry: os.DirEntry[str], path: str, parent: str, above: frozenset[str], ignoring: Ignoring
    ) -> str | None:
        """The real path of a directory that is to be walked, None for the others."""
        if entry.name in EXCLUDED or entry.name.startswith("bazel-"):
            return None
        if self._is_ignored(path, ignoring) or matches_any(self._rules.norecursedirs, path):
            return None
        if not entry.is_symlink():
            return os.path.join(parent, entry.name)
        real = os.path.realpath(entry.path)
        return real if self._inside(real) and real not in above else None

    def _entry(self, entry: os.DirEntry[str], path: str, ignoring: Ignoring) -> FoundFile | None:
        if self._is_ignored(path, ignoring):
            return None
        if entry.is_symlink() and not self._inside(os.path.realpath(entry.path)):
            return None
        return self._file(path, ignoring)

    def _is_ignored(self, path: str, ignoring: Ignoring) -> bool:
        if path in self._ignored or ignoring.ignores(path):
            return True
        return any(fnmatchcase(path, pattern) for pattern in self._ignored_globs)

    def _file(self, path: str, ignoring: Ignoring, given: bool = False) -> FoundFile | None:
        name = path.rpartition("/")[2]
        hook = ignoring.hook
        if name.endswith(".py"):
            module = given or matches_any(self._rules.python_files, path)
            doctest = self._rules.doctest_modules and name != "__main__.py"
        else:
            module = False
            doctest = matches_any(self._rules.doctest_globs, path) or (
                given and name.endswith((".txt", ".rst"))
            )
        by_hook = hook if not module and ignoring.collected_by_hook(name) else None
        if not (module or doctest or by_hook):
            return None
        return FoundFile(path, module, doctest, by_hook or (hook if module else None))

    def _inside(self, real: str) -> bool:
        return real == self._root or real.startswith(self._root.rstrip(os.sep) + os.sep)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    """The entries of a directory by name, `__init__.py` first, as pytest 8 and 9 order them.

    Raises ConfigError for a directory that can't be listed: its tests would be lost without a word.
    """
    try:
        with os.scandir(directory) as entries:
            listed = list(entries)
    except FileNotFoundError:  # it has just been removed
        return []
    except OSError as error:
        raise ConfigError(
            f"the directory {directory!a} can't be read: {error.strerror}",
            why="pytest would look for tests in it, and fail there as well",
            then="make it readable, or leave it out: `testpaths` or `norecursedirs` of pytest, or `packages`",
        ) from error
    return sorted(listed, key=lambda entry: (entry.name != "__init__.py", entry.name))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False
