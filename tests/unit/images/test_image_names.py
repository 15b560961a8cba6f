"""Names of images, and the name spaces: what one run pushes, another takes only where it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.images.names import Repository, by_digest, places, repository_of, tag_of

DIGEST = "sha256:" + "0123456789abcdef" * 4

NAMES = [
    ("ghcr.io/team/train", "ghcr.io", "team/train"),
    ("127.0.0.1:5000/a", "127.0.0.1:5000", "a"),
    ("localhost/a/b/c", "localhost", "a/b/c"),
    ("registry:5000/a", "registry:5000", "a"),
    ("a.b/x.y/z_w/p--q", "a.b", "x.y/z_w/p--q"),
]


@pytest.mark.parametrize(("text", "registry", "path"), NAMES, ids=[name for name, _, _ in NAMES])
def test_a_repository(text: str, registry: str, path: str) -> None:
    assert repository_of(text) == Repository(registry, path)
    assert str(repository_of(text)) == text
    assert by_digest(f"{text}@{DIGEST}") == (Repository(registry, path), DIGEST)


NO_NAMES = [
    "", "train", "team/train", "ghcr.io", "ghcr.io/", "ghcr.io/Team/train", "ghcr.io/team/train:main",
    "ghcr.io/team//train", "ghcr.io/../train", "ghcr.io/team/train\n", "-ghcr.io@x/y", "https://ghcr.io/a/b",
    "user@ghcr.io/a/b", "ghcr.io/a/b?x=1", "ghcr.io/a/b#c", "ghcr.io/" + "a" * 255, "ghcr.io:x/a",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_NAMES)
def test_no_repository(text: str) -> None:
    with pytest.raises(ConfigError):
        repository_of(text)


@pytest.mark.parametrize(
    "text",
    ["", "ghcr.io/a/b", "ghcr.io/a/b:main", f"ghcr.io/a/b:main@{DIGEST}", DIGEST, f"a@{DIGEST}", "/x.sqsh",
     f"ghcr.io/a/b@{DIGEST}\n", f"ghcr.io/a/b@{DIGEST.upper()}", "ghcr.io/a/b@sha256:12"],
)  # fmt: skip
def test_no_image_by_digest(text: str) -> None:
    with pytest.raises(ConfigError):
        by_digest(text)


@pytest.mark.parametrize("text", ["", "-x", ".x", "a/b", "a b", "x" * 129, "a:b", "main\n"])
def test_no_tag(text: str) -> None:
    with pytest.raises(ConfigError):
        tag_of(text)


OWN, OTHERS = Repository("ghcr.io", "team/train"), Repository("ghcr.io", "team/train/pr")


def test_the_default_branch_takes_only_what_it_pushed_itself() -> None:
    found = places(OWN, default_branch=True)
    assert (found.look, found.push) == ((OWN,), OWN)


def test_other_commits_push_beside_and_look_in_both() -> None:
    found = places(OWN, default_branch=False)
    assert (found.look, found.push) == ((OWN, OTHERS), OTHERS)


def test_docker_hub_has_names_of_two_parts() -> None:
    assert str(places(repository_of("docker.io/team/train"), default_branch=False).push) == (
        "docker.io/team/train-pr"
    )


@pytest.mark.parametrize("name", ["ghcr.io/team/train/pr", "docker.io/team/train-pr"])
@pytest.mark.parametrize("default_branch", [True, False])
def test_the_name_space_of_others_can_not_be_the_repository(name: str, default_branch: bool) -> None:
    with pytest.raises(ConfigError):
        places(repository_of(name), default_branch=default_branch)
    assert repository_of(name).of_others


parts = st.from_regex(r"[a-z0-9]{1,3}(-pr)?", fullmatch=True)
registries = st.sampled_from(["ghcr.io", "docker.io", "127.0.0.1:5000"])


@given(registries, st.lists(parts, min_size=1, max_size=3), st.booleans())
def test_nothing_that_others_push_is_ever_looked_at(
    registry: str, path: list[str], default_branch: bool
) -> None:
    repository = Repository(registry, "/".join(path))
    if repository.of_others:
        return
    pushed = places(repository, default_branch=False).push
    assert pushed.of_others
    assert not repository.of_others
    assert pushed not in places(repository, default_branch=True).look
    assert not places(repository, default_branch=True).push.of_others
