"""The resolved configuration as frozen values, every one with a default. Pure, standard library only.

What each setting means to a user is in docs/configuration.md; the shape is schemas/config.schema.json.
Paths are ROOT-relative POSIX paths without `./`, times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class MarkerRule:
    """What a mark says of a test. `name` may be a glob (`*_nightly`)."""

    name: str
    gpus: int | None = None
    mode: str | None = None
    profile: str | None = None
    when: str = "always"  # or "schedule": skipped unless the event is schedule


@dataclass(frozen=True)
class Profile:
    """A kind of node."""

    name: str
    gpu: str = ""
    gpus: int = 8
    memory_gb: float | None = None
    compute_capability: str | None = None
    slurm: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Node:
    """How tests share a node."""

    python: str | None = None
    workers_per_gpu: int = 1
    cpu_workers: int | None = None
    gpu_isolation: str = "auto"
    isolate: str = "file"
    timeout: float = 900.0
    engine: str = "gpuci"
    fork: str = "auto"
    pytest_args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    preload: tuple[str, ...] = ()
    recycle_after_files: int | None = None


@dataclass(frozen=True)
class Shards:
    """How many shards: clamp(tests // min_tests, 1, max), pieces of at most piece_seconds."""

    max: int = 12
    min_tests: int = 40
    piece_seconds: float = 300.0


@dataclass(frozen=True)
class Config:
    """Everything of `.github/gpuci.yml` after overlays, references and defaults.

    `modes` maps a path or node id prefix to a mode, in the order written. `container`, `slurm`,
    `durations`, `label`, `cost` and `changes` are validated mappings with defaults filled in; the
    part that acts on one gives it a type of its own.
    """

    packages: tuple[str, ...] = (".",)
    modes: tuple[tuple[str, str], ...] = ()
    markers: tuple[MarkerRule, ...] = ()
    profiles: tuple[Profile, ...] = (Profile("default"),)
    node: Node = Node()
    shards: Shards = Shards()
    container: dict[str, Any] = field(default_factory=dict)
    slurm: dict[str, Any] = field(default_factory=dict)
    durations: dict[str, Any] = field(default_factory=dict)
    label: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)

    def profile(self, name: str | None) -> Profile:
        """The profile of that name, the first one for None; raises KeyError."""
        if name is None:
            return self.profiles[0]
        return {profile.name: profile for profile in self.profiles}[name]


DEFAULT_MARKERS: tuple[MarkerRule, ...] = (
    MarkerRule("gpu", gpus=1),
    MarkerRule("require_cuda_1gpu", gpus=1),
    MarkerRule("require_cuda_8gpu", gpus=8),
    MarkerRule("cpu", gpus=0, mode="cpu"),
    MarkerRule("sequential", mode="serial"),
    MarkerRule("serial", mode="serial"),
    MarkerRule("isolated", mode="isolated"),
    MarkerRule("*_nightly", when="schedule"),
)
