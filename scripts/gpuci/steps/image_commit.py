"""The commit's side of an image: its inputs by git, its tag, and the registry to look into. I/O."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuci.github.step import Step
from gpuci.images.inputs import Inputs, content_hash, inputs_of
from gpuci.images.login import credential_for
from gpuci.images.names import Places, Repository, places, repository_of
from gpuci.images.push import find
from gpuci.images.registry import Registry
from gpuci.images.settings import Build
from gpuci.repository.fetch import Repository as Commits
from gpuci.repository.listing import FILES, LINK, Entry
from gpuci.repository.unpack import unpack
from gpuci.steps.image_input import ImageInput


@dataclass(frozen=True)
class Wanted:
    """An image that a commit asks for; `tag` says what it is made of."""

    build: Build
    tag: str
    places: Places
    inputs: Inputs
    commits: Commits
    url: str
    entries: tuple[Entry, ...]


def wanted(step: Step, given: ImageInput, build: Build) -> Wanted:
    """Fetch the commit without its files, which the tag needs by their ids only."""
    server = step.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    url = f"{server}/{step.environ.get('GITHUB_REPOSITORY', '')}"
    commits = Commits(step.scratch() / "repository", say=step.say)
    commits.fetch(url, step.secret("TOKEN"), [given.sha], filter_="blob:none")
    entries = commits.entries(given.sha, given.root)
    inputs = inputs_of(build, entries)
    for remark in inputs.remarks:
        step.warning(remark)
    tag = f"inputs-{content_hash(build, inputs)}"
    step.say(f"the image is made of {len(inputs.counted):,} files, and its tag is {tag}")
    where = places(repository_of(build.repository), default_branch=given.default_branch)
    return Wanted(build, tag, where, inputs, commits, url, entries)


def unpacked(step: Step, given: ImageInput, image: Wanted) -> Path:
    """The files that the build sees, and no others, in a directory."""
    seen = {entry.path for entry in image.inputs.seen}
    due = [entry for entry in image.inputs.seen if entry.mode in FILES]
    # Where links lead is known from all links of the tree.
    due += [entry for entry in image.entries if entry.mode == LINK]
    image.commits.bring(image.url, step.secret("TOKEN"), [entry.object_id for entry in due])
    tree = step.scratch() / "tree"
    done = unpack(image.commits, given.sha, given.root, tree, keep=seen.__contains__)
    for path in done.refused:
        step.warning(f"{path}: a link out of the tree is not there for the build")
    return tree


def registry(step: Step, repository: Repository, *, write: bool = False) -> Registry:
    """A repository of images, with what we may show it."""
    credential = credential_for(
        repository,
        user=step.value("REGISTRY_USER"),
        password=step.secret("REGISTRY_PASSWORD"),
        token=step.secret("TOKEN"),
        environ=step.environ,
    )
    return Registry(repository, credential, write=write, say=step.say)


def found(step: Step, image: Wanted) -> str | None:
    """The image by digest if a registry has it."""
    return find((registry(step, place) for place in image.places.look), image.tag, step.say)
