"""The guest list (`packages`) -> the roots that pytest is started in. I/O: reads ini files, lists globs.

Facts: `_pytest/config/findpaths.py` (locate_config, determine_setup).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gpuci.discovery.files import EXCLUDED
from gpuci.discovery.options import make_rules
from gpuci.discovery.pytest_config import CONFIG_FILES, PytestRules, read_section
from gpuci.source.imports import join

MAX_CONFIG_BYTES = 1_000_000


@dataclass(frozen=True)
class RootPlan:
    """A root, its rules, and the entries of the guest list that lie in it (ROOT-relative)."""

    path: str
    config_file: str | None
    rules: PytestRules
    entries: tuple[str, ...]


def expand(root: Path, packages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Each entry of the guest list with the directories (or files) below ROOT that it names.

    Globs name directories; what leaves ROOT through a link is left out.
    """
    return {entry: tuple(_matches(root, entry)) for entry in packages}


def _matches(root: Path, entry: str) -> Iterator[str]:
    real = os.path.realpath(root)
    if not any(character in entry for character in "*?["):
        path = str(PurePosixPath(entry))
        if os.path.exists(os.path.join(real, path)) and _inside(real, os.path.join(real, path)):
            yield path
        return
    for found in _glob(Path(real), entry):
        path = found.relative_to(real).as_posix()
        parts = set(path.split("/"))
        if found.is_dir() and not parts & EXCLUDED and _inside(real, str(found)):
            yield path


def _glob(base: Path, pattern: str) -> list[Path]:
    """The sorted matches; none for what is no pattern to this Python (`a**b` before 3.13, `/a*`)."""
    try:
        return sorted(base.glob(pattern))
    except (ValueError, NotImplementedError, IndexError):
        return []


def _inside(root: str, path: str) -> bool:
    real = os.path.realpath(path)
    return real == root or real.startswith(root.rstrip(os.sep) + os.sep)


def find_roots(root: Path, entries: Sequence[str], pytest_args: Sequence[str] = ()) -> list[RootPlan]:
    """The roots of expanded entries, in order of their paths."""
    finder = _ConfigFinder(root)
    grouped: dict[str, list[str]] = {}
    for entry in sorted(set(entries)):
        directory = entry if os.path.isdir(os.path.join(root, entry)) else str(PurePosixPath(entry).parent)
        grouped.setdefault(finder.root_of(directory), []).append(entry)
    return [
        RootPlan(path, config, make_rules(section or {}, pytest_args), tuple(members))
        for path, members in sorted(grouped.items())
        for config, section in [finder.config(path)]
    ]


class _ConfigFinder:
    """Which file configures pytest at a directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[str | None, Mapping[str, Any] | None]] = {}

    def config(self, directory: str) -> tuple[str | None, Mapping[str, Any] | None]:
        """The configuration file in a directory and its settings, (None, None) if there is none."""
        if directory not in self._known:
            self._known[directory] = self._read(directory)
        return self._known[directory]

    def _read(self, directory: str) -> tuple[str | None, Mapping[str, Any] | None]:
        for name in CONFIG_FILES:
            path = join(directory, name)
            text = self._text(path)
            section = None if text is None else read_section(name, text)
            if section is not None:
                return path, section
        return None, None

    def _text(self, path: str) -> str | None:
        full = self._root / path
        try:
            if not full.is_file() or full.stat().st_size > MAX_CONFIG_BYTES:
                return None
            return full.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def root_of(self, entry: str) -> str:
        """The nearest directory at or above an entry that configures pytest, or looks like a project.

        Else ROOT, which is the directory that `pytest ENTRY` takes when it is started there: a conftest.py
        in ROOT counts (pytest 9.2, `_pytest/config/findpaths.py`).
        """
        above = list(_upwards(entry))
        for directory in above:
            if self.config(directory)[0] is not None:
                return directory
        for name in ("pyproject.toml", "setup.py"):
            for directory in above:
                if (self._root / directory / name).is_file():
                    return directory
        return "."


def _upwards(path: str) -> Iterator[str]:
    while path not in (".", ""):
        yield path
        path = str(PurePosixPath(path).parent)
    yield "."


def root_args(plan: RootPlan, testpaths: Sequence[str]) -> tuple[str, ...]:
    """The paths, relative to the root, that pytest is given there; none where its own default applies.

    `testpaths` are the expanded ones: an entry beside them has to be named together with them.
    """
    relative = [below(plan.path, entry) for entry in plan.entries]
    if "." not in relative:
        return tuple(relative)
    beside = [
        entry for entry in relative if entry != "." and not any(holds(path, entry) for path in testpaths)
    ]
    return (*testpaths, *beside) if testpaths and beside else ()


def below(root: str, path: str) -> str:
    """A ROOT-relative path relative to a root."""
    return path if root == "." else str(PurePosixPath(path).relative_to(root))


def holds(directory: str, path: str) -> bool:
    """Whether a directory (or file) is, or is above, a path; both relative to the same place."""
    return directory in (".", path) or path.startswith(directory + "/")


def expand_testpaths(root: Path, plan: RootPlan) -> tuple[str, ...]:
    """The existing paths that `testpaths` names, relative to the root; globs are allowed, as in pytest."""
    base = root / plan.path
    found: list[str] = []
    for pattern in plan.rules.testpaths:
        if os.path.isabs(pattern):
            continue
        matches = _glob(base, pattern) if any(c in pattern for c in "*?[") else [base / pattern]
        found += [
            Path(os.path.normpath(path)).relative_to(base).as_posix() for path in matches if _fits(base, path)
        ]
    return tuple(dict.fromkeys(found))


def _fits(base: Path, path: Path) -> bool:
    normal = os.path.normpath(path)
    return os.path.exists(path) and (normal == str(base) or normal.startswith(str(base) + os.sep))
