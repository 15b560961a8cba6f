"""The environment of the run-gpu-shard script -> values; all that is missing is named together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuci.errors import ConfigError
from gpuci.execution.transport.login import AGENT, CERTIFICATE, KEY, KNOWN_HOSTS
from gpuci.github.use import use_of

_REQUIRED = {
    "GPUCI_PLAN": "path of plan.json",
    "GPUCI_SHARD": "index of the shard, or `all`",
    "GPUCI_OUT": "a new directory for results",
}
_BY_GITHUB = {
    "GITHUB_REPOSITORY": "owner/name, in the names of jobs; GitHub sets it",
    "GITHUB_RUN_ID": "the run, in the names of jobs; GitHub sets it",
}
_OPTIONAL = {
    "GITHUB_RUN_ATTEMPT": "the attempt, in the names of jobs; GitHub sets it (else 1)",
    "GITHUB_ACTIONS": "`true`: the log is folded, and tests can't give workflow commands; GitHub sets it",
    "GITHUB_EVENT_NAME": "with an event its commit needs an approval, if others pushed it; GitHub sets it",
    "GITHUB_SERVER_URL": "where the commit is fetched from; GitHub sets it",
    "GITHUB_API_URL": "where the approval is asked for; GitHub sets it",
    "GPUCI_NAME": "the name of this use, where a repository has several; it is in the names of jobs",
    "GPUCI_PLAN_DIGEST": "sha256:… of plan.json; another file is refused then",
    "GPUCI_SHA": "the full SHA to test, fetched if there is no GPUCI_TREE",
    "GPUCI_ROOT": "with GPUCI_SHA: the directory of that commit that is ROOT",
    "GPUCI_TREE": "a directory to test as it lies there, or a bare repository that holds GPUCI_SHA",
    "GPUCI_IMAGE": "the image by digest, in place of `container.image`",
    "GPUCI_TOKEN": "token for GitHub's API and for fetching the commit",
    KNOWN_HOSTS: "text of known_hosts, beside `slurm.known-hosts`",
    KEY: "text of the private key for the login node",
    CERTIFICATE: "text of that key's certificate",
    AGENT: "an ssh-agent, in place of a key",
    "HOME": "what `~/` is in `slurm.known-hosts` and `slurm.identity-file`",
}
VARIABLES = {**_REQUIRED, **_BY_GITHUB, **_OPTIONAL}
NOT_FOR_CLEAN_UP = ("GPUCI_OUT", "GPUCI_SHA", "GPUCI_ROOT", "GPUCI_TREE", "GPUCI_IMAGE", "GPUCI_TOKEN")


def usage() -> str:
    """How the program is called, with its variables."""
    return "\n".join(
        [
            "usage: run_gpu_shard.py [clean-up]",
            "Runs shards of a plan on a Slurm cluster; clean-up ends what is left of them.",
            "Settings come by the environment:",
            *(f"  {name:<26} {what}" for name, what in {**_REQUIRED, **_BY_GITHUB}.items()),
            "and may be left out, but for one of GPUCI_SHA and GPUCI_TREE:",
            *(f"  {name:<26} {what}" for name, what in _OPTIONAL.items()),
            f"clean-up needs no {', '.join(NOT_FOR_CLEAN_UP)}. docs/slurm.md has more.\n",
        ]
    )


@dataclass(frozen=True)
class ShardInput:
    """What one step is to do. `shard` 0: all of the plan. `sha` empty: the tree as it lies there.

    `run`: as the names of jobs have it.
    """

    plan: str
    plan_digest: str
    shard: int
    tree: str
    out: str
    sha: str
    root: str
    image: str
    repository: str
    run: str
    attempt: int
    on_actions: bool
    event: str
    server_url: str
    api_url: str


def read(environ: Mapping[str, str], *, clean_up: bool = False) -> ShardInput:
    """Raises ConfigError naming each variable that is missing or makes no sense."""
    problems = _problems(environ, clean_up)
    if problems:
        raise ConfigError(
            "; ".join(problems), then="set them in `env:` of the step (actions/run-gpu-shard does)"
        )
    shard = environ["GPUCI_SHARD"].strip()
    use = use_of(environ.get("GPUCI_NAME", "").strip())
    return ShardInput(
        plan=environ["GPUCI_PLAN"],
        plan_digest=environ.get("GPUCI_PLAN_DIGEST", "").strip(),
        shard=0 if shard == "all" else int(shard),
        tree=environ.get("GPUCI_TREE", ""),
        out=environ.get("GPUCI_OUT", ""),
        sha=environ.get("GPUCI_SHA", ""),
        root=environ.get("GPUCI_ROOT", ""),
        image=environ.get("GPUCI_IMAGE", "").strip(),
        repository=environ["GITHUB_REPOSITORY"],
        run=use.run(environ["GITHUB_RUN_ID"]),
        attempt=int(environ.get("GITHUB_RUN_ATTEMPT", "1")),
        on_actions=environ.get("GITHUB_ACTIONS") == "true",
        event=environ.get("GITHUB_EVENT_NAME", ""),
        server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
    )


def _problems(environ: Mapping[str, str], clean_up: bool) -> list[str]:
    required = [name for name in _REQUIRED if not (clean_up and name in NOT_FOR_CLEAN_UP)]
    problems = [f"{name} is not set: {_REQUIRED[name]}" for name in required if not environ.get(name)]
    shard, attempt = environ.get("GPUCI_SHARD", "").strip(), environ.get("GITHUB_RUN_ATTEMPT", "1")
    if shard and shard != "all" and not _counts(shard):
        problems.append(f"GPUCI_SHARD is {shard!r}: an index from 1 on, or `all`")
    if not _counts(attempt):
        problems.append(f"GITHUB_RUN_ATTEMPT is {attempt!r}: a number from 1 on")
    if not clean_up and not (environ.get("GPUCI_SHA") or environ.get("GPUCI_TREE")):
        problems.append("neither GPUCI_SHA nor GPUCI_TREE is set: the commit or the directory to test")
    return problems + [f"{name} is not set: GitHub sets it" for name in _BY_GITHUB if not environ.get(name)]


def _counts(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0
