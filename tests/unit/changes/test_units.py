"""The guest list of a selection is that of discovery, in trees that are really there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuci.changes import units
from gpuci.changes.model import Project, Rules, Side
from gpuci.changes.units import TooIntricate, Units, at_or_below, directories, entries
from gpuci.discovery.roots import expand
from gpuci.repository.links import destination

PARTS = st.sampled_from(["a", "b", ".c", "d d", "[x]"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
GLOBS = st.lists(
    st.sampled_from(["a", "b", "*", "**", "[ab]", "[!a]", "[^a]", "?", ".*", "*d", "[x]", "link", "l*"]),
    min_size=1,
    max_size=3,
).map("/".join)


@settings(max_examples=150)
@given(
    st.sets(PATHS, min_size=1, max_size=5),
    st.dictionaries(
        st.sampled_from(["link", "a/link"]), st.sampled_from(["a", "b", "a/b", ".c"]), max_size=2
    ),
    st.lists(GLOBS, min_size=1, max_size=4),
)
@example({"b"}, {"link": "b"}, ["link/f"])
@example({"b/a"}, {"link": "b"}, ["*/a"])
@example({"a", "b"}, {"link": "a", "a/link": "b"}, ["link/*"])
def test_what_discovery_tests_can_be_selected(
    places: set[str], targets: dict[str, str], guests: list[str]
) -> None:
    """One too many is an entry without tests; one too few would be due for no change."""
    targets = {link: target for link, target in targets.items() if not _holds(target, link)}
    links = {link: os.path.relpath(target, os.path.dirname(link) or ".") for link, target in targets.items()}
    files = {f"{place}/f": ("100644", "1") for place in places}
    files |= dict.fromkeys(links, ("120000", "1"))
    side = Side(files, {}, {link: destination(link, links) for link in links})
    with tempfile.TemporaryDirectory() as directory:
        for place in places:
            (Path(directory) / place).mkdir(parents=True, exist_ok=True)
            (Path(directory) / place / "f").touch()
        for link, text in links.items():
            (Path(directory) / link).parent.mkdir(exist_ok=True)
            (Path(directory) / link).symlink_to(text)
        tested = {path for paths in expand(Path(directory), guests).values() for path in paths}
        tested = {
            path
            for path in tested
            if any(Path(directory, path).rglob("*")) or Path(directory, path).is_file()
        }
    found = entries(guests, side, directories(side))
    assert {path for path in tested if not any(_holds(entry, path) for entry in found)} == set()


@given(st.sets(PATHS, max_size=8), PATHS | st.just("."))
def test_what_is_at_or_below_a_path(paths: set[str], path: str) -> None:
    known = sorted({one + more for one in paths for more in ("", "-x", "0", "/e")})
    assert sorted(at_or_below(path, known)) == [one for one in known if _holds(path, one)]


INTRICATE: dict[str, tuple[dict[str, Project], dict[str, str | None]]] = {
    "plugins": ({f"p{n}": Project(f"p{n}", f"p{n}", plugin=True) for n in range(3000)}, {}),
    "links to all": (
        {f"p{n}": Project(f"p{n}", f"p{n}") for n in range(3000)},
        dict.fromkeys(map(str, range(3000)), "."),
    ),
    "paths and links": (
        {f"p{n}": Project(f"p{n}", f"p{n}", paths=frozenset(f"p{m}" for m in range(60))) for n in range(300)},
        {f"p1/l{n}": "p2/x" for n in range(400)},
    ),
    "links to many directories": (
        {f"p{n}": Project(f"p{n}", f"p{n}") for n in range(3000)},
        {f"l{n}": "p1" for n in range(6000)},
    ),
}


@pytest.mark.parametrize(("projects", "links"), INTRICATE.values(), ids=INTRICATE)
def test_a_tree_that_takes_too_long_is_refused(
    projects: dict[str, Project], links: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can propose one, and it is looked at before anybody approves it."""
    monkeypatch.setattr(units, "MOST_PAIRS", 1_000_000)
    files = {f"{path}/x/y{n % 50}/f": ("100644", "1") for n, path in enumerate(projects)}
    files |= {f"p1/x/y{n}/f": ("100644", "1") for n in range(1000)}
    side = Side({**files, **dict.fromkeys(links, ("120000", "1"))}, projects, links)
    with pytest.raises(TooIntricate):
        Units(Rules(("**",)), side, side)


def _holds(entry: str, path: str) -> bool:
    return entry in (".", path) or path.startswith(f"{entry}/")
