"""Where a plan runs: on this machine, or as jobs of a Slurm cluster."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuci.commands.output import lines_of, say
from gpuci.config.model import Config
from gpuci.errors import ConfigError
from gpuci.execution.delivery.archive import Archive, archive
from gpuci.execution.delivery.notes import undelivered
from gpuci.execution.delivery.snapshot import Snapshot, snapshot
from gpuci.execution.local import devices, python
from gpuci.execution.local.run import LocalRun
from gpuci.execution.local.run import Options as LocalOptions
from gpuci.execution.slurm.check import check as check_jobs
from gpuci.execution.slurm.launch import Identity
from gpuci.execution.slurm.registry import registry_credential
from gpuci.execution.slurm.run import Options as SlurmOptions
from gpuci.execution.slurm.run import SlurmRun
from gpuci.execution.transport.connection import Connection
from gpuci.execution.transport.credentials import known_hosts
from gpuci.execution.transport.login import (
    AGENT,
    CERTIFICATE,
    HOST_KEYS,
    KEY,
    KNOWN_HOSTS,
    Login,
    login_from,
)
from gpuci.model import Plan, ShardRun
from gpuci.reporting.progress import Progress
from gpuci.reporting.text import plural

if TYPE_CHECKING:  # that module needs PyYAML, which run_gpu_shard.py does without
    from gpuci.commands.common import Tree

BACKENDS = ("local", "slurm")


@dataclass(frozen=True)
class Run:
    """A plan with the place where its results go."""

    tree: Tree
    plan: Plan
    out: Path
    name: str
    warnings: tuple[str, ...]


def execute(args: argparse.Namespace, run: Run) -> tuple[list[ShardRun], tuple[str, ...]]:
    """Run a plan on the backend that was asked for; with what is to be said of the tree that ran."""
    return _on_slurm(run) if args.backend == "slurm" else (_locally(args, run), ())


def check(args: argparse.Namespace, tree: Tree) -> None:
    """Raise ConfigError, before any work, for what the backend can't do."""
    if args.backend != "slurm":
        return
    if args.gpus or args.jobs != 1:
        raise ConfigError(
            "--gpus and --jobs are for runs on this machine",
            why="on a cluster the profile says how many GPUs a node has, and Slurm how many jobs run at once",
            then="leave them out with --backend slurm",
        )
    check_cluster(tree, os.environ)


def check_cluster(tree: Tree, environ: Mapping[str, str]) -> None:
    """Raise ConfigError for what keeps jobs from the cluster and can be found without connecting."""
    known_hosts(login_of(tree.config, tree.root, environ))
    check_jobs(tree.config)


def cluster_problems(tree: Tree) -> list[str]:
    """The same for `verify`, where a login node is named: there the secrets of a run need not be here."""
    slurm = tree.config.slurm
    if not slurm["login"]:
        return []
    hosts = "" if slurm["known-hosts"] else "given at run time"
    try:
        check_cluster(tree, {**os.environ, AGENT: "-", KNOWN_HOSTS: hosts, KEY: "", CERTIFICATE: ""})
    except ConfigError as error:
        return [error.what]
    return []


def login_of(config: Config, base: Path, environ: Mapping[str, str]) -> Login:
    """How to reach the cluster; relative files of the configuration are below `base`. Raises ConfigError."""
    slurm = dict(config.slurm)
    for name in ("identity-file",) if slurm.get(HOST_KEYS) else ("known-hosts", "identity-file"):
        if slurm[name] and not slurm[name].startswith("~"):
            slurm[name] = str(base / slurm[name])
    return login_from(slurm, environ)


def _locally(args: argparse.Namespace, run: Run) -> list[ShardRun]:
    config = run.tree.config
    chosen, because = python.choose(config.node.python, run.tree.root)
    say(f"tests run with {chosen} ({because})")
    shared_out = devices.share_out(devices.detect(), wanted=_widest(run), asked=args.gpus, jobs=args.jobs)
    if shared_out.pretended and run.plan.shards:
        pretended = plural(len(shared_out.sets[0]), "pretended device")
        say(f"no GPU here: each shard gets {'' if args.gpus else 'up to '}{pretended}")
    if len(run.plan.shards) > args.jobs == 1:
        say("shards run one after another (more at once: --jobs)")
    cpu_workers = config.node.cpu_workers or min(8, os.cpu_count() or 1)
    progress = Progress(run.plan, sys.stderr, environ=os.environ)
    with tempfile.TemporaryDirectory(prefix=f"gpuci-{run.name}-", ignore_cleanup_errors=True) as scratch:
        options = LocalOptions(
            run.tree.root,
            run.out,
            run.name,
            chosen,
            shared_out,
            cpu_workers,
            Path(scratch).resolve(),
            whole_sets=args.gpus is not None,
        )
        try:
            return LocalRun(run.plan, config, options, progress).run()
        finally:
            progress.close()


def _widest(run: Run) -> int:
    profiles: Sequence[str | None] = [shard.profile for shard in run.plan.shards] or [None]
    return max(run.tree.config.profile(profile).gpus for profile in profiles)


def _user() -> str:
    """Who runs this. A container's user can be a number that has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid{os.getuid()}"


def delivery_notes(taken: Snapshot, packed: Archive, plan: Plan) -> tuple[str, ...]:
    """In what the tree that runs is not the commit, or not the tree that was planned."""
    return (*taken.notes, *packed.missing, *undelivered(taken.files, {unit.file for unit in plan.units}))


def _on_slurm(run: Run) -> tuple[list[ShardRun], tuple[str, ...]]:
    """The shards as jobs; units that need no GPU are not ours to run there."""
    config = run.tree.config
    login = login_of(config, run.tree.root, os.environ)
    identity = Identity(f"{_user()}/{run.tree.root.name}", run.name, 1, run.plan.sha or "")
    shards = tuple(shard.index for shard in run.plan.shards)
    options = SlurmOptions(run.out, identity, shards, registry_credential(config))
    with tempfile.TemporaryDirectory(prefix="gpuci-", ignore_cleanup_errors=True) as scratch:
        taken = snapshot(run.tree.root, Path(scratch))
        packed = archive(taken, Path(scratch) / "tree.tar")
        notes = delivery_notes(taken, packed, run.plan)
        for note in notes:
            say(note)
        progress = Progress(run.plan, sys.stderr, environ=os.environ, elsewhere=True)

        def tell(text: str) -> None:
            progress.say(lines_of(text))

        connection = Connection(login, Path(scratch), tell)
        try:
            return SlurmRun(run.plan, config, options, connection, progress, tell).run(packed), notes
        finally:
            progress.close()
