"""Containers by rootless podman (4.3 or later). Pure.

What runs on the node, and why in this form: docs/slurm.md, "The container".
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from gpuci.execution.containers import engine
from gpuci.execution.containers.settings import Settings

# So that the container stays in the job's cgroup, where Slurm's limits hold; with systemd it would leave it.
_PROGRAM = "podman --cgroup-manager=cgroupfs"

# The lock lies where the images do: /tmp can be each job's own, a home directory that of all nodes.
# Nothing that podman leaves running may hold the lock, so its descriptor is closed for it.
_FUNCTIONS = r"""
container_present() {
    container_engine image exists "$(container_image)"
}
container_once() {
    container_store=$(container_engine info --format '{{.Store.GraphRoot}}') || return
    (
        flock -w 3600 9 || { echo "gpuci: another job has been pulling the image for an hour" >&2; exit 125; }
        container_present 9>&- || container_get 9>&-
    ) 9>"$container_store/gpuci-pull.lock"
}
container_fetch() {
    ! [ -e "$GPUCI_JOB_DIR/pull-auth" ] || set -- --authfile="$GPUCI_JOB_DIR/pull-auth" "$@"
    container_engine pull --quiet "$@" >/dev/null
}
container_discard() {
    # In a session of its own: scancel's TERM to the job's processes would leave it half done.
    setsid -w timeout -k 1 10 \
        podman --cgroup-manager=cgroupfs rm --force --ignore --time=0 "gpuci-$SLURM_JOB_ID" \
        </dev/null >/dev/null 2>&1 || :
}
"""

# Mounts belong to the job's user, so that is who the container's user has to be: his id inside is mapped
# to the job's outside. Root inside is that already. What the image says of a name, only the image knows.
_USER = r"""
container_user() {
    container_wanted=%s
    [ -n "$container_wanted" ] ||
        container_wanted=$(container_engine image inspect --format '{{.Config.User}}' "$(container_image)")
    case "$(id -u):${container_wanted%%%%:*}" in
    0:* | *: | *:0 | *:root) ;;
    *:*[!0-9]*)
        container_engine run --rm --pull=never --network=none --user="$container_wanted" --entrypoint=id \
            "$(container_image)" -u </dev/null
        ;;
    *) echo "${container_wanted%%%%:*}" ;;
    esac
}
"""
_AS_USER = (
    "container_uid=$(container_user) || return",
    '[ -z "$container_uid" ] || set -- --userns=keep-id:uid="$container_uid" "$@"',
)

# podman takes --gpus and does nothing, so the devices are named: by CDI where the node describes them, else
# one by one with the variable that NVIDIA's older hook looks at. Whether they arrived is checked inside.
_DEVICES = (
    "if grep -qs 'nvidia\\.com/gpu' /etc/cdi/* /var/run/cdi/*; then",
    '    set -- --device=nvidia.com/gpu=all "$@"',
    "else",
    "    for container_device in /dev/nvidia*; do",
    '        ! [ -c "$container_device" ] || set -- --device="$container_device" "$@"',
    "    done",
    '    set -- --env=NVIDIA_VISIBLE_DEVICES=all --env=NVIDIA_DRIVER_CAPABILITIES=compute,utility "$@"',
    "fi",
)


def functions(settings: Settings) -> str:
    """The shell functions of a container that podman runs."""
    devices = _DEVICES if settings.gpus else ()
    user = _USER.lstrip() % quote(settings.user)
    return user + engine.functions(
        settings,
        engine.Engine(
            program=_PROGRAM,
            functions=_FUNCTIONS,
            run=tuple(_options(settings)),
            dynamic=(*devices, *_AS_USER),
            needs=("flock", "setsid", "timeout"),
        ),
    )


def _options(settings: Settings) -> Iterator[str]:
    yield "--http-proxy=false"  # proxies hold passwords; who needs them names them in container.env
    if settings.user:
        yield f"--user={quote(settings.user)}"
    yield f'--volume="$GPUCI_SCRATCH/tree":{quote(settings.workdir)}'
    yield '--volume="$GPUCI_SCRATCH/tmp":"$GPUCI_SCRATCH/tmp"'
    yield '--volume="$GPUCI_SCRATCH/gpuci_node.pyz":"$GPUCI_SCRATCH/gpuci_node.pyz":ro'
    yield '--volume="$GPUCI_JOB_DIR/out":"$GPUCI_JOB_DIR/out"'
    yield from (f"--volume={quote(mount)}" for mount in settings.mounts)
