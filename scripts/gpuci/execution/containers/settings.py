"""The section `container` as a frozen value, checked for what its runtime can do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuci.errors import ConfigError

RUNTIMES = ("none", "podman", "docker", "pyxis")

# Options that would break what a job relies on -> why they are refused.
_ENGINE_REFUSED: Mapping[str, str] = {
    "--authfile": "the credential comes from container.pull-credential-command, and tests can't read it",
    "--cidfile": "the container is found by its name",
    "--detach": "the job ends when its container does",
    "-d": "the job ends when its container does",
    "--entrypoint": "container.python is what runs",
    "--env-file": "container.env names the variables that the container gets",
    "--env-host": "container.env names the variables that the container gets",
    "--log-driver": "the output goes to the job's log",
    "--name": "the name is what cleans the container up",
    "--pid": "the container's first process ends all others in it",
    "--pull": "the image is pulled once, before the tests, and never by a test",
    "--replace": "gpuci removes the container of a job itself",
    "--restart": "a container dies with its job",
    "--rm": "the container is removed with its job",
    "--tty": "the standard streams carry a protocol",
    "-t": "the standard streams carry a protocol",
}
_PYXIS_REFUSED: Mapping[str, str] = {
    "--container-image": "container.image is what runs",
    "--container-name": "a named container outlives its job",
    "--container-save": "a job leaves nothing behind",
    "--export": "container.env names the variables that the container gets",
    "--ntasks": "one process a container",
    "-n": "one process a container",
    "--pty": "the standard streams carry a protocol",
}
_REFUSED = {"podman": _ENGINE_REFUSED, "docker": _ENGINE_REFUSED, "pyxis": _PYXIS_REFUSED, "none": {}}


@dataclass(frozen=True)
class Settings:
    """What a job's container is and gets; paths absolute, an empty text is a setting not made."""

    runtime: str
    image: str
    python: str
    mounts: tuple[str, ...]
    env: tuple[str, ...]
    user: str
    workdir: str
    network: str
    shm_size: str
    cap_add: tuple[str, ...]
    extra_options: tuple[str, ...]
    gpus: int
    job_dir: str

    @property
    def by_file(self) -> bool:
        """Whether the image is a file, such as an archive or a squashfs."""
        return self.image.startswith("/")

    @property
    def by_id(self) -> bool:
        """Whether the image is an id that only the nodes that have it know; no registry does."""
        return self.image.startswith("sha256:")


def settings_of(container: Mapping[str, Any], *, gpus: int, job_dir: str) -> Settings:
    """The settings of a resolved section; raises ConfigError with all that can't be."""
    texts = {name: str(container.get(name) or "") for name in ("runtime", "image", "user")}
    settings = Settings(
        **texts,
        python=str(container["python"]),
        mounts=tuple(container["mounts"]),
        env=tuple(container["env"]),
        workdir=str(container["workdir"]),
        network=str(container["network"]),
        shm_size=str(container["shm-size"]),
        cap_add=tuple(container["cap-add"]),
        extra_options=tuple(container["extra-options"]),
        gpus=gpus,
        job_dir=job_dir,
    )
    credential = bool(container["pull-credential-command"])
    missing = _image_problems(settings, built=bool(container.get("build")))
    _raise([*missing, *_problems(settings), *_pyxis_problems(settings, credential)])
    return settings


def _raise(problems: Sequence[str]) -> None:
    if problems:
        what = problems[0] if len(problems) == 1 else "\n  ".join([f"{len(problems)} problems:", *problems])
        raise ConfigError(what, then="docs/slurm.md says what each runtime can do")


def _image_problems(settings: Settings, built: bool) -> Iterator[str]:
    if settings.runtime == "none" or settings.image:
        return
    what = f"container.runtime is {settings.runtime}, and container.image names no image"
    yield (
        f"{what}; container.build is for runs on GitHub: set build to null here, and image" if built else what
    )


def _problems(settings: Settings) -> Iterator[str]:
    if settings.runtime not in RUNTIMES:
        yield f"container.runtime {settings.runtime!r} is none of {', '.join(RUNTIMES)}"
    for name, values in _lines(settings):
        if any(re.search(r"[\n\0]", value) for value in values):
            yield f"{name} holds a line break"
    yield from (f"container.env {name!r} is no variable's name" for name in settings.env if not _NAME(name))
    for name, path in (("the job directory", settings.job_dir), ("container.workdir", settings.workdir)):
        if not re.fullmatch(r'/[^:,"\n\0]*', path):
            yield f"{name} {path!r} can't be mounted: write an absolute path without `:`, `,` and `\"`"
    if settings.runtime == "docker" and any('"' in mount for mount in settings.mounts):
        yield "container.mounts: docker takes no quote in a path"
    yield from _option_problems(settings)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch


def _lines(settings: Settings) -> Iterator[tuple[str, Sequence[str]]]:
    """What is one line each, with the setting's name."""
    yield "container.image", [settings.image]
    yield "container.python", [settings.python]
    yield "container.user", [settings.user]
    yield "container.mounts", settings.mounts
    yield "container.shm-size", [settings.shm_size]
    yield "container.cap-add", settings.cap_add
    yield "container.extra-options", settings.extra_options


def _option_problems(settings: Settings) -> Iterator[str]:
    refused = _REFUSED.get(settings.runtime, {})
    for option in settings.extra_options:
        name = option.partition("=")[0]
        if re.match(r"--?[\w-]+\s", option):
            yield f"container.extra-options {option!r}: write the value after `=`, as in `--device=/dev/x`"
        elif name in refused:
            yield f"container.extra-options {name!r} can't be given: {refused[name]}"


def _pyxis_problems(settings: Settings, credential: bool) -> Iterator[str]:
    if settings.runtime != "pyxis":
        return
    if settings.by_id:
        yield "container.image is a local image's id, which pyxis can't start; name a registry's or a file"
    if settings.user not in ("", "root"):
        yield f"container.user {settings.user!r}: pyxis knows the job's own user (empty) and root"
    if credential:
        yield "container.pull-credential-command: pyxis takes credentials from enroot's configuration only"
