"""Names of images: registry, name, tag, digest; and which name space is whose. Pure.

The grammar is that of the OCI distribution specification 1.1 ("Pulling manifests").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuci.errors import ConfigError

_HOST = r"(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9-]+(?=:))(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"(?P<host>{_HOST})/(?P<path>{_PART}(?:/{_PART})*)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DOCKER_HUB = "docker.io"
_OTHERS = "pr"


@dataclass(frozen=True)
class Repository:
    """Where images of one name are kept: `ghcr.io` and `team/train`."""

    registry: str
    path: str

    def __str__(self) -> str:
        return f"{self.registry}/{self.path}"

    @property
    def of_others(self) -> bool:
        """Whether this is the name space that `places` keeps for commits beside the default branch."""
        return self == _beside(self)


@dataclass(frozen=True)
class Places:
    """Where an image with a known tag may lie, in the order of looking, and where a new one is pushed."""

    look: tuple[Repository, ...]
    push: Repository


def repository_of(text: str) -> Repository:
    """The repository that `container.build.repository` names; raises ConfigError."""
    match = _NAME.fullmatch(text)
    if not match or len(text) > 255:
        raise ConfigError(
            f"{text!r} names no repository of images",
            then="write the registry and the name, in lower case and without a tag: ghcr.io/team/train",
        )
    return Repository(match["host"], match["path"])


def by_digest(reference: str) -> tuple[Repository, str]:
    """Repository and digest of `registry/name@sha256:…`; raises ConfigError."""
    name, _, digest = reference.partition("@")
    if not _DIGEST.fullmatch(digest):
        raise ConfigError(
            f"{reference!r} names no image by its digest",
            why="a tag can change under a run",
            then="write registry/name@sha256: and 64 hex digits",
        )
    return repository_of(name), digest


def is_digest(text: str) -> bool:
    """Whether this is `sha256:` and 64 hex digits."""
    return _DIGEST.fullmatch(text) is not None


def tag_of(text: str) -> str:
    """A tag that registries take; raises ConfigError."""
    if not _TAG.fullmatch(text):
        raise ConfigError(
            f"{text!r} is no tag of an image",
            then="write at most 128 letters, digits and `._-`, such as main",
        )
    return text


def places(repository: Repository, *, default_branch: bool) -> Places:
    """Where a run looks and pushes.

    The default branch never looks where other commits push: who writes a Dockerfile decides what its image
    holds, whatever the tag says. Others look there too, so that a pull request builds once.
    """
    others = _beside(repository)
    if repository == others:
        raise ConfigError(
            f"container.build.repository is {repository}, which is how images of pull requests are named",
            then="give it another last part",
        )
    if default_branch:
        return Places((repository,), repository)
    return Places((repository, others), others)


def _beside(repository: Repository) -> Repository:
    """`team/train` -> `team/train/pr`; Docker Hub has names of two parts only."""
    joint = "-" if repository.registry == _DOCKER_HUB else "/"
    path = repository.path.removesuffix(f"{joint}{_OTHERS}")
    return Repository(repository.registry, f"{path}{joint}{_OTHERS}")
