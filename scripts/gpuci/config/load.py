"""Configuration files -> Config. The I/O of this folder: opens files, decides nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from gpuci.config.model import Config
from gpuci.config.parse import parse
from gpuci.config.paths import path_fault
from gpuci.config.resolve import Resolver
from gpuci.config.tree import (
    Branch,
    Place,
    Problem,
    ProblemsFound,
    Scalar,
    Tree,
    error_of,
    overlay,
    place_of,
    quoted,
)
from gpuci.config.tree import Path as Steps
from gpuci.config.validate import validate
from gpuci.schemas import load_schema

CONFIG_FILE = ".github/gpuci.yml"
MAX_BYTES = 1_000_000
_GIVEN_PACKAGES = Place("packages from the command line or environment")


def find_root(start: Path) -> Path:
    """The nearest directory at or above `start` that has a configuration file; else `start` itself."""
    here = Path(os.path.abspath(start))
    return next((path for path in (here, *here.parents) if os.path.isfile(path / CONFIG_FILE)), here)


def load_config(
    root: Path, files: Sequence[Path] = (), packages: str | Sequence[str] | None = None
) -> Config:
    """Read the configuration of ROOT.

    `files` lie over each other from left to right; without any, ROOT's own file is read if it exists.
    `packages` (a list, or one text with spaces between) replaces the files' setting unless it is empty.
    Raises ConfigError with all problems found, each with file, line and column.
    """
    own = root / CONFIG_FILE
    chosen = list(files) or ([own] if os.path.lexists(own) else [])
    try:
        tree, problems = _read_all(root, chosen)
    except ProblemsFound as found:
        raise error_of(found.problems) from None
    return _resolve(tree, problems, packages)


def _read_all(root: Path, files: Sequence[Path]) -> tuple[Tree | None, list[Problem]]:
    """The overlaid tree of all files (None without any) and the problems that left them readable."""
    tree: Tree | None = None
    problems: list[Problem] = []
    fatal: list[Problem] = []
    for file in files:
        try:
            over, found = _read_tree(file)
        except ProblemsFound as error:
            fatal += error.problems
            continue
        problems += found
        tree = over if tree is None else overlay(tree, over)
    if fatal:
        raise ProblemsFound([*problems, *fatal])
    if tree is not None:
        tree, found = _with_modes_file(tree, root)
        problems += found
    return tree, problems


def _read_tree(file: Path) -> tuple[Branch, list[Problem]]:
    """One file's mapping; raises ProblemsFound where it can't be read or is no mapping."""
    name = _display(file)
    tree, problems = parse(_read_bytes(file, name), name)
    if not isinstance(tree, Branch):
        raise ProblemsFound([*problems, Problem(tree.place, "the file must hold a mapping (`key: value`)")])
    return tree, problems


def _display(file: Path) -> str:
    """The file's name from where the person stands, if it lies below."""
    try:
        return str(Path(os.path.abspath(file)).relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(file)


def _read_bytes(file: Path, name: str) -> bytes:
    try:
        with open(file, "rb", opener=_open_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise _unreadable(name, "is not a regular file")
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(name, f"can't be read: {error.strerror}") from None
    except ValueError as error:
        raise _unreadable(name, f"can't be read: {error}") from None
    if len(data) > MAX_BYTES:
        raise _unreadable(name, f"is bigger than {MAX_BYTES:,} bytes: this can't be a configuration")
    return data


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting: a FIFO would wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _unreadable(name: str, message: str) -> ProblemsFound:
    return ProblemsFound([Problem(Place(name), message)])


def _with_modes_file(tree: Tree, root: Path) -> tuple[Tree, list[Problem]]:
    """The tree with the content of the file that `modes` names, if it names one."""
    modes = tree.entries.get("modes") if isinstance(tree, Branch) else None
    if not isinstance(modes, Scalar) or modes.value is None:
        return tree, []
    fault = path_fault(modes.text)
    if fault:
        raise ProblemsFound([Problem(modes.place, f"modes: {quoted(modes.text)} {fault}")])
    try:
        content, problems = _read_tree(root / modes.text)
    except ProblemsFound as found:
        hint = Problem(modes.place, f"modes: the file {quoted(modes.text)} can't be used")
        raise ProblemsFound([hint, *found.problems]) from None
    return overlay(tree, Branch(tree.place, {"modes": content}, {})), problems


def _resolve(tree: Tree | None, problems: list[Problem], packages: str | Sequence[str] | None) -> Config:
    schema = load_schema("config")
    data, found = validate(tree, schema) if tree is not None else ({}, [])
    given = packages.split() if isinstance(packages, str) else list(packages or [])
    if given:
        data["packages"] = given

    def locate(path: Steps) -> Place:
        if given and path[0] == "packages":
            return _GIVEN_PACKAGES
        return place_of(tree, path) if tree is not None else _GIVEN_PACKAGES

    resolver = Resolver(data, schema, locate)
    config = resolver.config()
    problems = _first_by_place([problems, found, resolver.problems])
    if problems:
        raise error_of(problems)
    return config


def _first_by_place(stages: Sequence[Sequence[Problem]]) -> list[Problem]:
    """The problems of all stages, less those of a value that an earlier stage has found wrong."""
    kept: list[Problem] = []
    for stage in stages:
        places = {problem.place for problem in kept}
        kept += [problem for problem in stage if problem.place not in places]
    return kept
