"""Behind scripts/build_image.py: the image of a commit, found in its registry or built into an archive.

A Dockerfile is code. It is run here, where no credential can write anything, and never where one can.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from gpuci.github.step import Step
from gpuci.images.archive import Archive
from gpuci.images.build import build_archive, choose
from gpuci.images.builders import BUILDERS
from gpuci.reporting.text import clean, duration, gutter, inline_code, size
from gpuci.steps import image_input
from gpuci.steps.admission import approver
from gpuci.steps.image_commit import Wanted, found, unpacked, wanted
from gpuci.steps.image_input import ImageInput

VARIABLES = {
    **image_input.COMMIT,
    "GPUCI_IMAGE": "an image by digest to take as it is; nothing is built",
    "GPUCI_BUILDER": f"what builds: {', '.join(BUILDERS)}",
    **image_input.REGISTRY,
}
_WIDTH = 240


def run(step: Step) -> int:
    """Find the image or build it; raises GpuciError."""
    given = image_input.read(step.environ, step.event())
    if given.build is None:
        _told(step, image=given.image)
        step.summary(_as_given(given.image))
        return 0
    image = wanted(step, given, given.build)
    known = found(step, image)
    if known:
        step.say(f"found {known}")
        _told(step, image=known, built=True)
        step.summary(f"The image {inline_code(known)} exists: nothing it is made of has changed.")
        return 0
    archive = _build(step, given, image)
    _told(step, built=True, archive=archive)
    return 0


def _build(step: Step, given: ImageInput, image: Wanted) -> Path:
    # Asked here too: "re-run failed jobs" starts this job without the one that asked before.
    approver(step, step.environ.get("GITHUB_EVENT_NAME", ""), given.sha)
    builder = choose(step.value("BUILDER", "auto"), step.environ)
    tree = unpacked(step, given, image)
    started = time.monotonic()
    step.say(f"{builder} builds {image.build.file}")

    def show(line: str) -> None:
        for told in gutter(clean(line).split("\n"), _WIDTH):
            step.say(told)

    path = build_archive(image.build, tree, step.scratch(), builder=builder, environ=step.environ, say=show)
    shutil.rmtree(tree)
    took = duration(time.monotonic() - started)
    with Archive(path) as archive:
        step.say(f"built {archive.digest} in {took}")
        step.summary(
            f"Built {inline_code(archive.digest)} in {took}, {size(path.stat().st_size)}, to be pushed as "
            f"{inline_code(f'{image.places.push}:{image.tag}')}."
        )
    return path


def _told(step: Step, *, image: str = "", built: bool = False, archive: Path | None = None) -> None:
    step.output("image", image)
    step.output("built", "true" if built else "false")
    step.output("push", "true" if archive else "false")
    step.output("archive", str(archive or ""))


def _as_given(image: str) -> str:
    return f"The tests run in {inline_code(image)}, as given." if image else "The tests run in no image."
