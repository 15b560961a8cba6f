"""One batch over several devices."""

from __future__ import annotations

from typing import Sequence, TypeVar

Row = TypeVar("Row")


def scatter(rows: Sequence[Row], devices: int) -> list[Sequence[Row]]:
    """Cut rows into one contiguous part per device; the first parts are one longer."""
    size, longer = divmod(len(rows), devices)
    cuts = [device * size + min(device, longer) for device in range(devices + 1)]
    return [rows[start:stop] for start, stop in zip(cuts, cuts[1:])]


def gather(parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Join what `scatter` cut."""
    return [row for part in parts for row in part]
