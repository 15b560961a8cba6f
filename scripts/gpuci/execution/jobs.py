"""One shard of a plan -> the job document that its node gets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpuci.config.model import Config
from gpuci.model import Plan, Root, Unit
from gpuci.results.ownership import CPU_POOL
from gpuci_node.contract import SCHEMAS


@dataclass(frozen=True)
class NodeFacts:
    """What a job is told about its node: devices by id, the name that keeps nodes apart.

    In a Slurm job name and devices are None, found on the node; `expect_gpus` is how many it was asked for.
    """

    name: str | None
    gpus: tuple[str, ...] | None
    workers_per_gpu: int = 1
    cpu_workers: int = 0
    expect_gpus: int = 0


@dataclass(frozen=True)
class Paths:
    """Where a job finds the tree and leaves its files; absolute. None: found on the node."""

    root: str | None
    out: str
    scratch: str | None


@dataclass(frozen=True)
class Care:
    """What a job that is followed from afar takes care of. Times are seconds.

    `lease` is a file that whoever follows rewrites. `setup` is a shell text for the container. The last three
    are the limits of the node's health: memory in use on a GPU, free scratch, and of output in the log.
    """

    lease: str
    lease_seconds: float
    stall_seconds: float
    setup: str | None = None
    setup_seconds: float = 1800.0
    memory_mib: int = 1024
    free_mib: int = 512
    output_bytes: int = 32 * 1024 * 1024


def shard_units(plan: Plan, index: int) -> tuple[Unit, ...]:
    """The units of a shard, or of the cpu pool (index 0)."""
    wanted = plan.cpu_units if index == CPU_POOL else plan.shard(index).units
    by_id = {unit.id: unit for unit in plan.units}
    return tuple(by_id[unit_id] for unit_id in wanted)


def job_document(
    plan: Plan,
    config: Config,
    index: int,
    *,
    run: str,
    token: str,
    node: NodeFacts,
    paths: Paths,
    python: list[str],
    try_number: int = 1,
    units: Sequence[Unit] | None = None,
    care: Care | None = None,
) -> dict[str, Any]:
    """The document job.json of one try of one shard.

    `units` are those of a retry, else all of the shard; without `care` it is a job on this machine.
    """
    units = shard_units(plan, index) if units is None else units
    return {
        "schema": SCHEMAS["job"],
        "run": run,
        "shard": index,
        "try": try_number,
        "token": token,
        "event": plan.event,
        "python": python,
        "lifeline": True,
        "deadline_seconds": None,
        "paths": asdict(paths),
        "node": asdict(node),
        "link": None,
        **_care(care),
        "settings": _settings(config, paths),
        "markers": [
            {"name": rule.name, "gpus": rule.gpus, "mode": rule.mode, "when": rule.when}
            for rule in config.markers
        ],
        "roots": [_root(root) for root in plan.roots if any(unit.root == root.path for unit in units)],
        "units": [asdict(unit) for unit in units],
    }


def _care(care: Care | None) -> dict[str, Any]:
    if care is None:
        return dict.fromkeys(("lease", "stall_seconds", "health", "setup", "output_bytes"))
    return {
        "lease": {"path": care.lease, "seconds": care.lease_seconds},
        "stall_seconds": care.stall_seconds,
        "health": {"memory_mib": care.memory_mib, "free_mib": care.free_mib},
        "setup": {"text": care.setup, "seconds": care.setup_seconds} if care.setup else None,
        "output_bytes": care.output_bytes,
    }


def _settings(config: Config, paths: Paths) -> dict[str, Any]:
    above = f"{paths.root}/" if paths.root is not None else ""  # else the node puts it in front
    return {
        "engine": config.node.engine,
        "env": dict(config.node.env),
        "isolate": config.node.isolate,
        "fork": config.node.fork == "auto",
        "preload": list(config.node.preload),
        "recycle_after_files": config.node.recycle_after_files,
        "pytest_args": list(config.node.pytest_args),
        "pythonpath": [f"{above}{directory}" for directory in config.container.get("pythonpath", [])],
    }


def _root(root: Root) -> dict[str, Any]:
    return {
        "path": root.path,
        "config_file": root.config_file,
        "args": list(root.args),
        "gpu_isolation": root.gpu_isolation,
    }
