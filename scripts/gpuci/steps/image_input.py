"""The inputs of build-image, push-image and tag-image -> values. Pure.

Which name space of images a run may write follows from what GitHub says of the run, and from nothing that
another job says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuci.github.events import full_sha
from gpuci.images.names import by_digest
from gpuci.images.settings import Build, build_of
from gpuci.steps import config_input

REGISTRY = {
    "GPUCI_REGISTRY_USER": "user of the registry; empty: GitHub's, for GitHub's own registry",
    "GPUCI_REGISTRY_PASSWORD": "password or token; empty: GitHub's, for GitHub's own registry",
    "GPUCI_TOKEN": "token for fetching the commit, and for GitHub's own registry",
}
COMMIT = {
    **config_input.VARIABLE,
    "GPUCI_SHA": "the full SHA that the image is for",
    "GPUCI_ROOT": "the directory of the repository that holds .github/gpuci.yml",
}


@dataclass(frozen=True)
class ImageInput:
    """What an image is asked for. `build` None: `image` is all there is (empty: the tests run in none)."""

    sha: str
    root: str
    image: str
    build: Build | None
    default_branch: bool


def read(environ: Mapping[str, str], payload: Mapping[str, Any]) -> ImageInput:
    """Raises ConfigError for inputs that make no sense."""
    names = ("CONFIGURATION", "SHA", "ROOT", "IMAGE")
    values = {name: environ.get(f"GPUCI_{name}", "").strip() for name in names}
    container = config_input.config_of(values["CONFIGURATION"]).container
    if values["IMAGE"]:
        by_digest(values["IMAGE"])
    image = values["IMAGE"] or str(container.get("image") or "")
    sha = full_sha(values["SHA"])
    return ImageInput(
        sha=sha,
        root=values["ROOT"] or ".",
        image=image,
        build=None if image else build_of(container),
        default_branch=of_default_branch(sha, environ, payload),
    )


def of_default_branch(sha: str, environ: Mapping[str, str], payload: Mapping[str, Any]) -> bool:
    """Whether a run is of the default branch and about that branch's own commit.

    A run of pull_request_target, or a dispatch for a pull request, is of the default branch too, and about
    another commit (docs.github.com, "Events that trigger workflows", GITHUB_SHA and GITHUB_REF).
    """
    repository = payload.get("repository")
    branch = repository.get("default_branch") if isinstance(repository, Mapping) else None
    if branch is None and environ.get("GITHUB_EVENT_NAME") == "schedule":
        return environ.get("GITHUB_SHA") == sha  # runs on the default branch only, and may not name it
    ours = bool(branch) and environ.get("GITHUB_REF") == f"refs/heads/{branch}"
    return ours and environ.get("GITHUB_SHA") == sha
