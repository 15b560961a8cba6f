"""Where to cut a file that is too long for one unit. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

ROUNDS = 20  # of bisection: balanced to a millionth of a piece


def cut(seconds: Sequence[float], piece_seconds: float) -> list[int]:
    """The end positions of the pieces of a list of functions, kept in order.

    As few pieces as have at most `piece_seconds` each, and those as equal as they can be. A function
    longer than that is a piece of its own. `cut([100, 250, 100, 100], 300) == [1, 2, 4]`.
    """
    ends: list[int] = []
    start = 0
    for stop in [*(i for i, value in enumerate(seconds) if value > piece_seconds), len(seconds)]:
        ends += [start + end for end in _balanced(seconds[start:stop], piece_seconds)]
        if stop < len(seconds):
            ends.append(stop + 1)
        start = stop + 1
    return ends


def _balanced(seconds: Sequence[float], limit: float) -> list[int]:
    """The ends of the fewest pieces within `limit`, at the lowest limit that gives as few."""
    sums = [0.0, *accumulate(seconds)]
    best = _fill(sums, limit)
    low, high = max([*seconds, sums[-1] / max(len(best), 1)], default=0.0), limit
    for _ in range(ROUNDS if len(best) > 1 else 0):
        middle = (low + high) / 2
        ends = _fill(sums, middle)
        if len(ends) <= len(best):
            best, high = ends, middle
        else:
            low = middle
    return best


def _fill(sums: Sequence[float], limit: float) -> list[int]:
    """Fill pieces from the front; `sums` are prefix sums, from 0."""
    ends: list[int] = []
    start = 0
    while start < len(sums) - 1:
        start = max(bisect_right(sums, sums[start] + limit) - 1, start + 1)
        ends.append(start)
    return ends
