"""Behind scripts/tag_image.py: a tag for people, on the image with which the default branch passed."""

from __future__ import annotations

from gpuci.errors import ConfigError
from gpuci.github.events import full_sha
from gpuci.github.step import Step
from gpuci.images.names import by_digest, tag_of
from gpuci.images.push import move_tag
from gpuci.reporting.text import inline_code
from gpuci.steps import image_input
from gpuci.steps.image_commit import registry

VARIABLES = {
    "GPUCI_IMAGE": "the image by digest, as build-image or push-image left it",
    "GPUCI_SHA": image_input.COMMIT["GPUCI_SHA"],
    "GPUCI_TAG": "the tag, such as main",
    **image_input.REGISTRY,
}


def run(step: Step) -> int:
    """Move the tag; a run that is not the default branch's own moves none. Raises GpuciError."""
    repository, digest = by_digest(step.value("IMAGE"))
    tag = tag_of(step.value("TAG", "main"))
    if tag.startswith("inputs-"):
        raise ConfigError(f"the tag {tag} says what an image is made of", then="choose another, such as main")
    sha = full_sha(step.value("SHA"))
    if repository.of_others or not image_input.of_default_branch(sha, step.environ, step.event()):
        step.notice(f"{tag} stays where it is: only the default branch moves it, to an image of its own")
        step.output("moved", "false")
        return 0
    move_tag(registry(step, repository, write=True), digest, tag)
    step.say(f"{repository}:{tag} is {digest} now")
    step.output("moved", "true")
    step.summary(f"{inline_code(f'{repository}:{tag}')} is {inline_code(digest)} now.")
    return 0
