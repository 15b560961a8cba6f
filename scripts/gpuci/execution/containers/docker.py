"""Containers by docker. Pure.

Rendered and tested as text. The daemon runs as root outside the job's cgroup, so Slurm's limits don't hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from gpuci.execution.containers import engine
from gpuci.execution.containers.settings import Settings

# The daemon pulls an image once, however many ask for it. A given credential is for this pull alone.
_FUNCTIONS = r"""
container_present() {
    docker image inspect "$(container_image)" >/dev/null 2>&1
}
container_once() {
    container_get
}
container_fetch() {
    [ -e "$GPUCI_JOB_DIR/pull-auth" ] || { docker pull --quiet "$1" >/dev/null; return; }
    mkdir -m 700 "$GPUCI_SCRATCH/docker" &&
        cp "$GPUCI_JOB_DIR/pull-auth" "$GPUCI_SCRATCH/docker/config.json" &&
        docker --config "$GPUCI_SCRATCH/docker" pull --quiet "$1" >/dev/null || set -- ""
    rm -rf -- "$GPUCI_SCRATCH/docker"
    [ -n "$1" ]
}
container_discard() {
    setsid -w timeout -k 1 10 docker rm --force "gpuci-$SLURM_JOB_ID" </dev/null >/dev/null 2>&1 || :
}
"""

# Without its daemon it says of each image that it is not there.
_CHECK = (
    "container_words=$(timeout -k 1 60 docker version 2>&1) || {",
    """    container_words=$(printf '%s\\n' "$container_words" | tail -n 1)""",
    '    echo "docker\'s daemon does not answer: $container_words"',
    "    return 1",
    "}",
)


def functions(settings: Settings) -> str:
    """The shell functions of a container that docker runs."""
    return engine.functions(
        settings,
        engine.Engine(
            program="docker",
            functions=_FUNCTIONS,
            run=tuple(_options(settings)),
            dynamic=(),
            needs=("setsid", "timeout"),
            check=_CHECK,
        ),
    )


def _options(settings: Settings) -> Iterator[str]:
    if settings.user:
        yield f"--user={quote(settings.user)}"
    else:  # what root writes on a mount, the job could not remove; and who has no home gets one
        yield from ('--user="$(id -u):$(id -g)"', "--env=HOME=/tmp")
    if settings.gpus:
        yield "--gpus=all"
    yield _mount('"$GPUCI_SCRATCH/tree"', quote(settings.workdir))
    yield _mount('"$GPUCI_SCRATCH/tmp"', '"$GPUCI_SCRATCH/tmp"')
    yield _mount('"$GPUCI_SCRATCH/gpuci_node.pyz"', '"$GPUCI_SCRATCH/gpuci_node.pyz"', mode="ro")
    yield _mount('"$GPUCI_JOB_DIR/out"', '"$GPUCI_JOB_DIR/out"')
    for mount in settings.mounts:
        source, target, *mode = mount.split(":")
        yield _mount(quote(source), quote(target), mode="".join(mode))


def _mount(source: str, target: str, *, mode: str = "") -> str:
    """A mount that fails when its source is missing; --volume would make it, as root."""
    return f"--mount=type=bind,source={source},target={target}" + (",readonly" if mode == "ro" else "")
