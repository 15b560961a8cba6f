"""Directories that change and depend as a whole: projects, and entries of `packages` in no project. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from gpuci.changes.model import Project, Rules, Side
from gpuci.errors import ConfigError
from gpuci.repository.globs import above, holds, names

BARE = "no pyproject.toml tells what it depends on"
# Of projects, links and places that are looked at together: ten seconds. 200 packages are some thousands.
MOST_PAIRS = 5_000_000


class TooIntricate(ConfigError):
    """A tree that takes too long to look at."""

    def __init__(self) -> None:
        super().__init__(
            "the tree has too many projects and links to tell who uses what",
            why="it was made to exhaust who reads it, or it is far larger than any repository that is known",
            then="look at the links and project files that the commit adds",
        )


def directories(side: Side) -> frozenset[str]:
    """All directories of a tree, and those that are reached by a link."""
    real = {directory for path in side.files for directory in above(path.rpartition("/")[0])}
    links = {link: target for link, target in side.links.items() if target is not None and target in real}
    known = sorted({*real, *links})
    linked: set[str] = set()
    for link, target in links.items():
        if not holds(target, link):
            linked.update(link + directory[len(target) :] for directory in at_or_below(target, known))
        if len(linked) > MOST_PAIRS:
            raise TooIntricate()
    return frozenset(real | linked | set(links))


def at_or_below(path: str, paths: Sequence[str]) -> Sequence[str]:
    """Of sorted paths those that are `path` or below it."""
    if path == ".":
        return paths
    at = bisect_left(paths, path)
    found = paths[bisect_left(paths, f"{path}/") : bisect_left(paths, f"{path}0")]  # `0` comes next to `/`
    return [path, *found] if paths[at : at + 1] == [path] else found


def entries(packages: Sequence[str], side: Side, there: frozenset[str]) -> list[str]:
    """What the guest list names in a tree, as discovery expands it: a glob names directories, anything else
    what is there."""
    found: list[str] = []
    for entry in packages:
        if any(character in entry for character in "*?["):
            top = {"."} if entry.replace("/", "").strip("*") else set()  # `**` alone names ROOT too
            found += sorted(path for path in there - top if names(entry, path))
        elif entry in there or entry in side.files or _is_behind_a_link(entry, side):
            found.append(entry)
    return list(dict.fromkeys(found))


def _is_behind_a_link(path: str, side: Side) -> bool:
    return any(
        target is not None and path.startswith(f"{link}/") and target + path[len(link) :] in side.files
        for link, target in side.links.items()
    )


def _packages(side: Side) -> set[str]:
    """The projects that count for themselves. One without a name inside of another is a part of that one: a
    fixture, or the settings of a tool."""
    return {
        path
        for path, project in side.projects.items()
        if project.name or not any(one in side.projects for one in list(above(path))[1:])
    }


class _Half:
    """The units of one of the two trees."""

    def __init__(self, rules: Rules, side: Side) -> None:
        self.files = side.files
        self.directories = directories(side)
        self.entries = entries(rules.packages, side, self.directories)
        packages = _packages(side)
        self.bare = {entry for entry in self.entries if not any(path in packages for path in above(entry))}
        self.units = self.bare | packages
        self.nameless = self.bare | {path for path in packages if not side.projects[path].name}

    def owners(self, path: str) -> list[str]:
        """The unit around a path, or else those below it (it is a submodule)."""
        around = next((directory for directory in above(path) if directory in self.units), None)
        return [around] if around is not None else sorted(unit for unit in self.units if holds(path, unit))


class Units:
    """All units of two trees; `paths` are sorted. `depends` maps a unit to what it uses of the others.

    `nameless` can't be named by those that need them, `gone` are entries of the guest list that the change
    took away. Raises TooIntricate.
    """

    def __init__(self, rules: Rules, base: Side, head: Side) -> None:
        self._pairs = 0
        self._halves = _Half(rules, base), _Half(rules, head)
        before, after = self._halves
        self.entries = after.entries
        self.gone = [entry for entry in before.entries if entry not in after.entries]
        self.nameless = before.nameless | after.nameless
        self._all = before.units | after.units
        self.paths = sorted(self._all)
        self.unknown = dict.fromkeys(sorted(before.bare | after.bare), BARE)
        self.depends: dict[str, dict[str, str]] = {path: {} for path in self.paths}
        self._by_place()
        for side in (base, head):
            self._by_name(side.projects)
            self._by_path(side)
            self._by_links(side.links)

    def homes(self, path: str) -> list[str]:
        """The units that a changed path belongs to in either tree; none if in one of them it is in no unit.

        A directory that the change makes a package counts as what it was: who uses it may not say so yet.
        """
        unit = self.of(path)
        found: list[str] = []
        for half in self._halves:
            if path in half.files or unit in half.directories:
                owners = half.owners(path)
                if not owners:
                    return []
                found += owners
        return list(dict.fromkeys(found))

    def of(self, path: str) -> str | None:
        """The unit that a path belongs to: the nearest one at or above it."""
        return next((directory for directory in above(path) if directory in self._all), None)

    def below(self, path: str) -> list[str]:
        """The units at or below a path."""
        return list(at_or_below(path, self.paths))

    def _by_place(self) -> None:
        """Who is around can read what is inside: it may be a fixture that only looks like a package."""
        for unit in self.paths:
            around = None if unit == "." else self.of(unit.rpartition("/")[0])
            if around is not None:
                self._use(around, [unit], f"has {unit} inside")

    def _by_name(self, projects: Mapping[str, Project]) -> None:
        named: dict[str, list[str]] = {}
        for project in projects.values():
            for name in {project.name, *project.aliases}:
                named.setdefault(name, []).append(project.path)
        for project in projects.values():
            unit = self._unit(project.path)
            if project.unknown and unit == project.path:
                self.unknown.setdefault(unit, project.unknown)
            for name in sorted(project.needs - {""}):
                self._use(unit, map(self._unit, named.get(name, ())), f"needs {name}")
            if project.plugin:
                for user in self.paths:
                    self._use(user, [unit], "has pytest, which loads the plugin")

    def _by_path(self, side: Side) -> None:
        for project in side.projects.values():
            for path in sorted(project.paths):
                why = f"names the directory {path}"
                self._use(self._unit(project.path), self._at(path), why)
                self._count(len(side.links))
                for link, target in side.links.items():
                    if target is not None and (holds(link, path) or holds(path, link)):
                        self._use(self._unit(project.path), self._at(target), why)

    def _unit(self, path: str) -> str:
        """The unit that a project is, or is a part of."""
        return self.of(path) or path

    def _by_links(self, links: Mapping[str, str | None]) -> None:
        for path, target in links.items():
            unit = self.of(path)
            if unit is not None and target is not None:
                self._use(unit, self._at(target), f"has the link {path}")

    def _at(self, path: str) -> list[str]:
        """What a path can mean: the unit that it is in, and all below it."""
        around = self.of(path)
        return [*([around] if around is not None else []), *self.below(path)]

    def _use(self, unit: str, used: Iterable[str], why: str) -> None:
        """A unit around counts already: what changes there counts for all inside."""
        for other in used:
            self._count(1)
            if not holds(other, unit):
                self.depends[unit].setdefault(other, why)

    def _count(self, pairs: int) -> None:
        self._pairs += pairs
        if self._pairs > MOST_PAIRS:
            raise TooIntricate()
