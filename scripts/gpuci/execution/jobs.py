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
    """What a job is told about its node: devices by id, the name that keeps nodes apart."""

    name: str
    gpus: tuple[str, ...]
    workers_per_gpu: int = 1
    cpu_workers: int = 0


@dataclass(frozen=True)
class Paths:
    """Where a job finds the tree and leaves its files; absolute."""

    root: str
    out: str
    scratch: str


def shard_units(plan: Plan, index: int) -> tuple[Unit, ...]:
    """The units of a shard, or of the cpu pool (index 0)."""
    wanted = plan.cpu_units if index == CPU_POOL else plan.shards[index - 1].units
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
) -> dict[str, Any]:
    """The document job.json of one try of one shard; `units` are those of a retry, else all of the shard."""
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
        "settings": _settings(config, paths),
        "markers": [
            {"name": rule.name, "gpus": rule.gpus, "mode": rule.mode, "when": rule.when}
            for rule in config.markers
        ],
        "roots": [_root(root) for root in plan.roots if any(unit.root == root.path for unit in units)],
        "units": [asdict(unit) for unit in units],
    }


def _settings(config: Config, paths: Paths) -> dict[str, Any]:
    return {
        "engine": config.node.engine,
        "env": dict(config.node.env),
        "isolate": config.node.isolate,
        "fork": config.node.fork == "auto",
        "preload": list(config.node.preload),
        "recycle_after_files": config.node.recycle_after_files,
        "pytest_args": list(config.node.pytest_args),
        "pythonpath": [f"{paths.root}/{directory}" for directory in config.container.get("pythonpath", [])],
    }


def _root(root: Root) -> dict[str, Any]:
    return {
        "path": root.path,
        "config_file": root.config_file,
        "args": list(root.args),
        "gpu_isolation": root.gpu_isolation,
    }
