"""Which files of a commit make an image, what the build sees of them, and when the hash changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.images.inputs import content_hash, inputs_of
from gpuci.images.settings import Build, build_of
from gpuci.repository.listing import Entry

BUILD = Build("ghcr.io/team/train", "Dockerfile", ".", (), (), "", "")
TREE = {
    "Dockerfile": "100644",
    "docker/Dockerfile": "100644",
    "docker/run.sh": "100755",
    "docker/link": "120000",
    "lib/a/pyproject.toml": "100644",
    "lib/a/a.py": "100644",
    "third/party": "160000",
    "uv.lock": "100644",
}


def entries(**changed: str | None) -> list[Entry]:
    modes = {**TREE, **changed}
    return [Entry(mode, f"{index:040x}", path) for index, (path, mode) in enumerate(modes.items()) if mode]


CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("the whole tree", {}, " ".join(sorted(TREE)), " ".join(sorted(set(TREE) - {"third/party"}))),
    ("a context", {"context": "docker", "file": "docker/Dockerfile"},
     "docker/Dockerfile docker/link docker/run.sh", "docker/Dockerfile docker/link docker/run.sh"),
    ("the Dockerfile elsewhere", {"context": "lib"},
     "Dockerfile lib/a/a.py lib/a/pyproject.toml", "Dockerfile lib/a/a.py lib/a/pyproject.toml"),
    ("named inputs", {"inputs": ("uv.lock", "lib/*/pyproject.toml")},
     "Dockerfile lib/a/pyproject.toml uv.lock", "Dockerfile lib/a/pyproject.toml uv.lock"),
    ("a directory", {"inputs": ("docker",)},
     "Dockerfile docker/Dockerfile docker/link docker/run.sh",
     "Dockerfile docker/Dockerfile docker/link docker/run.sh"),
    ("outside of the context it only counts", {"context": "docker", "inputs": ("docker/**", "uv.lock")},
     "Dockerfile docker/Dockerfile docker/link docker/run.sh uv.lock",
     "Dockerfile docker/Dockerfile docker/link docker/run.sh"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "counted", "seen"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_what_counts_and_what_is_seen(settings: dict[str, Any], counted: str, seen: str) -> None:
    found = inputs_of(replace(BUILD, **settings), entries())
    assert [entry.path for entry in found.counted] == counted.split()
    assert [entry.path for entry in found.seen] == seen.split()


def test_a_typing_error_and_a_submodule_are_told() -> None:
    build = replace(BUILD, inputs=("uv.lok", "third"))
    assert inputs_of(build, entries()).remarks == (
        "container.build.inputs: uv.lok matches no file of the commit",
        "the submodule third/party counts by its commit, and the build does not see its files",
    )


LINKS = ["Dockerfile", ".dockerignore", ".containerignore", "Dockerfile.dockerignore"]


@pytest.mark.parametrize("path", LINKS)
@pytest.mark.parametrize("mode", ["120000", "160000"], ids=["link", "submodule"])
def test_what_the_builder_opens_itself_is_no_link(path: str, mode: str) -> None:
    with pytest.raises(ConfigError) as caught:
        inputs_of(BUILD, entries(**{path: mode}))
    assert caught.value.what == f"{path} is no regular file"


def test_an_ignore_file_in_another_place_may_be_one() -> None:
    inputs_of(BUILD, entries(**{"lib/.dockerignore": "120000"}))


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"file": "docker/dockerfile"}, "the commit has no docker/dockerfile"),
        ({"file": "docker"}, "the commit has no docker"),
        ({"context": "dock"}, "the commit has no directory dock"),
        ({"context": "uv.lock"}, "the commit has no directory uv.lock"),
        ({"file": "docker/Dockerfile.in"}, "container.build.file is docker/Dockerfile.in"),
    ],
    ids=str,
)
def test_what_can_not_be_built(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        inputs_of(replace(BUILD, **settings), entries(**{"docker/Dockerfile.in": "100644"}))
    assert caught.value.what == what


def hash_of(build: Build, found: list[Entry]) -> str:
    return content_hash(build, inputs_of(build, found))


DIFFERENT: list[tuple[str, dict[str, Any]]] = [
    ("another Dockerfile", {"file": "docker/Dockerfile"}),
    ("another context", {"context": "docker"}),
    ("fewer inputs", {"inputs": ("uv.lock",)}),
    ("an arg", {"args": (("A", "1"),)}),
    ("another value", {"args": (("A", "2"),)}),
    ("a stage", {"target": "test"}),
    ("a platform", {"platform": "linux/arm64"}),
]


def test_each_way_to_build_has_a_hash_of_its_own() -> None:
    builds = [BUILD, *(replace(BUILD, **settings) for _, settings in DIFFERENT)]
    hashes = {hash_of(build, entries()) for build in builds}
    assert len(hashes) == len(builds)
    assert all(len(text) == 64 and set(text) <= set("0123456789abcdef") for text in hashes)


def test_the_repository_does_not_count() -> None:
    assert hash_of(replace(BUILD, repository="a.b/c"), entries()) == hash_of(BUILD, entries())


def test_an_image_that_was_built_is_found_again_by_the_next_version() -> None:
    """A change of this hash makes every team build anew: raise the format on purpose only."""
    assert hash_of(BUILD, entries()) == "a36ebf08717e071c61831ef2aded4f1a8e49540e563b693541a17fb6635c1deb"


modes = st.sampled_from(["100644", "100755", "120000"])
objects = st.text("0123456789abcdef", min_size=40, max_size=40)
names = st.text("ab\udc80é", min_size=1, max_size=3).map(lambda text: f"d/{text}")
trees = st.dictionaries(names, st.tuples(modes, objects), max_size=4)
DOCKERFILE = Entry("100644", "0" * 40, "d/Dockerfile")


@given(trees, trees)
def test_hashes_are_equal_exactly_where_all_inputs_are(
    one: dict[str, tuple[str, str]], two: dict[str, tuple[str, str]]
) -> None:
    build = replace(BUILD, file="d/Dockerfile", context="d")
    hashes = [
        hash_of(build, [DOCKERFILE, *(Entry(*facts, path) for path, facts in tree.items())])
        for tree in (one, two)
    ]
    assert (hashes[0] == hashes[1]) == (one == two)


@given(st.permutations(entries()))
def test_the_order_of_the_listing_means_nothing(shuffled: list[Entry]) -> None:
    assert hash_of(BUILD, shuffled) == hash_of(BUILD, entries())


def test_no_build() -> None:
    assert build_of({"build": None}) is None
    assert build_of({}) is None


@pytest.mark.parametrize("section", [{}, {"repository": "a"}, [], "x", 5], ids=str)
def test_a_broken_document(section: object) -> None:
    with pytest.raises(ConfigError):
        build_of({"build": section})
