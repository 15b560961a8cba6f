"""What podman and docker have in common: the functions are the same, the words differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from gpuci.execution.containers import shell
from gpuci.execution.containers.settings import Settings

# The mask of the job's GPUs; without it the container would see what Slurm gave to others.
_ALWAYS = ("CUDA_VISIBLE_DEVICES",)
# What the keeper needs to know of its job when the node has no Python for it and it runs inside.
_KEEPER = (
    "GPUCI_INSIDE",
    "GPUCI_SCRATCH",
    "SLURM_JOB_END_TIME",
    "SLURM_JOB_GPUS",
    "SLURMD_NODENAME",
)

# A file's image is known by name, size and time of the file: to hash tens of GB costs as much as to load.
_IMAGE_OF_FILE = r"""
container_image() {
    printf 'localhost/gpuci-file:%s\n' \
        "$(stat -L -c '%n %s %y' -- "$container_file" 2>/dev/null | sha256sum | cut -c 1-32)"
}
container_get() {
    container_loaded=$(container_engine load --quiet --input "$container_file") || return
    container_engine tag "${container_loaded##* }" "$(container_image)"
}
"""
_IMAGE_OF_REGISTRY = r"""
container_image() {
    printf '%s\n' "$container_digest"
}
container_get() {
    container_fetch "$container_digest"
}
"""
_NO_IMAGE = (
    "the node has no image $container_digest (container.image); an id without a registry is never pulled"
)
_IMAGE_BY_ID = rf"""
container_image() {{
    printf '%s\n' "$container_digest"
}}
container_get() {{
    echo "gpuci: {_NO_IMAGE}" >&2
    return 125
}}
"""

# The credential is gone before anything of a test runs, whether it was needed or not.
_PULL = r"""
container_pull() {
    container_code=0
    container_present || container_once || container_code=$?
    rm -f -- "$GPUCI_JOB_DIR/pull-auth"
    return "$container_code"
}
"""

# Process ids are used again, a pair with the start time (proc(5), field 22) is not; a zombie has none here.
_REMOVE = r"""
container_started() {
    sed -n 's/^.*) [^ZX] //p' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 19
}
container_remember() {
    container_pid=$(exec sh -c 'echo "$PPID"')
    echo "$container_pid $(container_started "$container_pid")" >"$GPUCI_SCRATCH/container-client" || return
    # In this order, and container_remove in the other: one of the two sees the other.
    ! [ -e "$GPUCI_SCRATCH/container-removed" ]
}
container_client_lives() {
    [ -r "$GPUCI_SCRATCH/container-client" ] || return 1
    read -r container_pid container_since <"$GPUCI_SCRATCH/container-client" || return 1
    [ -n "$container_since" ] && [ "$(container_started "$container_pid")" = "$container_since" ]
}
container_remove() {
    rm -f -- "$GPUCI_JOB_DIR/pull-auth" || :
    true 2>/dev/null >"$GPUCI_SCRATCH/container-removed" || :
    container_discard
    container_tries=0
    # A client that is about to start the container would start it after us.
    while container_client_lives && [ "$container_tries" -lt 30 ]; do
        container_tries=$((container_tries + 1))
        sleep 0.1
        container_discard
    done
    ! container_client_lives || kill -s KILL "$container_pid" || :
    return 0
}
"""

_SCRATCH = r"""
case "$GPUCI_SCRATCH" in
*[:,\"]*)
    echo "$GPUCI_SCRATCH can't be mounted: no colon, comma or quote may be in its name (slurm.scratch-dir)"
    return 1
    ;;
esac
"""


@dataclass(frozen=True)
class Engine:
    """One of the two: its program, its own functions, and the words of `run` that only it has.

    `functions` defines container_present, container_once, container_fetch IMAGE, container_discard.
    """

    program: str
    functions: str
    run: tuple[str, ...]
    dynamic: tuple[str, ...]  # lines of container_run that put more words before its arguments
    needs: tuple[str, ...]  # other programs on the node
    check: tuple[str, ...] = ()  # more lines of container_check


def functions(settings: Settings, engine: Engine) -> str:
    """The four functions and what they use."""
    parts = [
        _image(settings),
        shell.function("container_engine", [f'{engine.program} "$@"']),
        engine.functions.lstrip(),
        _PULL.lstrip(),
        _REMOVE.lstrip(),
        shell.function("container_run", _run(settings, engine)),
        shell.function("container_check", _check(settings, engine)),
    ]
    return "".join(parts)


def _image(settings: Settings) -> str:
    if settings.by_file:
        return f"container_file={quote(settings.image)}\n{_IMAGE_OF_FILE.lstrip()}"
    text = _IMAGE_BY_ID if settings.by_id else _IMAGE_OF_REGISTRY
    return f"container_digest={quote(settings.image)}\n{text.lstrip()}"


def _run(settings: Settings, engine: Engine) -> Iterator[str]:
    """The lines of container_run: words are put before the arguments, the last ones first."""
    yield "container_remember || return"
    extra = (quote(option) for option in settings.extra_options)
    yield shell.prepend([*extra, f"--entrypoint={quote(settings.python)}", '"$(container_image)"'])
    names = dict.fromkeys([*_ALWAYS, *settings.env])
    for name in reversed(names):
        yield shell.prepend([f"--env={name}"], condition=shell.is_set(name))
    yield 'if [ -n "${GPUCI_INSIDE:-}" ]; then'
    yield f"    for container_name in {' '.join(_KEEPER)}; do"
    yield '        set -- --env="$container_name" "$@"'
    yield "    done"
    yield "fi"
    yield from engine.dynamic
    yield " ".join(["exec", engine.program, "run", *_common(settings), *engine.run, '"$@"'])


def _common(settings: Settings) -> Iterator[str]:
    """The options that both engines spell alike."""
    yield from ("--rm", "--interactive", "--pull=never", "--log-driver=none", "--security-opt=label=disable")
    yield '--name="gpuci-$SLURM_JOB_ID"'
    if settings.network != "default":
        yield f"--network={quote(settings.network)}"
    if not any(option.startswith("--ipc=") for option in settings.extra_options):
        yield f"--shm-size={quote(settings.shm_size)}"
    yield from (f"--cap-add={quote(name)}" for name in settings.cap_add)
    yield f"--workdir={quote(settings.workdir)}"


def _check(settings: Settings, engine: Engine) -> Iterator[str]:
    program = engine.program.partition(" ")[0]
    yield f"for container_program in {' '.join([program, *engine.needs])}; do"
    yield '    command -v "$container_program" >/dev/null && continue'
    yield f'    echo "the node has no $container_program (container.runtime is {program})"'
    yield "    return 1"
    yield "done"
    yield from _SCRATCH.strip().splitlines()
    yield from engine.check
    if settings.by_file:
        problem = "the node can't read $container_file (container.image)"
        yield f'[ -r "$container_file" ] || {{ echo "{problem}"; return 1; }}'
    elif settings.by_id:
        yield f'container_present || {{ echo "{_NO_IMAGE}"; return 1; }}'
