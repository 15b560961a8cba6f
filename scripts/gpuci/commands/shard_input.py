"""The environment of the run-gpu-shard script -> values; all that is missing is named together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuci.errors import ConfigError

_REQUIRED = {
    "GPUCI_PLAN": "path of plan.json",
    "GPUCI_SHARD": "index of the shard, or `all`",
    "GPUCI_TREE": "the checked-out tree, or a bare repository that holds GPUCI_SHA",
    "GPUCI_OUT": "a new directory for results",
}
_GITHUB = ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT")


@dataclass(frozen=True)
class ShardInput:
    """What one step is to do. `shard` 0: all of the plan. `sha` empty: the tree as it lies there."""

    plan: str
    shard: int
    tree: str
    out: str
    sha: str
    subdirectory: str
    approver: str
    repository: str
    run: str
    attempt: int
    on_actions: bool


def read(environ: Mapping[str, str]) -> ShardInput:
    """Raises ConfigError naming each variable that is missing or makes no sense."""
    problems = [f"{name} is not set: {what}" for name, what in _REQUIRED.items() if not environ.get(name)]
    shard, attempt = environ.get("GPUCI_SHARD", ""), environ.get("GITHUB_RUN_ATTEMPT", "1")
    if shard and shard != "all" and not _counts(shard):
        problems.append(f"GPUCI_SHARD is {shard!r}: an index from 1 on, or `all`")
    if not _counts(attempt):
        problems.append(f"GITHUB_RUN_ATTEMPT is {attempt!r}: a number from 1 on")
    problems += [f"{name} is not set: GitHub sets it" for name in _GITHUB[:2] if not environ.get(name)]
    if problems:
        raise ConfigError(
            "; ".join(problems), then="set them in `env:` of the step (actions/run-gpu-shard does)"
        )
    return ShardInput(
        plan=environ["GPUCI_PLAN"],
        shard=0 if shard == "all" else int(shard),
        tree=environ["GPUCI_TREE"],
        out=environ["GPUCI_OUT"],
        sha=environ.get("GPUCI_SHA", ""),
        subdirectory=environ.get("GPUCI_SUBDIRECTORY", ""),
        approver=environ.get("GPUCI_APPROVER", ""),
        repository=environ["GITHUB_REPOSITORY"],
        run=environ["GITHUB_RUN_ID"],
        attempt=int(attempt),
        on_actions=environ.get("GITHUB_ACTIONS") == "true",
    )


def _counts(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0
