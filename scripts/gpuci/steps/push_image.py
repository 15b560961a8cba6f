"""Behind scripts/push_image.py: an archive that another job built -> a registry. Nothing of it is run.

The job has a credential that can write, and the archive may be forged. So name and tag are computed here
again, from the commit and the trusted configuration: an archive gets no tag but that of its own inputs.
"""

from __future__ import annotations

from pathlib import Path

from gpuci.errors import ConfigError
from gpuci.github.step import Step
from gpuci.images.archive import Archive
from gpuci.images.push import push
from gpuci.reporting.text import inline_code
from gpuci.steps import image_input
from gpuci.steps.image_commit import Wanted, found, registry, wanted

VARIABLES = {
    **image_input.COMMIT,
    "GPUCI_ARCHIVE": "the OCI archive that build-image left, or the directory that holds it alone",
    **image_input.REGISTRY,
}


def run(step: Step) -> int:
    """Push the archive unless the registry has the image by now; raises GpuciError."""
    given = image_input.read(step.environ, step.event())
    if given.build is None:
        raise ConfigError(
            "the configuration has no container.build: there is nothing to push",
            then="run push-image only if build-image's output `push` is true",
        )
    image = wanted(step, given, given.build)
    reference = found(step, image) or _push(step, image)
    step.output("image", reference)
    step.summary(f"The image {inline_code(reference)} is ready.")
    return 0


def _push(step: Step, image: Wanted) -> str:
    path = step.value("ARCHIVE")
    if not path:
        raise ConfigError("the input archive is empty", then="pass the output `archive` of build-image")
    place = image.places.push
    with Archive(Path(path)) as archive:
        archive.check(image.build.platform)
        digest = push(archive, registry(step, place, write=True), image.tag, step.say)
    step.say(f"pushed {place}@{digest} as {image.tag}")
    return f"{place}@{digest}"
