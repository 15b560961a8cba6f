"""What podman and docker say when a build fails -> cause and next step. Pure.

Texts: podman 4.3 (buildah 1.28) as they came; docker 28, buildx 0.29 from their sources.
"""

from __future__ import annotations

import re

from gpuci.errors import GpuciError

_CUT = 200  # characters of a builder's text that a message repeats


class BuildFailed(GpuciError):
    """The image was not built. `verdict`: `failed` where the Dockerfile is to blame."""

    def __init__(self, what: str, *, why: str, then: str, verdict: str) -> None:
        super().__init__(what, why=why, then=then)
        self.verdict = verdict


# (text, verdict, what, why, then); {0} is what the text's groups matched. The first that matches counts.
_TABLE: tuple[tuple[str, str, str, str, str], ...] = (
    (
        r"no space left on device|disk quota exceeded",
        "infra",
        "the disk of the runner is full",
        "an image and its archive need room twice; hosted runners have about 14 GB that is promised",
        "make the image smaller, take a runner with a bigger disk (`runs-on`), or give an image by digest",
    ),
    (
        r"(?:OCI|Docker) exporter (?:is|feature is currently) not supported for (?:the )?docker",
        "config_error",
        "docker's builder can't write an OCI archive",
        "the driver `docker` of buildx does so only with the containerd image store",
        "install podman on the runner, or set up a builder before: `docker buildx create --use`",
    ),
    (
        r"is not a docker command|unknown (?:shorthand )?flag: .*(?:progress|provenance|sbom)"
        r"|unknown command: docker buildx",
        "config_error",
        "docker on the runner has no buildx, or an old one",
        "the build needs `docker buildx build --output=type=oci`",
        "install podman or docker's buildx plugin on the runner",
    ),
    (
        r"[Cc]annot connect to the Docker daemon|failed to connect to the docker API",
        "infra",
        "docker's daemon does not answer on the runner",
        "it is not running, or this user may not talk to it",
        "install podman, which needs no daemon, or start docker",
    ),
    (
        r"cannot find UID/GID for user|newuidmap|/etc/subuid|insufficient UIDs or GIDs",
        "infra",
        "podman has no range of user ids for the runner's user",
        "a rootless build needs lines in /etc/subuid and /etc/subgid",
        "let an administrator run `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`",
    ),
    (
        r"toomanyrequests|pull rate limit|429 Too Many Requests",
        "infra",
        "the registry of the base image takes no more requests for now",
        "Docker Hub counts pulls without a login by address, and hosted runners share theirs",
        "run the failed jobs again, or name a mirror in the Dockerfile's FROM",
    ),
    (
        r"(?:Running image|Source image rejected).*rejected by policy",
        "failed",
        "the Dockerfile's base image is refused",
        "it lies on the runner, not in a registry, or the machine's policy.json does not trust it",
        "name an image of a registry in the Dockerfile's FROM",
    ),
    (
        r"unauthorized: |pull access denied|insufficient_scope|authentication required|denied: ",
        "config_error",
        "the registry does not give the base image without a login",
        "a build of code that nobody merged gets no credential",
        "use a base image that needs no login, or build elsewhere and give the image by digest",
    ),
    (
        r"manifest unknown|name unknown|manifest for \S+ not found|: not found: manifest",
        "failed",
        "the base image does not exist",
        "the Dockerfile's FROM names a tag or digest that its registry doesn't have",
        "correct the FROM line, or container.build.args if the name comes from an ARG",
    ),
    (
        r'short-name "([^"\n]*)" did not resolve',
        "failed",
        "the base image {0} names no registry",
        "podman asks no registry that isn't named",
        "write it in full, such as docker.io/library/python:3.12",
    ),
    (
        r"(?:connection refused|no such host|i/o timeout|deadline exceeded|network is unreachable"
        r"|TLS handshake timeout)",
        "infra",
        "a host that the build needs can't be reached",
        "the registry of the base image, a package index, or the network of the runner",
        "run the failed jobs again; the log's last lines name the host",
    ),
    (
        r"(?:target stage|stage|target) \"?([\w.-]+)\"? (?:could not be|was not) found|no stage \S*([\w.-]+)",
        "config_error",
        "the Dockerfile has no stage {0}",
        "container.build.target names it",
        "correct the name, or leave container.build.target empty for the last stage",
    ),
    (
        r"(?:COPY|ADD)[^\n]*(?:no such file|not found|no items matching)|checking on sources under"
        r"|failed to compute cache key",
        "failed",
        "the Dockerfile copies a file that the build doesn't see",
        "the build sees the files of container.build.context that container.build.inputs names, no others",
        "add the file to container.build.inputs on the default branch, or correct the Dockerfile",
    ),
    (
        r"exec format error",
        "config_error",
        "the runner can't run programs of container.build.platform",
        "it is another architecture than the runner's",
        "use a runner of that architecture (`runs-on`)",
    ),
    (
        r"[Dd]ockerfile parse error|unknown instruction|Unknown instruction|no FROM statement|no build stage"
        r"|no stages to build",
        "failed",
        "the Dockerfile can't be read",
        "the log's last lines say which line",
        "correct it",
    ),
    (
        r"(?:building|error) at STEP \"([^\n\"]*)\"|failed to solve: process \"([^\n]*?)\" did not complete",
        "failed",
        "the Dockerfile's step failed: {0}",
        "its own output stands in the log above",
        "correct the Dockerfile, or what it copies",
    ),
)
_ROWS = [(re.compile(row[0]), row) for row in _TABLE]


def explain(said: str, code: int) -> BuildFailed:
    """The cause that a builder's last words name; of these a message repeats short parts only."""
    for pattern, (_text, verdict, what, why, then) in _ROWS:
        match = pattern.search(said)
        if match:
            return BuildFailed(what.format(_part(match)), why=why, then=then, verdict=verdict)
    return BuildFailed(
        f"the image was not built: the builder ended with {code}",
        why="it gave no reason that is known",
        then="read the log's last lines",
        verdict="failed",
    )


def no_builder(wanted: str) -> BuildFailed:
    """The help page for a runner without podman and docker."""
    program = "podman or docker" if wanted == "auto" else wanted
    return BuildFailed(
        f"the runner has no {program}, which builds the image",
        why="container.build asks for an image, and the runner is a machine without a builder",
        then="install podman on the runner, or give an image by digest (input `image`, or container.image)",
        verdict="config_error",
    )


def _part(match: re.Match[str]) -> str:
    found = next((group for group in match.groups() if group), "")
    return "".join(c if c.isprintable() else "?" for c in found)[:_CUT]
