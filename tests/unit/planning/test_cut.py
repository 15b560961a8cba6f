"""Cutting a file between functions: in order, as few pieces as fit, as equal as they can be."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.planning.cut import cut


@pytest.mark.parametrize(
    ("seconds", "limit", "ends"),
    [
        ([], 300, []),
        ([100], 300, [1]),
        ([100, 100, 100], 300, [3]),
        ([100, 100, 100, 100], 300, [2, 4]),
        ([100, 250, 100, 100], 300, [1, 2, 4]),
        ([900], 300, [1]),
        ([10, 900, 10, 10], 300, [1, 2, 4]),
        ([900, 900], 300, [1, 2]),
        ([0, 0, 0], 300, [3]),
        ([1] * 700, 300, [234, 468, 700]),
    ],
    ids=[
        "nothing",
        "one",
        "just fits",
        "balanced, not filled up",
        "order is kept",
        "one long function is not cut",
        "a long function is a piece of its own",
        "two long ones",
        "no time at all",
        "many",
    ],
)
def test_pieces(seconds: list[float], limit: float, ends: list[int]) -> None:
    assert cut(seconds, limit) == ends


def pieces(seconds: list[int], ends: list[int]) -> list[list[int]]:
    return [seconds[start:end] for start, end in itertools.pairwise([0, *ends])]


lists_of_seconds = st.lists(st.integers(0, 40), min_size=1, max_size=12)


@given(lists_of_seconds)
def test_nothing_is_lost_and_only_single_functions_are_too_long(seconds: list[int]) -> None:
    parts = pieces(seconds, cut(seconds, 30))
    assert [value for part in parts for value in part] == seconds
    assert all(part and (sum(part) <= 30 or len(part) == 1) for part in parts)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=9))
def test_the_longest_piece_is_as_short_as_the_fewest_pieces_allow(seconds: list[int]) -> None:
    parts = pieces(seconds, cut(seconds, 30))
    places = range(1, len(seconds))
    ways = {
        count: [
            max(sum(part) for part in pieces(seconds, [*ends, len(seconds)]))
            for ends in itertools.combinations(places, count - 1)
        ]
        for count in range(1, len(seconds) + 1)
    }
    fewest = next(count for count, longest in ways.items() if min(longest) <= 30)
    assert len(parts) == fewest
    assert max(map(sum, parts)) == min(ways[fewest])
