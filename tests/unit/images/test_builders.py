"""The commands of a build, and that a builder gets nothing that a stranger's Dockerfile could use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuci.images.builders import Scene, commands, environment, policy, settings
from gpuci.images.settings import Build

BUILD = Build("ghcr.io/team/train", "docker/Dockerfile", ".", (), (), "", "")
FULL = replace(
    BUILD, context="docker", args=(("A", "-x y"), ("B", "")), target="test", platform="linux/arm64"
)
SCENE = Scene("/s/tree", "/s/image/image.tar", "/s/home", "/s/store", "/tmp/state")

COMMANDS = [
    ("podman", BUILD, [
        "podman --root=/s/store/root --runroot=/tmp/state build --format=oci --tag=localhost/gpuci-build:1 "
        "--file=/s/tree/docker/Dockerfile -- /s/tree",
        "podman --root=/s/store/root --runroot=/tmp/state save --quiet --format=oci-archive "
        "--output=/s/image/image.tar localhost/gpuci-build:1",
    ]),
    ("podman", FULL, [
        "podman --root=/s/store/root --runroot=/tmp/state build --format=oci --tag=localhost/gpuci-build:1 "
        "--file=/s/tree/docker/Dockerfile --build-arg=A=-x y --build-arg=B= --target=test "
        "--platform=linux/arm64 -- /s/tree/docker",
        "podman --root=/s/store/root --runroot=/tmp/state save --quiet --format=oci-archive "
        "--output=/s/image/image.tar localhost/gpuci-build:1",
    ]),
    ("docker", FULL, [
        "docker buildx build --progress=plain --provenance=false --sbom=false --no-cache "
        "--output=type=oci,dest=/s/image/image.tar --file=/s/tree/docker/Dockerfile --build-arg=A=-x y "
        "--build-arg=B= --target=test --platform=linux/arm64 -- /s/tree/docker",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("builder", "build", "expected"), COMMANDS, ids=["podman", "podman, all", "docker, all"]
)
def test_commands(builder: str, build: Build, expected: list[str]) -> None:
    assert [" ".join(words) for words in commands(builder, build, SCENE)] == expected


def test_a_value_stays_one_argument() -> None:
    words = commands("podman", FULL, SCENE)[0]
    assert "--build-arg=A=-x y" in words


RUNNER = {
    "PATH": "/usr/bin",
    "HOME": "/home/runner",
    "https_proxy": "http://proxy:3128",
    "XDG_RUNTIME_DIR": "/run/user/1001",
    "GPUCI_TOKEN": "ghs_1",
    "GITHUB_TOKEN": "ghs_2",
    "GITHUB_OUTPUT": "/tmp/output",
    "GITHUB_ENV": "/tmp/env",
    "ACTIONS_RUNTIME_TOKEN": "a",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "b",
    "ACTIONS_CACHE_URL": "c",
    "REGISTRY_AUTH_FILE": "/home/runner/auth.json",
    "DOCKER_CONFIG": "/home/runner/.docker",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "BUILDAH_ISOLATION": "chroot",
}


def test_the_environment_holds_nothing_of_the_run() -> None:
    found = environment(RUNNER, SCENE, {"CONTAINERS_CONF": "/home/runner/.config/containers/containers.conf"})
    assert found == {
        "PATH": "/usr/bin",
        "https_proxy": "http://proxy:3128",
        "XDG_RUNTIME_DIR": "/run/user/1001",
        "CONTAINERS_CONF": "/home/runner/.config/containers/containers.conf",
        "HOME": "/s/home",
        "TMPDIR": "/s/store",
        "LC_ALL": "C.UTF-8",
        "DOCKER_CONFIG": "/s/home",
        "REGISTRY_AUTH_FILE": "/s/home/config.json",
    }


def test_a_users_own_settings_are_named_and_no_login_among_them() -> None:
    found = settings({"HOME": "/home/runner", "CONTAINERS_CONF": "/etc/own.conf"})
    assert found == {
        "CONTAINERS_STORAGE_CONF": "/home/runner/.config/containers/storage.conf",
        "CONTAINERS_CONF": "/etc/own.conf",
        "CONTAINERS_REGISTRIES_CONF": "/home/runner/.config/containers/registries.conf",
        "BUILDX_CONFIG": "/home/runner/.docker/buildx",
    }


def test_a_user_without_a_home_has_no_settings() -> None:
    assert settings({}) == {}
    assert settings({"CONTAINERS_CONF": "/etc/own.conf"}) == {"CONTAINERS_CONF": "/etc/own.conf"}
    assert settings({"CONTAINERS_CONF": "own.conf", "HOME": ""}) == {}


ACCEPT, REJECT = [{"type": "insecureAcceptAnything"}], [{"type": "reject"}]
SIGNED = [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "/etc/key"}]
POLICIES = [
    ("none", {}, {"": ACCEPT}),
    ("the usual one", {"default": ACCEPT, "transports": {"docker-daemon": {"": ACCEPT}}}, {"": ACCEPT}),
    ("a strict one", {"default": REJECT, "transports": {"docker": {"docker.io": SIGNED}}},
     {"": REJECT, "docker.io": SIGNED}),
    ("of registries", {"default": REJECT, "transports": {"docker": {"": SIGNED}}}, {"": SIGNED}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("machines", "docker"), [case[1:] for case in POLICIES], ids=[case[0] for case in POLICIES]
)
def test_base_images_come_from_registries_as_the_machine_trusts_them(
    machines: dict[str, object], docker: dict[str, object]
) -> None:
    """And from the build's own store, for stages and for what is saved."""
    assert policy(machines, SCENE) == {
        "default": REJECT,
        "transports": {"docker": docker, "containers-storage": {"[/s/store/root]": ACCEPT}},
    }
