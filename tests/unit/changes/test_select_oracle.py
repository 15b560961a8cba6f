"""The selection against another one, which is slow and plain: a closure over all packages, file by file.

Trees are rendered as texts for the selection; the oracle knows what they were made from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from gpuci.changes import toml
from gpuci.changes.model import Changes, Rules
from gpuci.changes.read import Source, compare_trees
from gpuci.changes.select import select

pytestmark = pytest.mark.skipif(not toml.READABLE, reason="Python 3.10 reads no TOML")

PLACES = (".", "a", "a/x", "a/x/deep", "b", "b/y", "c", "d")
NAMES = ("one", "two", "three", "four")


@dataclass(frozen=True)
class Package:
    """What stands in a pyproject.toml; without a name it has settings of a tool alone."""

    name: str
    needs: frozenset[str] = frozenset()
    told: bool = True
    plugin: bool = False

    def text(self) -> str:
        if not self.name:
            return "[tool.ruff]\n"
        lines = [f'[project]\nname = "{self.name}"', f"dependencies = {json.dumps(sorted(self.needs))}"]
        lines += [] if self.told else ['dynamic = ["optional-dependencies"]']
        lines += ['[project.entry-points.pytest11]\nx = "x"'] if self.plugin else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Tree:
    """Packages by place, files by path with their content, and links to places."""

    packages: dict[str, Package]
    files: dict[str, str]
    links: dict[str, str] = field(default_factory=dict)

    def listing(self) -> dict[str, tuple[str, str]]:
        """As git lists it; the id of an object is its content."""
        texts = {below(place, "pyproject.toml"): one.text() for place, one in self.packages.items()}
        found = {path: ("100644", text) for path, text in {**self.files, **texts}.items()}
        return found | {path: ("120000", _up(path) + target) for path, target in self.links.items()}

    def places(self) -> set[str]:
        return {one for path in self.listing() for one in upwards(path)[1:]}


class Blobs(Source):
    """Objects whose ids are what they hold."""

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        return {text: text.encode() for text in object_ids}


def below(place: str, name: str) -> str:
    return name if place == "." else f"{place}/{name}"


def upwards(path: str) -> list[str]:
    """The path, and all directories above it."""
    parts = [] if path == "." else path.split("/")
    return ["/".join(parts[:count]) or "." for count in range(len(parts), -1, -1)]


def _up(path: str) -> str:
    return "../" * path.count("/")


def nearest(path: str, places: set[str]) -> str | None:
    return next((one for one in upwards(path) if one in places), None)


class Side:
    def __init__(self, tree: Tree, guests: Iterable[str]) -> None:
        named = {place for place, one in tree.packages.items() if one.name}
        outermost = {one for one in tree.packages if not set(upwards(one)[1:]) & set(tree.packages)}
        self.tree = tree
        self.guests = {one for one in guests if one in tree.places()}
        bare = {one for one in self.guests if nearest(one, named | outermost) is None}
        self.units = named | outermost | bare
        self.nameless = bare | (outermost - named)


def oracle(base: Tree, head: Tree, guests: Iterable[str]) -> set[str] | None:
    """The files of the tree whose tests are due; None: all."""
    sides = Side(base, guests), Side(head, guests)
    units = sides[0].units | sides[1].units
    before, after = base.listing(), head.listing()
    direct: set[str] = set()
    for path in (one for one in {**before, **after} if before.get(one) != after.get(one)):
        unit = nearest(path, units)
        for side in sides:
            if path in side.tree.listing() or unit in side.tree.places():
                owner = nearest(path, side.units)
                if owner is None or owner in sides[0].nameless | sides[1].nameless:
                    return None
                direct.add(owner)
    if sides[0].guests - sides[1].guests:
        return None
    direct |= {unit for unit in units if set(upwards(unit)) & direct}
    uses = {(one, other) for one in units for other in units if _uses(one, other, sides, units)}
    unknown = {one for one in units if _is_unknown(one, sides)}
    due = direct | unknown if direct else set()
    while more := {one for one, other in uses if other in due} - due:
        due |= more
    tested = {path for path in after if set(upwards(path)) & sides[1].guests}
    return {path for path in tested if nearest(path, units) in due}


def _is_unknown(unit: str, sides: tuple[Side, Side]) -> bool:
    told = [side.tree.packages[unit] for side in sides if unit in side.tree.packages]
    return any(not one.name or not one.told for one in told) or any(unit in side.nameless for side in sides)


def _uses(one: str, other: str, sides: tuple[Side, Side], units: set[str]) -> bool:
    if one == other or other in upwards(one):
        return False  # what changes around counts for all inside, by itself
    return one in upwards(other) or any(_declares(one, other, side, units) for side in sides)


def _declares(one: str, other: str, side: Side, units: set[str]) -> bool:
    """By name, as a plugin of pytest, or by a link; a part of a package speaks for it."""
    packages = side.tree.packages.items()
    needs = {need for place, package in packages for need in package.needs if nearest(place, units) == one}
    named = {package.name for place, package in packages if nearest(place, units) == other}
    plugin = any(
        package.plugin and package.name for place, package in packages if nearest(place, units) == other
    )
    linked = [
        target
        for path, target in side.tree.links.items()
        if nearest(path, units) == one and (nearest(target, units) == other or target in upwards(other))
    ]
    return bool((needs & named) - {""}) or plugin or bool(linked)


PACKAGES = st.builds(
    Package,
    st.sampled_from([*NAMES, *NAMES, ""]),
    st.frozensets(st.sampled_from(NAMES), max_size=2),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([False] * 9 + [True]),
).map(lambda one: one if one.name else Package(""))
FILES = st.dictionaries(
    st.sampled_from([below(place, name) for place in PLACES for name in ("f", "g")]),
    st.sampled_from(["0", "1"]),
    min_size=3,
)
LINKS = st.dictionaries(
    st.sampled_from([below(place, "link") for place in PLACES[1:]]), st.sampled_from(PLACES[1:]), max_size=2
)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Tree, Tree]:
    """Two that are much alike."""
    base = Tree(
        draw(st.dictionaries(st.sampled_from(PLACES), PACKAGES, max_size=6)), draw(FILES), draw(LINKS)
    )
    files = {
        **base.files,
        **draw(st.dictionaries(st.sampled_from(sorted(base.files)), st.just("2"), max_size=2)),
    }
    files |= draw(
        st.dictionaries(st.sampled_from([below(place, "new") for place in PLACES]), st.just("3"), max_size=1)
    )
    packages, links = dict(base.packages), dict(base.links)
    for place in draw(st.lists(st.sampled_from(PLACES), max_size=1)):
        packages[place] = draw(PACKAGES)
    tables: list[dict[str, Any]] = [files, packages, links]
    for table in draw(st.lists(st.sampled_from(tables), max_size=1)):
        table.pop(draw(st.sampled_from([*sorted(table), ""])), None)
    return base, Tree(packages, files, links)


def selected(base: Tree, head: Tree, guests: tuple[str, ...]) -> Changes:
    compared = compare_trees(Blobs(None), base.listing(), head.listing())  # type: ignore[arg-type]
    return select(compared.changed, compared.base, compared.head, Rules(guests), compared.locks)


@settings(max_examples=300)
@given(trees(), st.lists(st.sampled_from(PLACES), min_size=1, max_size=4, unique=True))
def test_due_is_what_the_oracle_says(both: tuple[Tree, Tree], guests: list[str]) -> None:
    base, head = both
    found, expected = selected(base, head, tuple(guests)), oracle(base, head, guests)
    note(f"{found.because} {[(one.path, one.why) for one in found.tests]}")
    if expected is None or found.everything:
        assert (found.everything, expected) == (True, None)
        return
    tested = [path for path in head.listing() if any(one in upwards(path) for one in guests)]
    assert {path for path in tested if set(upwards(path)) & set(found.packages)} == expected
    assert found.affected or not expected
