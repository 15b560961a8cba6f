"""What builders say -> what a person is told; the texts are those of the programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.images.messages import explain, no_builder

STEP = 'Error: building at STEP "{}": '
CASES = [
    (STEP.format("RUN pip install torch") + "while running runtime: exit status 1", "failed",
     "the Dockerfile's step failed: RUN pip install torch"),
    ('ERROR: failed to solve: process "/bin/sh -c false" did not complete successfully: exit code: 1',
     "failed", "the Dockerfile's step failed: /bin/sh -c false"),
    (STEP.format("COPY nosuch /x") + 'checking on sources under "/s/tree": copier: stat: "/nosuch": '
     "no such file or directory", "failed", "the Dockerfile copies a file that the build doesn't see"),
    ('ERROR: failed to solve: failed to compute cache key: failed to calculate checksum of ref x: "/nosuch": '
     "not found", "failed", "the Dockerfile copies a file that the build doesn't see"),
    (STEP.format("RUN make") + "while running runtime: write /out: no space left on device", "infra",
     "the disk of the runner is full"),
    ("Error: writing blob: storing blob to file: write /var/tmp/storage1: no space left on device", "infra",
     "the disk of the runner is full"),
    ("ERROR: OCI exporter is not supported for the docker driver.\nSwitch to a different driver, or turn on "
     "the containerd image store, and try again.",
     "config_error", "docker's builder can't write an OCI archive"),
    ("docker: 'buildx' is not a docker command.", "config_error",
     "docker on the runner has no buildx, or an old one"),
    ("ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
     "running?", "infra", "docker's daemon does not answer on the runner"),
    ('Error: creating build container: short-name "python:3.12" did not resolve to an alias and no '
     "unqualified-search registries are defined", "failed", "the base image python:3.12 names no registry"),
    ("Error: creating build container: initializing source docker://ghcr.io/a/b:1: reading manifest 1 in "
     "ghcr.io/a/b: manifest unknown", "failed", "the base image does not exist"),
    ("Error: creating build container: initializing source docker://ghcr.io/a/b:1: reading manifest 1 in "
     "ghcr.io/a/b: unauthorized: authentication required", "config_error",
     "the registry does not give the base image without a login"),
    ("ERROR: failed to solve: a/b: pull access denied, repository does not exist or may require "
     "authorization: server message: insufficient_scope: authorization failed", "config_error",
     "the registry does not give the base image without a login"),
    ("Error: creating build container: Source image rejected: Running image oci-archive:/a.tar: is rejected "
     "by policy.", "failed", "the Dockerfile's base image is refused"),
    ("Error: reading manifest 3 in docker.io/library/python: toomanyrequests: You have reached your pull "
     "rate limit.", "infra", "the registry of the base image takes no more requests for now"),
    ("Error: pinging container registry 127.0.0.1:1: Get \"https://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: "
     "connect: connection refused", "infra", "a host that the build needs can't be reached"),
    ("ERROR: failed to solve: target stage \"tset\" could not be found", "config_error",
     "the Dockerfile has no stage tset"),
    ('Error: The target "nope" was not found in the provided Dockerfile', "config_error",
     "the Dockerfile has no stage nope"),
    ("Error: building: no stages to build", "failed", "the Dockerfile can't be read"),
    ("unknown flag: --progress\n\nUsage:  docker [OPTIONS] COMMAND [ARG...]", "config_error",
     "docker on the runner has no buildx, or an old one"),
    ("exec container process `/bin/sh`: Exec format error\nexec format error", "config_error",
     "the runner can't run programs of container.build.platform"),
    ("Error: cannot find UID/GID for user runner: no subuid ranges found for user \"runner\" in /etc/subuid",
     "infra", "podman has no range of user ids for the runner's user"),
    ("ERROR: failed to solve: dockerfile parse error on line 1: unknown instruction: FORM", "failed",
     "the Dockerfile can't be read"),
    ("something else", "failed", "the image was not built: the builder ended with 125"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "verdict", "what"), CASES, ids=[what for _, _, what in CASES])
def test_causes(said: str, verdict: str, what: str) -> None:
    error = explain(f"STEP 1/2: FROM scratch\n{said}", 125)
    assert (error.verdict, error.what) == (verdict, what)
    assert error.why
    assert error.then


@given(st.text())
def test_of_what_a_dockerfile_prints_a_message_repeats_a_short_line(said: str) -> None:
    error = explain(f'building at STEP "{said}": x', 1)
    assert error.what.isprintable()
    assert len(error.what) < 300


@pytest.mark.parametrize(
    ("wanted", "program"), [("auto", "podman or docker"), ("podman", "podman"), ("docker", "docker")]
)
def test_no_builder(wanted: str, program: str) -> None:
    error = no_builder(wanted)
    assert error.what == f"the runner has no {program}, which builds the image"
    assert error.exit_code == 2
