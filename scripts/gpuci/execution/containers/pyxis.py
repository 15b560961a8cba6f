"""Containers by pyxis, the plugin of srun that runs images with enroot. Pure.

Rendered and tested as text. The step is Slurm's own: it dies with its job, and pyxis removes the container.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from gpuci.execution.containers import shell
from gpuci.execution.containers.settings import Settings

_PASSED = ("CUDA_VISIBLE_DEVICES", "GPUCI_INSIDE", "GPUCI_SCRATCH")  # srun itself sets SLURM_…

_REST = r"""container_pull() {
    rm -f -- "$GPUCI_JOB_DIR/pull-auth"
}
container_remove() {
    :
}
container_check() {
    if ! command -v srun >/dev/null; then
        echo "the node has no srun"
    elif ! srun --help 2>/dev/null | grep -q -e --container-image; then
        echo "srun has no --container-image, so pyxis is not installed"
    else
        return 0
    fi
    return 1
}
"""


def functions(settings: Settings) -> str:
    """The shell functions of a container that pyxis runs, as a step of the job."""
    return shell.function("container_run", _run(settings)) + _REST


def _run(settings: Settings) -> Iterator[str]:
    yield shell.prepend([quote(settings.python)])
    mounts = ",".join(_mounts(settings))
    yield " ".join(["exec", "srun", *_options(settings), f"--container-mounts={mounts}", '"$@"'])


def _options(settings: Settings) -> Iterator[str]:
    names = ",".join(dict.fromkeys([*_PASSED, *settings.env]))
    # One task with all that the job has, beside whatever step still runs.
    yield from ("--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=none", f"--export={names}")
    yield f"--container-image={quote(_image(settings.image))}"
    yield f"--container-workdir={quote(settings.workdir)}"
    yield from ("--no-container-mount-home", "--no-container-entrypoint", "--container-writable")
    yield "--container-remap-root" if settings.user == "root" else "--no-container-remap-root"
    if settings.env:
        yield f"--container-env={','.join(settings.env)}"
    if settings.network == "none":
        yield "--container-unshare=net"
    yield from (quote(option) for option in settings.extra_options)


def _image(image: str) -> str:
    """enroot's spelling: a file by its path, else the registry before a `#`."""
    registry, slash, name = image.partition("/")
    if not registry or not slash or not ({".", ":"} & set(registry) or registry == "localhost"):
        return image
    return f"{registry}#{name}"


def _mounts(settings: Settings) -> Iterator[str]:
    """SOURCE:TARGET[:FLAGS], as the parts of one word of a shell."""
    yield f'"$GPUCI_SCRATCH/tree:"{quote(settings.workdir)}'
    yield '"$GPUCI_SCRATCH/tmp:$GPUCI_SCRATCH/tmp"'
    yield '"$GPUCI_SCRATCH/gpuci_node.pyz:$GPUCI_SCRATCH/gpuci_node.pyz:ro"'
    yield '"$GPUCI_JOB_DIR/out:$GPUCI_JOB_DIR/out"'
    yield from (quote(mount) for mount in settings.mounts)
