"""A shard on a virtual clock, and bounds that no schedule beats."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.model import Unit
from gpuci.planning.makespan import NodeShape, in_order, in_words, lower_bound, makespan


def unit(seconds: float, gpus: int = 1, mode: str = "normal", name: str = "t.py") -> Unit:
    return Unit(name, ".", name, "all", mode, gpus, "default", seconds, 900.0)


@pytest.mark.parametrize(
    ("units", "node", "seconds"),
    [
        ([], NodeShape(8), 0),
        ([unit(5)], NodeShape(8), 5),
        ([unit(5)] * 8, NodeShape(8), 5),
        ([unit(5)] * 9, NodeShape(8), 10),
        ([unit(5)] * 9, NodeShape(8, 2), 5),
        ([unit(3), unit(3), unit(2), unit(2), unit(2)], NodeShape(2), 7),
        ([unit(5, 8), unit(5)], NodeShape(8), 10),
        ([unit(5, 4), unit(5, 4), unit(5)], NodeShape(8), 10),
        ([unit(5, 4), *[unit(5)] * 4], NodeShape(8), 5),
        ([unit(5, 1, "serial"), unit(5)], NodeShape(8), 10),
        ([unit(5, 8, "serial"), unit(2, 8, "serial"), unit(1)], NodeShape(8), 8),
        ([unit(5, 16), unit(1)], NodeShape(8), 6),
        ([unit(4, 2), unit(4, 2), unit(1)], NodeShape(4, 2), 5),
        ([unit(0)] * 20, NodeShape(8), 0),
    ],
    ids=[
        "nothing",
        "one",
        "side by side",
        "one too many",
        "two workers on a GPU",
        "longest first",
        "all GPUs",
        "two halves",
        "a half and four",
        "alone",
        "alone, twice",
        "clipped to the node",
        "a wide unit holds all lanes",
        "no time at all",
    ],
)
def test_makespan(units: list[Unit], node: NodeShape, seconds: float) -> None:
    assert makespan(units, node) == seconds


def test_units_start_alone_then_widest_then_longest_then_in_their_order() -> None:
    units = [unit(9, name="a"), unit(9, name="b"), unit(1, 8, name="c"), unit(1, 1, "serial", name="d")]
    assert [each.id for each in in_order(units)] == ["d", "c", "a", "b"]


@pytest.mark.parametrize(
    ("units", "shards", "node", "seconds", "because"),
    [
        ([unit(5), unit(3)], 1, NodeShape(8), 5, "the longest piece, t.py (5 s), sets"),
        ([unit(5)] * 40, 1, NodeShape(8), 25, "the work as a whole sets"),
        ([unit(5)] * 40, 5, NodeShape(8), 5, "the longest piece, t.py (5 s), sets"),
        ([unit(5)] * 9, 1, NodeShape(8), 10, "the 9 longest pieces set"),
        ([unit(5, 5)] * 3, 1, NodeShape(8), 15, "files that need 5 or more GPUs set"),
        ([unit(5, 5)] * 3, 2, NodeShape(8), 10, "files that need 5 or more GPUs set"),
        ([unit(5, 1, "serial"), unit(3, 5)], 1, NodeShape(8), 8, "files that need 5 or more GPUs set"),
        ([unit(5, 1, "serial"), *[unit(5)] * 8], 1, NodeShape(8), 10, "the work as a whole sets"),
        ([unit(5, 2), unit(5, 2)], 1, NodeShape(2, 2), 10, "the work as a whole sets"),
    ],
    ids=[
        "longest",
        "work",
        "work over shards",
        "two share a slot",
        "wide ones exclude each other",
        "two of them share a node",
        "serial and wide",
        "serial takes the node",
        "all lanes of a GPU",
    ],
)
def test_lower_bound(units: list[Unit], shards: int, node: NodeShape, seconds: float, because: str) -> None:
    bound = lower_bound(units, shards, node)
    assert bound.seconds == pytest.approx(seconds)
    assert bound.because == because


any_units = st.lists(
    st.builds(
        unit,
        st.integers(0, 60),
        st.sampled_from([1, 1, 1, 2, 3, 4, 8]),
        st.sampled_from(["normal"] * 5 + ["serial"]),
    ),
    min_size=1,
    max_size=30,
)
any_node = st.builds(NodeShape, st.sampled_from([1, 2, 4, 6, 8]), st.integers(1, 2))


@settings(max_examples=300)
@given(any_units, any_node, st.lists(st.integers(0, 3), min_size=30, max_size=30), st.integers(1, 4))
def test_no_way_of_spreading_units_beats_the_bound(
    units: list[Unit], node: NodeShape, places: list[int], shards: int
) -> None:
    spread = [
        [each for each, place in zip(units, places, strict=False) if place % shards == i]
        for i in range(shards)
    ]
    longest = max(makespan(part, node) for part in spread)
    # A request wider than the node is clipped; the planner refuses it before.
    fitting = [
        each if each.gpus <= node.gpus else unit(each.expected_seconds, node.gpus, each.mode)
        for each in units
    ]
    assert lower_bound(fitting, shards, node).seconds <= longest * (1 + 1e-9)


@settings(max_examples=100)
@given(any_units, any_node)
def test_a_shard_takes_no_longer_than_one_unit_after_the_other(units: list[Unit], node: NodeShape) -> None:
    assert makespan(units, node) <= sum(each.expected_seconds for each in units)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.0123, "0.012 s"), (1, "1 s"), (2.345, "2.3 s"), (59.6, "60 s"), (1318.2, "1318 s")],
)
def test_seconds_in_words(seconds: float, text: str) -> None:
    assert in_words(seconds) == text
