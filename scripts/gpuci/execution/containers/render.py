"""A container's settings -> the shell functions that a job on a node calls. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any

from gpuci.execution.containers import docker, plain, podman, pyxis
from gpuci.execution.containers.settings import Settings, settings_of

_RUNTIMES: Mapping[str, Callable[[Settings], str]] = {
    "none": plain.functions,
    "podman": podman.functions,
    "docker": docker.functions,
    "pyxis": pyxis.functions,
}


def render(container: Mapping[str, Any], *, gpus: int, job_dir: str) -> str:
    """POSIX sh text that defines four functions, whatever the runtime.

    `container` is the resolved section of that name, with `python` the one to run; `gpus` is how many the
    shard's nodes have (0: the container gets none); `job_dir` is the job's directory on the shared folder.
    The node's own facts are taken from GPUCI_SCRATCH and SLURM_JOB_ID. Raises ConfigError.

    - `container_run ARGS…` becomes the Python of the image with ARGS, in the foreground, standard input and
      output passed on. With GPUCI_INSIDE set it is told of its job, for the keeper.
    - `container_pull` has the image on the node when it returns 0, and the credential gone in any case.
    - `container_remove` ends and removes the job's container; never fails, and says nothing.
    - `container_check` says on standard output what the node lacks and returns 1, or nothing and 0.
    """
    settings = settings_of(container, gpus=gpus, job_dir=job_dir)
    return f"GPUCI_JOB_DIR={quote(job_dir)}\n" + _RUNTIMES[settings.runtime](settings)
