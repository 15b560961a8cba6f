"""Everything together: ROOT and a configuration -> the manifest. I/O: reads the tree, imports nothing of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpuci.config.model import Config
from gpuci.discovery.collect import Collector, FileReading
from gpuci.discovery.conftests import Conftest, plugin_modules, read_conftest
from gpuci.discovery.evaluate import Evaluator
from gpuci.discovery.files import FoundFile, Walk
from gpuci.discovery.roots import RootPlan, expand, expand_testpaths, find_roots, holds, root_args
from gpuci.discovery.targets import TargetMaker
from gpuci.errors import ConfigError
from gpuci.model import Manifest, Root, SourceError, TestTarget
from gpuci.source.cache import FactsCache
from gpuci.source.facts import FileFacts
from gpuci.source.imports import ImportFinder, join
from gpuci.source.read import SourceTree, read_facts


@dataclass(frozen=True)
class _Walked:
    """A root with the files that it owns, and the line by which a conftest binds workers to devices."""

    plan: RootPlan
    args: tuple[str, ...]
    files: tuple[FoundFile, ...]
    device: str | None


def discover(
    root: Path, config: Config, *, jobs: int | None = None, cache_dir: Path | None = None
) -> Manifest:
    """Find the tests of `config.packages` below `root`.

    `jobs`: worker processes for reading (default: one per core). `cache_dir`: where facts of files are
    kept between runs (a directory outside the tree). Raises ConfigError if no entry of `packages` matches.
    """
    entries = _entries(root, config)
    tree = SourceTree(root)
    walked = [_walk(root, plan, entries, tree) for plan in find_roots(root, entries, config.node.pytest_args)]
    cache = None if cache_dir is None else FactsCache(cache_dir)
    paths = sorted({file.path for part in walked for file in part.files if file.path.endswith(".py")})
    known = read_facts(root, paths, jobs=jobs, cache=cache)
    if cache is not None:
        cache.save()
    return _manifest(root, config, walked, known)


def _entries(root: Path, config: Config) -> list[str]:
    entries = [path for paths in expand(root, config.packages).values() for path in paths]
    if not entries:
        raise ConfigError(
            f"packages: nothing below {root} matches {', '.join(config.packages) or 'an empty list'}",
            why="an entry is a directory or a glob, relative to the directory with .github/gpuci.yml",
            then="correct `packages`, or the paths given on the command line",
        )
    return entries


def _walk(root: Path, plan: RootPlan, entries: Sequence[str], tree: SourceTree) -> _Walked:
    finder = ImportFinder(tree.exists, _bases([plan]))
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
    starts = _outermost([join(plan.path, path.partition("::")[0].rstrip("/")) for path in given])
    files = {file.path: file for start in starts for file in walk.files(start)}
    owned = tuple(file for file in files.values() if _owner(file.path, entries) in plan.entries)
    return _Walked(plan, args, owned, devices[0] if devices else None)


def _conftest(path: str, facts: FileFacts, tree: SourceTree, finder: ImportFinder) -> Conftest:
    found = [finder.find(module, 0, path) for module in plugin_modules(facts)]
    plugins = [tree.facts(plugin) for plugin in found if plugin is not None]
    return read_conftest(path, facts, tuple(plugin for plugin in plugins if plugin is not None))


def _outermost(paths: Sequence[str]) -> list[str]:
    """The paths without those below another one, as pytest normalizes its arguments."""
    normal = list(dict.fromkeys(str(PurePosixPath(path)) for path in paths))
    return [path for path in normal if not any(other != path and holds(other, path) for other in normal)]


def _owner(path: str, entries: Sequence[str]) -> str:
    """The longest entry that holds a file."""
    return max((entry for entry in entries if holds(entry, path)), key=_depth, default="")


def _depth(entry: str) -> int:
    return 0 if entry == "." else entry.count("/") + 1


def _bases(plans: Sequence[RootPlan]) -> list[str]:
    """Directories in which modules may be found: `pythonpath`, roots, and their `src`."""
    bases: list[str] = []
    for plan in plans:
        base = "" if plan.path == "." else plan.path
        bases += [join(base, path) for path in plan.rules.pythonpath]
        bases += [base, join(base, "src")]
    return list(dict.fromkeys(bases))


def _manifest(root: Path, config: Config, walked: Sequence[_Walked], known: dict[str, FileFacts]) -> Manifest:
    tree = SourceTree(root, known)
    plans = [part.plan for part in walked]
    roots: list[Root] = []
    targets: list[TestTarget] = []
    for part in walked:
        others = [plan for plan in plans if plan is not part.plan]
        finder = ImportFinder(tree.exists, _bases([part.plan, *others]))
        collector = Collector(Evaluator(tree, finder), part.plan.rules)
        reader = _RootReader(part, collector, known, TargetMaker(config))
        found = list(reader.read(tree))
        roots.append(reader.root(config))
        targets += found
    return Manifest(tuple(targets), tuple(roots), _errors(roots, known))


def _errors(roots: Sequence[Root], known: dict[str, FileFacts]) -> tuple[SourceError, ...]:
    paths = [path for root in roots for path in root.files if path in known]
    found = ((path, known[path].error) for path in paths)
    return tuple(SourceError(path, *error) for path, error in found if error is not None)


class _RootReader:
    """Reads the files of one root into targets; remembers which of them are kept, and why."""

    def __init__(
        self, part: _Walked, collector: Collector, known: dict[str, FileFacts], maker: TargetMaker
    ) -> None:
        self._part = part
        self._collector = collector
        self._known = known
        self._maker = maker
        self._files: list[str] = []
        self._opaque: dict[str, str] = {}

    def read(self, tree: SourceTree) -> Iterator[TestTarget]:
        """The targets of all files, in order."""
        for file in self._part.files:
            reading = self._reading(file)
            doctest = file.doctest and self._has_doctest(file.path, tree)
            if not (reading.items or reading.opaque or doctest or file.hook):
                continue
            self._files.append(file.path)
            why = file.hook or reading.opaque or ("doctests" if doctest else None)
            if why is not None:
                self._opaque[file.path] = why
            for item in reading.items:
                yield self._maker.make(item, file.path, self._part.plan.path)
            if doctest:
                yield self._maker.file(file.path, self._part.plan.path, "doctests")

    def _reading(self, file: FoundFile) -> FileReading:
        facts = self._known.get(file.path)
        if not file.module or facts is None:
            return FileReading()
        if facts.error is not None:
            return FileReading(opaque=f"line {facts.error[0]}: {facts.error[1]}")
        return self._collector.collect(file.path)

    def _has_doctest(self, path: str, tree: SourceTree) -> bool:
        facts = self._known.get(path)
        return tree.has_prompt(path) if facts is None else facts.doctest

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



