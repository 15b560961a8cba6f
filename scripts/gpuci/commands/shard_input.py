"""The environment of the run-gpu-shard script -> values; all that is missing is named together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuci.errors import ConfigError
from gpuci.execution.transport.login import AGENT, CERTIFICATE, KEY, KNOWN_HOSTS

_REQUIRED = {
    "GPUCI_PLAN": "path of plan.json",
    "GPUCI_SHARD": "index of the shard, or `all`",
    "GPUCI_TREE": "the checked-out tree, or a bare repository that holds GPUCI_SHA",
    "GPUCI_OUT": "a new directory for results",
}
_BY_GITHUB = {
    "GITHUB_REPOSITORY": "owner/name, in the names of jobs; GitHub sets it",
    "GITHUB_RUN_ID": "the run, in the names of jobs; GitHub sets it",
}
_OPTIONAL = {
    "GITHUB_RUN_ATTEMPT": "the attempt, in the names of jobs; GitHub sets it (else 1)",
    "GITHUB_ACTIONS": "`true`: the log is folded, and tests can't give workflow commands; GitHub sets it",
    "GPUCI_SHA": "the full SHA to deliver from a bare repository (else GPUCI_TREE as it lies there)",
    "GPUCI_SUBDIRECTORY": "with GPUCI_SHA: the directory of that commit that is ROOT",
    "GPUCI_APPROVER": "who approved the commit, for the comment of jobs",
    KNOWN_HOSTS: "text of known_hosts, beside `slurm.known-hosts`",
    KEY: "text of the private key for the login node",
    CERTIFICATE: "text of that key's certificate",
    AGENT: "an ssh-agent, in place of a key",
    "HOME": "what `~/` is in `slurm.known-hosts` and `slurm.identity-file`",
}
VARIABLES = {**_REQUIRED, **_BY_GITHUB, **_OPTIONAL}


def usage() -> str:
    """How the program is called, with its variables."""
    return "\n".join(
        [
            "usage: run_gpu_shard.py [clean-up]",
            "Runs shards of a plan on a Slurm cluster; clean-up ends what is left of them.",
            "Settings come by the environment:",
            *(f"  {name:<22} {what}" for name, what in {**_REQUIRED, **_BY_GITHUB}.items()),
            "and may be left out:",
            *(f"  {name:<22} {what}" for name, what in _OPTIONAL.items()),
            "clean-up needs no GPUCI_TREE and no GPUCI_OUT. docs/slurm.md has more.\n",
        ]
    )


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
    problems += [f"{name} is not set: GitHub sets it" for name in _BY_GITHUB if not environ.get(name)]
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
