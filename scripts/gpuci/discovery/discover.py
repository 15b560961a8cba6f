"""Everything together: ROOT and a configuration -> the manifest. I/O: reads the tree, imports none of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpuci.config.model import Config
from gpuci.discovery.collect import FileReading
from gpuci.discovery.conftests import Conftest, plugin_modules, read_conftest
from gpuci.discovery.files import FoundFile, Walk
from gpuci.discovery.reading import ReadFile, RootContext, read_files
from gpuci.discovery.roots import RootPlan, expand, expand_testpaths, find_roots, holds, root_args
from gpuci.discovery.targets import TargetMaker
from gpuci.errors import ConfigError
from gpuci.model import Manifest, Root, SourceError, TestTarget
from gpuci.source.cache import FactsCache
from gpuci.source.facts import FileFacts
from gpuci.source.imports import ImportFinder, join
from gpuci.source.read import SourceTree, quick


@dataclass(frozen=True)
class _Walked:
    """A root with the files that it owns, and the line by which a conftest binds workers to devices."""

    plan: RootPlan
    args: tuple[str, ...]
    files: tuple[FoundFile, ...]
    device: str | None

    @property
    def modules(self) -> list[str]:
        """The Python files."""
        return [file.path for file in self.files if file.path.endswith(".py")]


WORTH_KEEPING = 300  # files; fewer are read in a tenth of a second


def discover(
    root: Path, config: Config, *, jobs: int | None = None, cache_dir: Path | None = None
) -> Manifest:
    """Find the tests of `config.packages` below `root`.

    `jobs`: worker processes for reading (default: one per core). `cache_dir`: where facts of files are
    kept between runs (a directory outside the tree). Raises ConfigError if no entry of `packages` matches.
    """
    with quick():
        return _discover(root, config, jobs, cache_dir)


def _discover(root: Path, config: Config, jobs: int | None, cache_dir: Path | None) -> Manifest:
    entries = _entries(root, config)
    tree = SourceTree(root)
    plans = find_roots(root, entries, config.node.pytest_args)
    cache = None if cache_dir is None else FactsCache(cache_dir, WORTH_KEEPING)
    maker = TargetMaker(config)
    readers: list[_RootReader] = []
    targets: list[TestTarget] = []
    for plan in plans:
        walked = _walk(root, plan, entries, tree)
        context = RootContext(str(root), plan.rules, _bases(plan, plans))
        readers.append(_RootReader(walked, maker))
        targets += readers[-1].read(tree, read_files(context, walked.modules, jobs=jobs, cache=cache))
    if cache is not None:
        cache.save()
    errors = [error for reader in readers for error in reader.errors]
    return Manifest(tuple(targets), tuple(reader.root(config) for reader in readers), tuple(errors))


def _entries(root: Path, config: Config) -> list[str]:
    entries = [path for paths in expand(root, config.packages).values() for path in paths]
    if not entries:
        raise ConfigError(
            f"packages: nothing below {root} matches {', '.join(config.packages) or 'an empty list'}",
            why="an entry is a directory or a glob, relative to the directory with .github/gpuci.yml",
            then="correct `packages`, or what was given in its place; on GitHub also the input `root`",
        )
    return entries


def _walk(root: Path, plan: RootPlan, entries: Sequence[str], tree: SourceTree) -> _Walked:
    finder = ImportFinder(tree.names, _bases(plan, [plan]))
    conftests: dict[str, Conftest | None] = {}
    devices: list[str] = []

    def conftest_at(path: str) -> Conftest | None:
        if path not in conftests:
            facts = tree.facts(path)
            conftests[path] = None if facts is None else _conftest(path, facts, tree, finder)
            if facts is not None and facts.device_line:
                devices.append(f"{path}:{facts.device_line}")
        return conftests[path]

    testpaths = expand_testpaths(root, plan)
    args = root_args(plan, testpaths)
    walk = Walk(root, plan.path, plan.rules, conftest_at)
    given = (*plan.rules.args, *args) or testpaths or (".",)
    starts = [str(PurePosixPath(join(plan.path, path.partition("::")[0]))) for path in given]
    files = {file.path: file for start in starts for file in walk.files(start)}
    owned = tuple(file for file in files.values() if _owner(file.path, entries) in plan.entries)
    return _Walked(plan, args, owned, devices[0] if devices else None)


def _conftest(path: str, facts: FileFacts, tree: SourceTree, finder: ImportFinder) -> Conftest:
    found = [finder.find(module, level, path) for module, level in plugin_modules(facts)]
    plugins = [tree.facts(plugin) for plugin in found if plugin is not None]
    return read_conftest(path, facts, tuple(plugin for plugin in plugins if plugin is not None))


def _owner(path: str, entries: Sequence[str]) -> str:
    """The longest entry that holds a file."""
    return max((entry for entry in entries if holds(entry, path)), key=_depth, default="")


def _depth(entry: str) -> int:
    return 0 if entry == "." else entry.count("/") + 1


def _bases(own: RootPlan, plans: Sequence[RootPlan]) -> tuple[str, ...]:
    """Where modules may be found: `pythonpath`, roots, and their `src`; the own root's first."""
    bases: list[str] = []
    for plan in [own, *plans]:
        base = "" if plan.path == "." else plan.path
        bases += [join(base, path) for path in plan.rules.pythonpath]
        bases += [base, join(base, "src")]
    return tuple(dict.fromkeys(bases))


class _RootReader:
    """Reads the files of one root into targets; remembers which of them are kept, and why."""

    def __init__(self, part: _Walked, maker: TargetMaker) -> None:
        self._part = part
        self._maker = maker
        self._files: list[str] = []
        self._opaque: dict[str, str] = {}
        self.errors: list[SourceError] = []

    def read(self, tree: SourceTree, modules: Iterator[ReadFile]) -> Iterator[TestTarget]:
        """The targets of all files, in order; `modules` are the Python files among them."""
        for file in self._part.files:
            if file.path.endswith(".py"):
                known = next(modules)
                doctest = file.doctest and known.doctest
            else:
                known = ReadFile(file.path, FileReading(), None, False)
                doctest = file.doctest and tree.has_prompt(file.path)
            yield from self._targets(file, known, doctest)

    def _targets(self, file: FoundFile, known: ReadFile, doctest: bool) -> Iterator[TestTarget]:
        reading = known.reading if file.module else FileReading()
        why = file.hook or reading.opaque or ("doctests" if doctest else None)
        if not reading.items and why is None:
            return
        self._files.append(file.path)
        if why is not None:
            self._opaque[file.path] = why
        if known.error is not None:
            self.errors.append(SourceError(file.path, *known.error))
        for item in reading.items:
            yield self._maker.make(item, file.path, self._part.plan.path)
        if doctest:
            yield self._maker.file(file.path, self._part.plan.path, "doctests")

    def root(self, config: Config) -> Root:
        """The root as the manifest holds it."""
        isolation, because = gpu_isolation(config.node.gpu_isolation, self._part.device)
        plan = self._part.plan
        return Root(
            plan.path,
            plan.config_file,
            self._part.args,
            tuple(self._files),
            dict(self._opaque),
            isolation,
            because,
        )


def gpu_isolation(setting: str, device: str | None) -> tuple[str, str]:
    """How a root's processes see GPUs, and why. `device`: where a conftest binds workers to devices."""
    if setting != "auto":
        return setting, "node.gpu-isolation"
    if device is not None:
        return "worker-index", f"{device} puts each worker on a device of its own"
    return "mask", "no conftest.py puts workers on devices"
