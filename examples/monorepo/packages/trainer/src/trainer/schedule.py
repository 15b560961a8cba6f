"""The learning rate over time."""

from __future__ import annotations


def warmup(step: int, *, peak: float, steps: int) -> float:
    """Rise linearly to the peak in `steps` steps, then stay."""
    return peak * min(1.0, (step + 1) / steps)


def rows_per_device(batch: int, devices: int) -> int:
    """Return each device's share of a batch; raises ValueError if it can't be equal."""
    if batch % devices:
        raise ValueError(f"a batch of {batch} does not divide over {devices} devices")
    return batch // devices
