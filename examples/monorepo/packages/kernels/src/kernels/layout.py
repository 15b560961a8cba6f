"""Shapes and strides."""

from __future__ import annotations

from typing import Sequence


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the steps of a row-major array, in elements."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


def offset(shape: Sequence[int], index: Sequence[int]) -> int:
    """Return where an element lies; raises IndexError outside the shape."""
    if any(not 0 <= position < size for position, size in zip(index, shape)):
        raise IndexError(f"{tuple(index)} lies outside {tuple(shape)}")
    return sum(step * position for step, position in zip(strides(shape), index))


def broadcast(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """Return the common shape of two arrays; raises ValueError if there is none."""
    rank = max(len(left), len(right))
    pairs = list(zip(_widen(left, rank), _widen(right, rank)))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise ValueError(f"{tuple(left)} and {tuple(right)} do not fit")
    return tuple(b if a == 1 else a for a, b in pairs)


def _widen(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + tuple(shape)
