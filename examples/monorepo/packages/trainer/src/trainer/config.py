"""What a training run is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping


@dataclass(frozen=True)
class TrainConfig:
    """`batch` rows per step over all devices, for `steps` steps."""

    steps: int = 10
    batch: int = 8
    rate: float = 0.1


def read(values: Mapping[str, str]) -> TrainConfig:
    """Read settings from text; raises ValueError for an unknown name or a value that is no number."""
    unknown = sorted(set(values) - {"steps", "batch", "rate"})
    if unknown:
        raise ValueError(f"unknown settings: {', '.join(unknown)}")
    default = TrainConfig()
    return TrainConfig(
        steps=int(values.get("steps", default.steps)),
        batch=int(values.get("batch", default.batch)),
        rate=float(values.get("rate", default.rate)),
    )
