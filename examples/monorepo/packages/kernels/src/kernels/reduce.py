"""Reductions in the order in which a device makes them."""

from __future__ import annotations

import math
from typing import Sequence


def tree_sum(values: Sequence[float]) -> float:
    """Add neighbours until one value is left; 0 for none."""
    if len(values) < 2:
        return values[0] if values else 0.0
    pairs = [sum(values[start : start + 2]) for start in range(0, len(values), 2)]
    return tree_sum(pairs)


def online_softmax(values: Sequence[float]) -> list[float]:
    """Softmax with one pass for maximum and sum."""
    top, total = -math.inf, 0.0
    for value in values:
        higher = max(top, value)
        total = total * math.exp(top - higher) + math.exp(value - higher)
        top = higher
    return [math.exp(value - top) / total for value in values]


def ring_allreduce(parts: Sequence[Sequence[float]]) -> list[list[float]]:
    """Give every device the sum of all parts, passing one part to the neighbour at each step.

    `parts` has one equally long row per device.
    """
    devices = len(parts)
    sums = [list(part) for part in parts]
    passing = [list(part) for part in parts]
    for _ in range(devices - 1):
        passing = [passing[device - 1] for device in range(devices)]
        sums = [[a + b for a, b in zip(mine, other)] for mine, other in zip(sums, passing)]
    return sums
