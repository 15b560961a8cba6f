"""What container runtimes say -> cause and next step. Pure.

The texts are those of podman 4.3, docker 28, runc 1.1, crun 1.8, pyxis 0.24 and enroot 4.1 as they came; exit
codes are those of podman-run(1) and docker-run(1): 125 the engine, 126 can't be executed, 127 not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CUT = 200  # characters of a runtime's text that a message repeats


@dataclass(frozen=True)
class Message:
    """One cause. `kind` says who can help.

    - config: it will be the same on each node (verdict config_error)
    - node: this node is to blame, another may do (fault)
    - ended: the container ran, and something ended it
    - note: nothing failed
    """

    what: str
    why: str
    then: str
    kind: str


# (text, kind, what, why, then); {0}, {1} are what the text's groups matched. The first that matches counts.
_TABLE: tuple[tuple[str, str, str, str, str], ...] = (
    # the image
    # what may go by comes first: such texts name what was refused before, too
    (
        r"toomanyrequests|[Tt]oo [Mm]any [Rr]equests"
        r"|(?:HTTP status(?: code)?|status code(?: from registry)?|returned error(?: code)?):? (?:429|5\d\d)"
        r"|\b50[0234] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?[Oo]ut)",
        "node",
        "the registry does not serve the image now",
        "it limits how much one address or user may pull, or it is overloaded or down",
        "run the failed jobs again later; a credential, or a registry near the nodes, has other limits",
    ),
    (
        r"(?:pinging container registry (\S+?): |Get \"https?://([^/\"\s]+)).*"
        r"(?:connection refused|no such host|i/o timeout|handshake|Client\.Timeout|deadline exceeded"
        r"|network is unreachable|no route to host|connection reset|server misbehaving|tls: |x509: |EOF"
        r"|server gave HTTP response to HTTPS client)"
        r"|curl: \((?:6|7|28|35|56)\)|i/o timeout|TLS handshake|connection reset by peer",
        "node",
        "the registry {0} can't be reached from this node",
        "its name, a firewall, or the node's network",
        "try `curl https://REGISTRY/v2/` on the node; where nodes have no way out, name an image file",
    ),
    (
        r"unauthorized|authentication required|invalid username/password|pull access denied"
        r"|access to the resource is denied|no basic auth credentials|(?<![Pp]ermission )\bdenied: "
        r"|(?:HTTP status code|status code from registry|returned error|returned error code):? 40[13]\b",
        "config",
        "the registry refused the credential",
        "container.pull-credential-command printed none, a wrong one, or one that may not read the image",
        "check it and container.image (docs/configuration.md): run it by hand, log in with what it prints",
    ),
    (
        r"manifest unknown|name unknown|repository name not known to registry|manifest for \S+ not found"
        r"|(?:HTTP status code|status code from registry|returned error|returned error code):? 404\b",
        "config",
        "the registry has no such image",
        "the digest of container.image was never pushed there, or was deleted",
        "compare container.image (docs/configuration.md) with what the registry lists",
    ),
    (
        r"no image found in (?:image index|manifest list) for|no matching manifest for",
        "config",
        "the image is for another kind of processor",
        "container.image names an image that was not built for that of the nodes",
        "build it for the nodes, or name another image",
    ),
    (
        r"invalid reference format|name invalid",
        "config",
        "container.image is no name of an image",
        "a letter that no name may have, such as a capital one in the repository",
        "write container.image as registry/name@sha256:…",
    ),
    (
        r'short-name "([^"\n]*)" did not resolve',
        "config",
        "the image name {0} names no registry",
        "podman asks no registry that isn't named",
        "write container.image as registry/name@sha256:…",
    ),
    (
        r"Unable to find image|No such image|image not known|has no image sha256:",
        "node",
        "the image is not on this node",
        "it was removed after the pull, or an image by its id was never brought here",
        "pull it by digest from a registry, or name an image file on the shared folder",
    ),
    (
        r"payload does not match any of the supported image formats|Invalid image format: (\S+)",
        "config",
        "the image file {0} is of another kind",
        "podman and docker load what their `save` wrote, pyxis a squashfs of `enroot import`",
        "write the file again with the tool of the runtime",
    ),
    (
        r"failed to create container filesystem for image: (\S+)|No such file or directory: (\S+\.sqsh)",
        "node",
        "pyxis can't unpack the image {0}",
        "the file is not there, or the place for containers (ENROOT_DATA_PATH) is full",
        "look for the file on the node; a name must be an absolute path",
    ),
    (
        r"failed to import docker image: (\S+)|importing docker image: (\S+)",
        "node",
        "enroot can't import the image {0}",
        "the registry, the credential in enroot's configuration, or an old enroot that knows no digests",
        "run `enroot import docker://REGISTRY#NAME@sha256:…` on the node, or name an image file",
    ),
    (
        r"another job has been pulling the image",
        "node",
        "the image is being pulled on this node by another job",
        "its registry is slow, or it hangs",
        "look at the other job of this user on the node",
    ),
    # what is mounted and passed
    (
        r"statfs ([^:\n]+): no such file|bind source path does not exist: (\S+)"
        r"|--container-mounts: source path does not exist: (\S+)",
        "node",
        "the mount {0} does not exist on this node",
        "a file system that is not mounted, or a mistake in container.mounts",
        "compare container.mounts with what the node has",
    ),
    (
        r"Invalid --container-mounts argument: (\S+)|--container-mounts: invalid format: (\S+)",
        "config",
        "pyxis does not understand the mount {0}",
        "a colon or a comma in a path",
        "write container.mounts as /on/node:/in/container, with :ro after it for read-only",
    ),
    (
        r"duplicate mount (?:destination|point)|Duplicate mount point|: duplicate mount",
        "config",
        "two mounts have the same place inside",
        "container.mounts names container.workdir, or one place twice",
        "give each mount a place of its own",
    ),
    (
        r"unresolvable CDI devices ([^\s:]+)",
        "node",
        "the node's description of its GPUs lacks {0}",
        "the CDI specification is old or of another driver",
        "let an administrator run `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` on the node",
    ),
    (
        r"stat (/dev/[^:\n]+): no such file|error gathering device information.*\"([^\"]+)\"",
        "node",
        "the device {0} does not exist on this node",
        "the driver is not loaded, or this kind of node has none",
        "compare container.extra-options with the devices of the profile's nodes",
    ),
    (
        r"could not select device driver \"[^\"]*\" with capabilities: \[\[gpu\]\]",
        "node",
        "docker can't pass GPUs on this node",
        "the NVIDIA Container Toolkit is not installed or not registered with docker",
        "let an administrator run `nvidia-ctk runtime configure --runtime=docker` on the node",
    ),
    (
        r"default OCI runtime \"([^\"]+)\" not found|[Uu]nknown runtime specified (\S+)"
        r"|unknown or invalid runtime name: (\S+)",
        "config",
        "the node has no OCI runtime {0}",
        "container.extra-options asks for it with --runtime",
        "leave --runtime out: GPUs are passed without it",
    ),
    (
        r"nvidia-container-cli|98-nvidia\.sh exited",
        "node",
        "the library that passes GPUs failed or is missing on this node",
        "libnvidia-container is not installed, or does not fit the driver",
        "run `nvidia-container-cli info` on the node, or take it out with slurm.exclude",
    ),
    # limits and rights
    (
        r"cannot set shmsize when running in the \{?host",
        "config",
        "shared memory of the host has the host's size",
        "container.extra-options has --ipc=host beside a size",
        "leave one of the two out",
    ),
    (
        r"setrlimit `?(RLIMIT_\w+)`?|error setting rlimit.*?(RLIMIT_\w+|type \d+)|ulimit option .* (\w+)",
        "node",
        "the container may not have the limit {0}",
        "podman asks for more than the job has: from containers.conf (default_ulimits) or --ulimit",
        "set default_ulimits in containers.conf to limits that a job of this user has (`ulimit -Hn`, `-Hu`)",
    ),
    (
        r"cgroups in hybrid mode not supported",
        "node",
        "crun can't work with this node's cgroups",
        "version 1 and 2 are mounted at once",
        'set runtime = "runc" in containers.conf, or let an administrator mount one version',
    ),
    (
        r"not compatible with NoCgroups",
        "config",
        "runc can't run a container without cgroups",
        "container.extra-options has --cgroups=disabled",
        "leave it out: the container stays in the job's cgroup without it",
    ),
    (
        r"slirp4netns failed|pasta failed|/dev/net/tun",
        "config",
        "the node gives containers of a user no network of their own",
        "container.network is default, which needs /dev/net/tun",
        "set container.network to host or none",
    ),
    (
        r"failed to open /dev/fuse",
        "node",
        "the node's storage of images needs /dev/fuse",
        "storage.conf asks for fuse-overlayfs, and users may not open /dev/fuse",
        'set driver = "overlay" without mount_program in storage.conf',
    ),
    (
        r"unable to apply caps|creating /etc/mtab symlink: permission denied",
        "config",
        "the container asks for more rights than its user has",
        "container.extra-options has --privileged, --rootfs or the like",
        "leave it out; container.cap-add names single rights",
    ),
    (
        r"no subuid ranges found|insufficient UIDs or GIDs|newuidmap|potentially insufficient UIDs",
        "node",
        "the user has too few ids for containers on this node",
        "/etc/subuid and /etc/subgid have no line for the user",
        "let an administrator add one with `usermod --add-subuids`",
    ),
    (
        r"no space left on device|disk quota exceeded",
        "node",
        "the node has no room for the image",
        "the disk with the images is full",
        "let old images go (`podman system prune`), or put graphroot on a larger disk",
    ),
    (
        r"[Cc]annot connect to (?:the Docker daemon|Podman)|docker\.sock: (?:connect|dial)"
        r"|docker daemon socket",
        "node",
        "docker does not answer on this node",
        "the daemon is down, or the user is not in its group",
        "run `docker info` on the node, or use podman, which needs no daemon",
    ),
    (
        r"container name \"?/?([^\"\s]+)\"? is already in use",
        "node",
        "a container of this job's name is there already",
        "the job was started again on the same node and its first container hangs",
        "remove it by hand (`podman rm -f`)",
    ),
    # what runs inside
    (
        r"exec: \"([^\"]+)\": (?:stat|executable file not found)"
        r"|executable file `?([^\s`]+)`? not found|attempted to invoke a command that was not found",
        "config",
        "the image has no {0}",
        "container.python names a program that is not in the image, or not on its PATH",
        "name the Python that has pytest, as an absolute path",
    ),
    (
        r"exec: \"([^\"]+)\": permission denied|exec format error",
        "config",
        "the image's {0} can't be executed",
        "it is a directory, lacks the executable bit, or the image is for another kind of processor",
        "look at it in the image",
    ),
    (
        r"unable to find user (\S+):|no users found|unable to find group (\S+):",
        "config",
        "the image has no user {0}",
        "container.user is a name that the image's /etc/passwd or /etc/group lacks",
        "write the user by number, as 1000 or 1000:1000",
    ),
    (
        r"unknown flag: (\S+)|unrecognized option '([^']+)'",
        "config",
        "the runtime does not know {0}",
        "a mistake in container.extra-options, an older runtime, or srun without pyxis",
        "compare container.extra-options with the runtime's manual; for pyxis ask for the plugin",
    ),
    (
        r"unexpected replacement character|unrecognized key: EnvExclude|invalid rootfs: not an absolute path",
        "node",
        "Slurm's own containers are set up wrongly on this cluster",
        "oci.conf or the bundle is of another Slurm version",
        "leave --container out of slurm.extra-options: container.runtime starts containers",
    ),
    (
        r"required plugin spank_pyxis\.so: task_init\(\) failed",
        "node",
        "pyxis could not start the container",
        "its reason stands above in the log",
        "try `srun --container-image=…` by hand on the node",
    ),
    # not errors
    (
        r"Resource limits are not supported and ignored",
        "note",
        "podman ignores --memory and the like on this node",
        "a user's containers can't have limits under version 1 of cgroups",
        "ask Slurm for limits (--mem): they hold for the container too",
    ),
    (
        r"forwarding signal \d+ to container .* failed",
        "note",
        "podman could not pass a signal on",
        "the job was being ended, and the container with it",
        "nothing: the job removes its container itself",
    ),
    (
        r"_try_parse: JSON parsing error",
        "note",
        "Slurm said something of JSON that means nothing",
        "Slurm 22.05 prints it for good documents too",
        "nothing",
    ),
)
_ROWS = [(re.compile(row[0]), row) for row in _TABLE]

_CODES: dict[int, tuple[str, str, str, str]] = {
    125: ("node", "the container engine failed", "its own words are the log's last lines", "read them there"),
    126: (
        "config",
        "the image's Python can't be executed",
        "container.python names a directory or a file without the executable bit",
        "name the Python that has pytest, as an absolute path",
    ),
    127: (
        "config",
        "the image has no such Python",
        "container.python names a program that is not in the image, or not on its PATH",
        "name the Python that has pytest, as an absolute path",
    ),
    137: (
        "ended",
        "the container was killed",
        "out of memory, or the job was ended",
        "look at the job's state and at the memory it asked for (--mem)",
    ),
    143: (
        "ended",
        "the container was ended",
        "the job was cancelled or its time was over",
        "see the job's state",
    ),
}


def explain(text: str, code: int | None = None) -> Message:
    """The cause that a runtime's words name, else what its exit code says (None: it has none).

    Of `text` a message repeats short parts only, with unprintable characters replaced.
    """
    for pattern, (_text, kind, what, why, then) in _ROWS:
        match = pattern.search(text)
        if match:
            return Message(what.format(*_parts(match)), why, then, kind)
    if code in _CODES:
        kind, what, why, then = _CODES[code]
        return Message(what, why, then, kind)
    what = "the container ended" if code is None else f"the container ended with exit code {code}"
    return Message(what, "it gave no reason that is known", "read the log's last lines", "ended")


def _parts(match: re.Match[str]) -> Iterator[str]:
    """What the groups matched, or a neutral word for none."""
    found = [group for group in match.groups() if group]
    yield "".join(c if c.isprintable() else "?" for c in found[0])[:_CUT] if found else "named in the log"
