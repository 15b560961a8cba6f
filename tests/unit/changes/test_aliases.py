"""By which names a path of a tree is reached."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.changes.aliases import MOST, Aliases
from gpuci.repository.links import destination


@pytest.mark.parametrize(
    ("links", "path", "names"),
    [
        ({}, "a/b", ["a/b"]),
        ({"l": "a"}, "a/b", ["a/b", "l/b"]),
        ({"l": "a/b"}, "a/b", ["a/b", "l"]),
        ({"l": "a/b"}, "a/bc", ["a/bc"]),
        ({"l": None}, "a", ["a"]),
        ({"x/all": "."}, "a", ["a", "x/all/a"]),
        ({"l": "a/c", "m": "a"}, "c", ["c"]),
        ({"a/l": "c", "m": "a"}, "c/x", ["a/l/x", "c/x", "m/l/x"]),
    ],
    ids=["none", "directory", "file", "a beginning of a name", "out of the tree", "of all", "others", "two"],
)
def test_names(links: dict[str, str | None], path: str, names: list[str]) -> None:
    found = Aliases(links).of(path)
    assert (found[0], sorted(found)) == (path, names)


def test_the_links_of_both_trees_count() -> None:
    assert sorted(Aliases({"l": "a"}, {"l": "b"}).of("a/x")) == ["a/x", "l/x"]
    assert sorted(Aliases({"l": "a"}, {"l": "b"}).of("b/x")) == ["b/x", "l/x"]


def test_a_link_into_a_submodule_is_a_name_of_it() -> None:
    found = Aliases({"l": "vendor/k/src", "m": "vendor/kit"})
    assert found.of("vendor/k") == ["vendor/k"]
    assert found.of("vendor/k", submodule=True) == ["vendor/k", "l"]


def test_links_in_a_circle_come_to_an_end() -> None:
    links = {f"{one}/to-{other}": other for one in "abcdef" for other in "abcdef"}
    assert len(Aliases(links).of("a/x")) == MOST


@given(
    st.dictionaries(
        st.sampled_from(["l", "m", "a/l", "a/b/l", "c/l"]), st.sampled_from(["a", "a/b", "c", "a/b/f", "."])
    )
)
def test_each_name_leads_to_the_path(targets: dict[str, str]) -> None:
    """By the function that follows links, and no name by one link is missing."""
    texts = {link: os.path.relpath(target, Path(link).parent) for link, target in targets.items()}
    found = Aliases(dict(targets)).of("a/b/f")
    assert {destination(name, texts) for name in found} == {"a/b/f"}
    for link, target in targets.items():
        name = os.path.normpath(f"{link}/{os.path.relpath('a/b/f', target)}")
        if not os.path.relpath("a/b/f", target).startswith(".."):
            assert name in found
