"""A build -> the commands of podman or docker, and the environment that they get. Pure.

What is built is code of whoever wrote the Dockerfile. So a builder gets no credential, no variable of the
run, and (podman) a store of its own that goes away with the job: in a shared one, a layer or a cache mount
(`RUN --mount=type=cache`) of a stranger's build could come into the next one. And podman takes base images
from registries only: its `FROM docker-archive:/path` or `FROM docker-daemon:name` are the machine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuci.images.settings import Build

BUILDERS = ("auto", "podman", "docker")
# Whose signature policy counts: the first that is there (containers-policy.json(5)).
POLICIES = (".config/containers/policy.json", "/etc/containers/policy.json")
_ACCEPT, _REJECT = [{"type": "insecureAcceptAnything"}], [{"type": "reject"}]
_TAG = "localhost/gpuci-build:1"
_KEPT = (
    *("PATH", "LANG", "XDG_RUNTIME_DIR", "DOCKER_HOST", "BUILDX_BUILDER", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
# A user's own settings -> the variable that names them, since the builder's HOME is an empty one.
_SETTINGS = {
    ".config/containers/storage.conf": "CONTAINERS_STORAGE_CONF",
    ".config/containers/containers.conf": "CONTAINERS_CONF",
    ".config/containers/registries.conf": "CONTAINERS_REGISTRIES_CONF",
    ".docker/buildx": "BUILDX_CONFIG",
}


@dataclass(frozen=True)
class Scene:
    """Where a build takes place: absolute paths. `tree` holds the files that the build sees.

    `state` is for podman's sockets and locks: at most 50 characters (podman 4.3, "runroot is longer than").
    """

    tree: str
    archive: str
    home: str
    store: str
    state: str

    @property
    def login(self) -> str:
        """A file with no login in it."""
        return f"{self.home}/config.json"


def commands(builder: str, build: Build, scene: Scene) -> list[list[str]]:
    """What to run, one after the other: the image is an OCI archive then."""
    if builder == "docker":
        # Without attestations: they would make a list of two images of it.
        output = f"--output=type=oci,dest={scene.archive}"
        plain = ["--progress=plain", "--provenance=false", "--sbom=false", "--no-cache"]
        return [["docker", "buildx", "build", *plain, output, *_options(build, scene)]]
    podman = podman_of(scene)
    return [
        [*podman, "build", "--format=oci", f"--tag={_TAG}", *_options(build, scene)],
        [*podman, "save", "--quiet", "--format=oci-archive", f"--output={scene.archive}", _TAG],
    ]


def podman_of(scene: Scene) -> list[str]:
    """podman with a store of its own."""
    return ["podman", f"--root={scene.store}/root", f"--runroot={scene.state}"]


def policy(machines: Mapping[str, Any], scene: Scene) -> dict[str, Any]:
    """The machine's policy for images of registries; of all others only those in the build's own store."""
    transports = machines.get("transports") or {}
    docker = {"": machines.get("default") or _ACCEPT, **(transports.get("docker") or {})}
    own = {f"[{scene.store}/root]": _ACCEPT}
    return {"default": _REJECT, "transports": {"docker": docker, "containers-storage": own}}


def environment(environ: Mapping[str, str], scene: Scene, present: Mapping[str, str]) -> dict[str, str]:
    """What a builder gets: the machine's settings, and nothing of the run. `present` is of `settings`."""
    kept = {name: environ[name] for name in _KEPT if name in environ}
    own = {"HOME": scene.home, "TMPDIR": scene.store, "LC_ALL": "C.UTF-8"}
    logins = {"DOCKER_CONFIG": scene.home, "REGISTRY_AUTH_FILE": scene.login}
    return {**present, **kept, **own, **logins}


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Variable -> file or directory of the user that it should name, if that is there."""
    home = environ.get("HOME", "")
    named = {variable: environ.get(variable) or f"{home}/{path}" for path, variable in _SETTINGS.items()}
    return {name: path for name, path in named.items() if path.startswith("/") and (home or name in environ)}


def _options(build: Build, scene: Scene) -> Iterator[str]:
    yield f"--file={scene.tree}/{build.file}"
    for name, value in build.args:
        yield f"--build-arg={name}={value}"
    if build.target:
        yield f"--target={build.target}"
    if build.platform:
        yield f"--platform={build.platform}"
    yield "--"
    yield scene.tree if build.context == "." else f"{scene.tree}/{build.context}"
