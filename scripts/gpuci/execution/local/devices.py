"""The GPUs of this machine, or pretended ones."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from gpuci.errors import ConfigError


@dataclass(frozen=True)
class Devices:
    """Device ids for each shard that may run at once; `pretended` when no hardware is behind them."""

    sets: tuple[tuple[str, ...], ...]
    pretended: bool


def detect(device_dir: Path = Path("/dev"), visible: str | None = None) -> tuple[str, ...]:
    """Ids of the real GPUs: CUDA_VISIBLE_DEVICES if it is set, else one per /dev/nvidiaN."""
    if visible is None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [path.name for path in device_dir.glob("nvidia*")]
    numbers = sorted(int(name[6:]) for name in names if re.fullmatch(r"nvidia\d+", name))
    if visible is not None and numbers:
        return tuple(part.strip() for part in visible.split(",") if part.strip())
    return tuple(map(str, numbers))


def share_out(real: tuple[str, ...], *, wanted: int, asked: int | None, jobs: int) -> Devices:
    """Give each of `jobs` shards its devices: `asked` (--gpus) or `wanted` (the profile's) of them.

    Real devices are shared out disjointly; raises ConfigError when there are not enough. Without a GPU
    they are pretended, and every shard has its own set.
    """
    gpus = asked if asked is not None else min(wanted, len(real) // jobs) if real else wanted
    if not real:
        return Devices((tuple(map(str, range(gpus))),) * jobs, pretended=True)
    if gpus < 1 or gpus * jobs > len(real):
        raise ConfigError(
            f"{jobs} shards at once with {max(gpus, 1)} GPUs each are too many for the {len(real)} GPUs here",
            then="ask for fewer with --gpus or --jobs",
        )
    return Devices(tuple(real[job * gpus : (job + 1) * gpus] for job in range(jobs)), pretended=False)
