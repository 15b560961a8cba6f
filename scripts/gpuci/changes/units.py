"""Directories that change and depend as a whole: projects, and entries of `packages` in no project. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuci.changes.model import Project, Rules, Side
from gpuci.repository.globs import above, holds, names

BARE = "no pyproject.toml tells what it depends on"


def entries(packages: Sequence[str], side: Side) -> list[str]:
    """The directories and files that the guest list names in a tree, as discovery expands it: a glob names
    directories, also by way of a link; anything else names what is there."""
    directories = {directory for path in side.files for directory in above(path.rpartition("/")[0])}
    directories |= {path for path, target in side.links.items() if target in directories}
    found: list[str] = []
    for entry in packages:
        if any(character in entry for character in "*?["):
            found += sorted(path for path in directories if path != "." and names(entry, path))
        elif entry in directories or entry in side.files:
            found.append(entry)
    return list(dict.fromkeys(found))


class Units:
    """All units of two trees; `paths` are sorted. `depends` maps a unit to what it uses of the others."""

    def __init__(self, rules: Rules, base: Side, head: Side) -> None:
        sides = (base, head)
        projects = {path for side in sides for path in side.projects}
        self.entries = entries(rules.packages, head)
        named = {*self.entries, *entries(rules.packages, base)}
        bare = {entry for entry in named if not projects & set(above(entry))}
        self._all = projects | bare
        self.paths = sorted(self._all)
        self.unknown = dict.fromkeys(bare, BARE)
        self.depends: dict[str, dict[str, str]] = {path: {} for path in self.paths}
        for side in sides:
            self._by_name_and_path(side.projects)
            self._by_links(side.links)

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
