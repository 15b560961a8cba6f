"""Attention weights of one query."""

from __future__ import annotations

import math
from typing import Sequence


def softmax(scores: Sequence[float]) -> list[float]:
    """Return weights that sum to 1; raises ValueError for no scores."""
    top = max(scores)
    exponentials = [math.exp(score - top) for score in scores]
    return [value / sum(exponentials) for value in exponentials]


def attention(scores: Sequence[float], values: Sequence[float]) -> float:
    """Return the mean of the values, weighted by the softmax of the scores."""
    return sum(weight * value for weight, value in zip(softmax(scores), values))


def split_heads(width: int, heads: int) -> list[range]:
    """Return the columns of each head; raises ValueError unless heads divide the width."""
    if width % heads:
        raise ValueError(f"{heads} heads do not divide {width}")
    size = width // heads
    return [range(head * size, (head + 1) * size) for head in range(heads)]
