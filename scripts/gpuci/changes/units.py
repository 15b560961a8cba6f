"""Directories that change and depend as a whole: projects, and entries of `packages` in no project. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuci.changes.model import Project, Rules, Side
from gpuci.repository.globs import above, holds, names

BARE = "no pyproject.toml tells what it depends on"


def directories(side: Side) -> frozenset[str]:
    """All directories of a tree, links to directories too."""
    real = {directory for path in side.files for directory in above(path.rpartition("/")[0])}
    return frozenset(real | {path for path, target in side.links.items() if target in real})


def entries(packages: Sequence[str], side: Side) -> list[str]:
    """What the guest list names in a tree, as discovery expands it: a glob names directories, anything else
    what is there."""
    there = directories(side)
    found: list[str] = []
    for entry in packages:
        if any(character in entry for character in "*?["):
            found += sorted(path for path in there if path != "." and names(entry, path))
        elif entry in there or entry in side.files:
            found.append(entry)
    return list(dict.fromkeys(found))


class _Half:
    """The units of one of the two trees."""

    def __init__(self, rules: Rules, side: Side) -> None:
        self.files = side.files
        self.directories = directories(side)
        self.entries = entries(rules.packages, side)
        self.bare = {
            entry for entry in self.entries if not any(path in side.projects for path in above(entry))
        }
        self.units = self.bare | set(side.projects)

    def owners(self, path: str) -> list[str]:
        """The unit around a path, or else those below it (it is a submodule)."""
        around = next((directory for directory in above(path) if directory in self.units), None)
        return [around] if around is not None else sorted(unit for unit in self.units if holds(path, unit))


class Units:
    """All units of two trees; `paths` are sorted. `depends` maps a unit to what it uses of the others."""

    def __init__(self, rules: Rules, base: Side, head: Side) -> None:
        self._halves = _Half(rules, base), _Half(rules, head)
        self.entries = self._halves[1].entries
        self._all = self._halves[0].units | self._halves[1].units
        self.paths = sorted(self._all)
        self.unknown = dict.fromkeys(sorted(self._halves[0].bare | self._halves[1].bare), BARE)
        self.depends: dict[str, dict[str, str]] = {path: {} for path in self.paths}
        for side in (base, head):
            self._by_name_and_path(side.projects)
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
        return [unit for unit in self.paths if holds(path, unit)]

    def _by_name_and_path(self, projects: Mapping[str, Project]) -> None:
        named: dict[str, list[str]] = {}
        for project in projects.values():
            named.setdefault(project.name, []).append(project.path)
        for project in projects.values():
            if project.unknown:
                self.unknown.setdefault(project.path, project.unknown)
            for name in sorted(project.needs - {""}):
                self._use(project.path, named.get(name, ()), f"needs {name}")
            for path in sorted(project.paths):
                self._use(project.path, self._at(path), f"names the directory {path}")

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
            if not holds(other, unit):
                self.depends[unit].setdefault(other, why)
