"""Texts of container runtimes as they came -> who can help, and what is said."""

import pytest

from gpuci.execution.containers.messages import explain

RUNC = "Error: runc: runc create failed: unable to start container process: "
NOT_FOUND = ": OCI runtime attempted to invoke a command that was not found"
PULLING = "Error: initializing source docker://registry.example/team/train@sha256:00: "
PYXIS = "slurmstepd-gpu001: error: pyxis: "
TUN = 'Error: /usr/bin/slirp4netns failed: "open(\\"/dev/net/tun\\"): Permission denied\\nWARNING: Support'
FORWARD = "forwarding signal 18 to container 3f: '/usr/bin/runc kill 3f 18' failed: signal: terminated"


@pytest.mark.parametrize(
    ("text", "code", "kind", "what"),
    [
        # podman
        ("Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied", 126,
         "node", "the container may not have the limit RLIMIT_NOFILE"),
        ("Error: crun: setrlimit `RLIMIT_NPROC`: Operation not permitted: OCI permission denied", 126,
         "node", "the container may not have the limit RLIMIT_NPROC"),
        (RUNC + "error during container init: error setting rlimits for ready process: error setting rlimit "
         "type 8: operation not permitted: OCI permission denied", 126,
         "node", "the container may not have the limit type 8"),
        (TUN, 126, "config", "the node gives containers of a user no network of their own"),
        ("fuse: failed to open /dev/fuse: Permission denied", 125,
         "node", "the node's storage of images needs /dev/fuse"),
        ("Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all controllers from "
         "cgroupv2", 126, "node", "crun can't work with this node's cgroups"),
        ("Error: requested OCI runtime runc is not compatible with NoCgroups: invalid argument", 125,
         "config", "runc can't run a container without cgroups"),
        ("Error: creating /etc/mtab symlink: permission denied", 126,
         "config", "the container asks for more rights than its user has"),
        ("Error: cannot set shmsize when running in the {host } IPC Namespace", 125,
         "config", "shared memory of the host has the host's size"),
        ("Error: stat /dev/infiniband: no such file or directory", 125,
         "node", "the device /dev/infiniband does not exist on this node"),
        ('Error: default OCI runtime "nvidia" not found: invalid argument', 125,
         "config", "the node has no OCI runtime nvidia"),
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", 126,
         "node", "the node's description of its GPUs lacks nvidia.com/gpu=all"),
        ("Error: statfs /nonexist: no such file or directory", 125,
         "node", "the mount /nonexist does not exist on this node"),
        ("Error: /workspace: duplicate mount destination", 125,
         "config", "two mounts have the same place inside"),
        (RUNC + 'exec: "/nosuch": stat /nosuch: no such file or directory' + NOT_FOUND, 127,
         "config", "the image has no /nosuch"),
        ("Error: crun: executable file `python4` not found in $PATH: No such file or directory"
         + NOT_FOUND, 127,
         "config", "the image has no python4"),
        (RUNC + 'exec: "/tmp": permission denied: OCI permission denied', 126,
         "config", "the image's /tmp can't be executed"),
        ("Error: unable to find user nosuch: no matching entries in passwd file", 126,
         "config", "the image has no user nosuch"),
        ("Error: unknown flag: --foo\nSee 'podman run --help'", 125,
         "config", "the runtime does not know --foo"),
        ('Error: short-name "missing:tag" did not resolve to an alias and no unqualified-search registries '
         'are defined in "/etc/containers/registries.conf"', 125,
         "config", "the image name missing:tag names no registry"),
        ("Error: missing:tag: image not known", 125, "node", "the image is not on this node"),
        ("Error: initializing source docker://localhost/missing:tag: pinging container registry localhost: "
         'Get "https://localhost/v2/": dial tcp 127.0.0.1:443: connect: connection refused', 125,
         "node", "the registry localhost can't be reached from this node"),
        (PULLING + 'pinging container registry registry.example: Get "https://registry.example/v2/": dial '
         "tcp: lookup registry.example: no such host", 125,
         "node", "the registry registry.example can't be reached from this node"),
        (PULLING + "reading manifest sha256:00 in registry.example/team/train: unauthorized: authentication "
         "required", 125, "config", "the registry refused the credential"),
        (PULLING + "reading manifest sha256:00 in registry.example/team/train: manifest unknown: manifest "
         "unknown", 125, "config", "the registry has no such image"),
        ("Error: payload does not match any of the supported image formats:\n * oci: open /x: not a "
         "directory\n * docker-archive: unexpected EOF", 125,
         "config", "the image file named in the log is of another kind"),
        ("Error: writing blob: storing blob to file: write /var/tmp/x: no space left on device", 125,
         "node", "the node has no room for the image"),
        ('Error: creating container storage: the container name "gpuci-77" is already in use by 3f', 125,
         "node", "a container of this job's name is there already"),
        ("Error: cannot find UID/GID for user ci: no subuid ranges found for user \"ci\" in /etc/subuid", 125,
         "node", "the user has too few ids for containers on this node"),
        ("Resource limits are not supported and ignored on cgroups V1 rootless systems", 0,
         "note", "podman ignores --memory and the like on this node"),
        (FORWARD, 143, "note", "podman could not pass a signal on"),
        # docker
        ("docker: Error response from daemon: unable to apply caps: operation not permitted", 125,
         "config", "the container asks for more rights than its user has"),
        ('docker: Error response from daemon: could not select device driver "" with capabilities: '
         "[[gpu]]", 125,
         "node", "docker can't pass GPUs on this node"),
        ("docker: Error response from daemon: Unknown runtime specified nvidia.", 125,
         "config", "the node has no OCI runtime nvidia."),
        ("Unable to find image 'missing:tag' locally", 125, "node", "the image is not on this node"),
        ("docker: Error response from daemon: No such image: missing:tag", 125,
         "node", "the image is not on this node"),
        ('docker: Error response from daemon: invalid mount config for type "bind": bind source path does '
         "not exist: /nonexist", 125, "node", "the mount /nonexist does not exist on this node"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
         "running?", 125,
         "node", "docker does not answer on this node"),
        # pyxis and enroot
        (PYXIS + "failed to create container filesystem for image: /nonexist.sqsh\n" + PYXIS +
         "    [ERROR] No such file or directory: /nonexist.sqsh", 1,
         "node", "pyxis can't unpack the image /nonexist.sqsh"),
        ("error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1", 1,
         "node", "pyxis could not start the container"),
        ("pyxis:     [ERROR] Invalid image format: /etc/passwd", 1,
         "config", "the image file /etc/passwd is of another kind"),
        (PYXIS + "--container-mounts: source path does not exist: /nonexist", 1,
         "node", "the mount /nonexist does not exist on this node"),
        ("srun: error: Invalid --container-mounts argument: badmount", 1,
         "config", "pyxis does not understand the mount badmount"),
        ("pyxis: importing docker image: localhost:1/foo:bar\ncurl: (7) Failed to connect to localhost port "
         "1 after 0 ms: Couldn't connect to server", 1,
         "node", "the registry named in the log can't be reached from this node"),
        ("pyxis: importing docker image: localhost:1/foo:bar", 1,
         "node", "enroot can't import the image localhost:1/foo:bar"),
        ("srun: unrecognized option '--container-image=foo'", 255,
         "config", "the runtime does not know --container-image=foo"),
        ("[ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container\n"
         "[ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1", 1,
         "node", "the library that passes GPUs failed or is missing on this node"),
        # Slurm's own containers
        ("fatal: _generate_pattern: unexpected replacement character: U", 1,
         "node", "Slurm's own containers are set up wrongly on this cluster"),
        ("error: _parse_next_key: Parsing error at unrecognized key: EnvExclude", 1,
         "node", "Slurm's own containers are set up wrongly on this cluster"),
        ("invalid rootfs: not an absolute path, or a symlink", 1,
         "node", "Slurm's own containers are set up wrongly on this cluster"),
        ("error: _try_parse: JSON parsing error 71 bytes: boolean expected", 0,
         "note", "Slurm said something of JSON that means nothing"),
        # ours
        ("gpuci: the node has no image sha256:00 (container.image); an id without a registry is never pulled",
         125,
         "node", "the image is not on this node"),
        ("gpuci: another job has been pulling the image for an hour", 125,
         "node", "the image is being pulled on this node by another job"),
        # no text that is known
        ("", 125, "node", "the container engine failed"),
        ("", 126, "config", "the image's Python can't be executed"),
        ("", 127, "config", "the image has no such Python"),
        ("Killed", 137, "ended", "the container was killed"),
        ("", 143, "ended", "the container was ended"),
        ("words", 9, "ended", "the container ended with exit code 9"),
        ("words", None, "ended", "the container ended"),
    ],
)  # fmt: skip
def test_explained(text: str, code: int | None, kind: str, what: str) -> None:
    message = explain(text, code)
    assert (message.kind, message.what) == (kind, what)
    assert message.why
    assert message.then


REFUSED, NONE = "the registry refused the credential", "the registry has no such image"
BUSY = "the registry does not serve the image now"
UNREACHABLE = "the registry registry.example can't be reached from this node"
PINGING = PULLING + 'pinging container registry registry.example: Get "https://registry.example/v2/": '
TRYING = "Error response from daemon: "


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        # the configuration's: each node hears it
        (PULLING + "unable to retrieve auth token: invalid username/password: unauthorized", "config",
         REFUSED),
        (PULLING + "errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication"
         " required\n", "config", REFUSED),
        (PULLING + "denied: denied", "config", REFUSED),
        (PULLING + "Requesting bearer token: invalid status code from registry 403 (Forbidden)", "config",
         REFUSED),
        (TRYING + "pull access denied for a/b, repository does not exist or may require a login",
         "config", REFUSED),
        (TRYING + 'Get "https://registry.example/v2/": no basic auth credentials', "config", REFUSED),
        ("pyxis:     [ERROR] URL https://registry.example/v2/ returned error code: 401 Unauthorized",
         "config", REFUSED),
        (PULLING + "reading manifest x: name unknown: repository name not known to registry", "config",
         NONE),
        (TRYING + "manifest for a/b@sha256:00 not found: manifest unknown", "config", NONE),
        ("pyxis:     [ERROR] URL https://registry.example/v2/ returned error code: 404 Not Found", "config",
         NONE),
        (PULLING + "choosing an image from manifest list: no image found in image index for architecture x",
         "config", "the image is for another kind of processor"),
        ("Error: parsing reference: invalid reference format: repository name must be lowercase", "config",
         "container.image is no name of an image"),
        # what may go by, or may be another node's luck
        (PINGING + "dial tcp 10.0.0.1:443: i/o timeout", "node", UNREACHABLE),
        (PINGING + "dial tcp 10.0.0.1:443: connect: connection refused", "node", UNREACHABLE),
        (PINGING + "net/http: TLS handshake timeout", "node", UNREACHABLE),
        (PINGING + "remote error: tls: handshake failure", "node", UNREACHABLE),
        (PINGING + "x509: certificate signed by unknown authority", "node", UNREACHABLE),
        (PINGING + "context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "node",
         UNREACHABLE),
        (PINGING + "EOF", "node", UNREACHABLE),
        (PULLING + "writing blob: read tcp 10.0.0.2:5->10.0.0.1:443: connection reset by peer", "node",
         "the registry named in the log can't be reached from this node"),
        (PULLING + "toomanyrequests: You have reached your unauthenticated pull rate limit", "node", BUSY),
        (PULLING + "received unexpected HTTP status: 503 Service Unavailable", "node", BUSY),
        (PULLING + "Requesting bearer token: invalid status code from registry 502 (Bad Gateway)", "node",
         BUSY),
        (PULLING + "toomanyrequests: x: unauthorized: authentication required", "node", BUSY),
        ("pyxis:     [ERROR] URL https://registry.example/v2/ returned error code: 429 Too Many Requests",
         "node", BUSY),
        ("Error: writing blob: open /x: permission denied: no", "node", "the container engine failed"),
    ],
)  # fmt: skip
def test_an_image_that_can_not_be_had(text: str, kind: str, what: str) -> None:
    message = explain(text, 125)
    assert (message.kind, message.what) == (kind, what)


def test_what_a_message_repeats_is_short_and_printable() -> None:
    message = explain(f"Error: statfs /a\x1b[2J{'b' * 1000}: no such file or directory", 125)
    assert message.what.startswith("the mount /a?[2Jbb")
    assert len(message.what) < 300
