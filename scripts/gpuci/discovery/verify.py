"""What is wrong between a configuration and its tree. I/O: walks the tree; the checks are on values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from gpuci.config.model import DEFAULT_MARKERS, Config
from gpuci.discovery.files import FoundFile, Walk
from gpuci.discovery.modes import path_parts
from gpuci.discovery.pytest_config import PytestRules
from gpuci.discovery.roots import RootPlan, expand, find_roots, holds
from gpuci.model import Manifest, TestTarget
from gpuci.source.facts import FileFacts
from gpuci.source.read import SourceTree

# Marks that pytest and its common plugins know without registration.
BUILTIN_MARKS = frozenset(
    [
        "parametrize",
        "skip",
        "skipif",
        "xfail",
        "usefixtures",
        "filterwarnings",
        "tryfirst",
        "trylast",
        "timeout",
        "runs_on",
        "asyncio",
        "anyio",
        "xdist_group",
        "flaky",
    ]
)
# Words in the name or description of a registered mark that speak of GPUs or of how a node is shared.
_TELLING = (
    "gpu",
    "cuda",
    "device",
    "distributed",
    "nightly",
    "serial",
    "sequential",
    "isolated",
    "exclusive",
)


@dataclass(frozen=True)
class Problem:
    """Something a person should look at; `path` is ROOT-relative, "" is the configuration itself."""

    path: str
    line: int
    message: str


def verify(root: Path, config: Config, manifest: Manifest) -> list[Problem]:
    """All problems, in the order: configuration, files that can't be read, files out of reach, marks."""
    tree = SourceTree(root)
    expanded = expand(root, config.packages)
    plans = find_roots(root, [path for paths in expanded.values() for path in paths], config.node.pytest_args)
    candidates = list(_all_test_files(root))
    conftests = _support_files(root, tree, manifest)
    return [
        *_empty_entries(expanded),
        *_empty_modes(config, manifest),
        *(Problem(error.path, error.line, f"is not Python: {error.message}") for error in manifest.errors),
        *_out_of_reach(candidates, [path for paths in expanded.values() for path in paths]),
        *_marks_without_effect(conftests),
        *_unregistered(manifest, plans, conftests),
        *_registered_but_unknown(config, plans),
        *_numbers_not_read(config, manifest),
        *_unused_rules(config, manifest),
    ]


def _empty_entries(expanded: dict[str, tuple[str, ...]]) -> Iterator[Problem]:
    for entry, paths in expanded.items():
        if not paths:
            yield Problem("", 0, f"packages: {entry!r} matches nothing")


def _empty_modes(config: Config, manifest: Manifest) -> Iterator[Problem]:
    known = [path_parts(target.nodeid) for target in manifest.targets]
    known += [path_parts(path) for path in manifest.files]
    for path, mode in config.modes:
        parts = path_parts(path)
        if not any(other[: len(parts)] == parts for other in known):
            yield Problem("", 0, f"modes: {mode}: {path!r} matches no test")


def _all_test_files(root: Path) -> Iterator[FoundFile]:
    """The files below ROOT with the names of test files by pytest's defaults."""
    rules = PytestRules(doctest_globs=())
    return Walk(root, ".", rules, lambda path: None).files(".")


def _out_of_reach(candidates: Iterable[FoundFile], entries: list[str]) -> Iterator[Problem]:
    for file in candidates:
        if not any(holds(entry, file.path) for entry in entries):
            yield Problem(file.path, 1, "is named like a test file, but no entry of packages holds it")


def _support_files(root: Path, tree: SourceTree, manifest: Manifest) -> dict[str, FileFacts]:
    """conftest.py and __init__.py of all directories that hold test files, or are above one."""
    directories = {directory for path in manifest.files for directory in _above(path)}
    paths = (
        f"{directory}/{name}" if directory else name
        for directory in sorted(directories)
        for name in ("conftest.py", "__init__.py")
        if name in tree.names(directory)
    )
    found = {path: tree.facts(path) for path in paths}
    return {path: facts for path, facts in found.items() if facts is not None}


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _marks_without_effect(files: dict[str, FileFacts]) -> Iterator[Problem]:
    """`pytestmark` counts in test modules and classes only, in every pytest from 7.4 to 9.2."""
    for path, facts in files.items():
        for binding in facts.bindings:
            if binding.name == "pytestmark" and binding.kind in ("assign", "augment"):
                name = path.rpartition("/")[2]
                yield Problem(
                    path, binding.line, f"pytestmark in {name} has no effect: pytest ignores it there"
                )


def _unregistered(
    manifest: Manifest, plans: list[RootPlan], files: dict[str, FileFacts]
) -> Iterator[Problem]:
    """Marks that tests carry and nobody registers: once per root and mark, where roots register any."""
    for plan in plans:
        by_conftest = {
            name for path, facts in files.items() if holds(plan.path, path) for name in facts.registered
        }
        registered = {*plan.rules.markers, *by_conftest}
        seen = set(BUILTIN_MARKS) | registered
        for target in manifest.targets if registered else ():
            for marker in target.markers if target.root == plan.path else ():
                if marker.name not in seen:
                    seen.add(marker.name)
                    line = marker.line or target.line
                    yield Problem(target.test_path, line, f"mark {marker.name!r} is registered nowhere")


def _registered_but_unknown(config: Config, plans: list[RootPlan]) -> Iterator[Problem]:
    """Marks that an ini file registers, that seem to speak of GPUs or modes, and that no rule knows."""
    for plan in plans:
        for name in plan.rules.markers:
            telling = any(word in name.lower() for word in _TELLING)
            if telling and name not in BUILTIN_MARKS and not _has_rule(config, name):
                where = plan.config_file or ""
                yield Problem(where, 1, f"mark {name!r} is registered, but `markers` says nothing of it")


def _has_rule(config: Config, name: str) -> bool:
    return any(fnmatchcase(name, rule.name) for rule in config.markers)


def _numbers_not_read(config: Config, manifest: Manifest) -> Iterator[Problem]:
    """`gpu(2)` means what `gpu` means: a rule goes by the mark's name alone. Once per file and number."""
    wide = [rule.name for rule in config.markers if rule.gpus]
    seen = set()
    for target in manifest.targets:
        for marker in target.markers:
            number = next((arg for arg in marker.args if arg.isdecimal()), None)
            key = (target.test_path, marker.name, number)
            if number and key not in seen and any(fnmatchcase(marker.name, name) for name in wide):
                seen.add(key)
                yield Problem(
                    target.test_path,
                    marker.line or target.line,
                    f"mark {marker.name}({number}): the number is not read; "
                    f"use a mark with its own rule, such as `{marker.name}_{number}: {number}` in `markers`",
                )


def _unused_rules(config: Config, manifest: Manifest) -> Iterator[Problem]:
    """Rules of the configuration's own (not the built-in ones) for marks that no test carries."""
    used = {name for target in manifest.targets for name in _names(target)}
    for rule in config.markers:
        if rule not in DEFAULT_MARKERS and not any(fnmatchcase(name, rule.name) for name in used):
            yield Problem("", 0, f"markers: no test carries a mark {rule.name!r}")


def _names(target: TestTarget) -> set[str]:
    return {marker.name for marker in target.markers}
