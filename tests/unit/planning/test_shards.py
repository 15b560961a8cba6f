"""How many shards, whose they are, and which unit goes where."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.config.model import Shards
from gpuci.errors import ConfigError
from gpuci.model import Unit
from gpuci.planning import shards as module
from gpuci.planning.makespan import NodeShape, lower_bound, makespan
from gpuci.planning.shards import ShardUnits, allot, assign, count_shards, improve


def unit(seconds: float, gpus: int = 1, mode: str = "normal", name: str = "u") -> Unit:
    return Unit(name, ".", "t.py", "all", mode, gpus, "default", seconds, 900.0)


@pytest.mark.parametrize(
    ("tests", "limits", "asked", "count"),
    [
        (0, Shards(), None, 1),
        (39, Shards(), None, 1),
        (80, Shards(), None, 2),
        (119, Shards(), None, 2),
        (10_000, Shards(), None, 12),
        (10_000, Shards(max=4), None, 4),
        (100, Shards(min_tests=10), None, 10),
        (1, Shards(), 12, 12),
        (10_000, Shards(max=4), 1, 1),
        (10_000, Shards(max=4), 6, 6),
    ],
    ids=str,
)
def test_how_many(tests: int, limits: Shards, asked: int | None, count: int) -> None:
    assert count_shards(tests, limits, asked) == count


@pytest.mark.parametrize("asked", [0, -1, 13, 1000])
def test_a_run_has_1_to_12_shards(asked: int) -> None:
    with pytest.raises(ConfigError, match=f"^{asked} shards were asked for"):
        count_shards(100, Shards(), asked)


@pytest.mark.parametrize(
    ("count", "loads", "units", "shares"),
    [
        (4, {"a": 10.0}, {"a": 9}, {"a": 4}),
        (4, {"a": 10.0}, {"a": 2}, {"a": 2}),
        (1, {"a": 10.0, "b": 1.0}, {"a": 9, "b": 9}, {"a": 1, "b": 1}),
        (4, {"a": 10.0, "b": 10.0}, {"a": 9, "b": 9}, {"a": 2, "b": 2}),
        (5, {"a": 10.0, "b": 10.0}, {"a": 9, "b": 9}, {"a": 3, "b": 2}),
        (8, {"a": 30.0, "b": 10.0}, {"a": 9, "b": 9}, {"a": 6, "b": 2}),
        (8, {"a": 30.0, "b": 10.0}, {"a": 3, "b": 9}, {"a": 3, "b": 5}),
        (5, {"a": 0.0, "b": 0.0}, {"a": 9, "b": 9}, {"a": 4, "b": 1}),
        (3, {}, {}, {}),
    ],
    ids=[
        "one profile",
        "never more than units",
        "one each at least",
        "even",
        "a tie goes to the first",
        "by work",
        "what one can't use goes to the other",
        "no work",
        "nothing",
    ],
)
def test_shares(count: int, loads: dict[str, float], units: dict[str, int], shares: dict[str, int]) -> None:
    assert allot(count, loads, units, 12) == shares


def test_more_profiles_than_shards_are_refused() -> None:
    with pytest.raises(ConfigError, match="need 3 profiles, a run has at most 2 shards"):
        allot(2, {"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 1, "b": 1, "c": 1}, 2)


def seconds_of(shards: list[ShardUnits]) -> list[list[float]]:
    return [sorted((each.expected_seconds for each in shard.units), reverse=True) for shard in shards]


@pytest.mark.parametrize(
    ("units", "count", "node", "expected"),
    [
        ([unit(1)], 1, NodeShape(8), [[1]]),
        ([unit(1), unit(5), unit(4), unit(2)], 2, NodeShape(1), [[5, 1], [4, 2]]),
        ([unit(3), unit(3), unit(3)], 3, NodeShape(8), [[3], [3], [3]]),
        ([unit(0), unit(0), unit(0)], 2, NodeShape(8), [[0, 0], [0]]),
        ([unit(10, 8), unit(80), unit(80)], 2, NodeShape(8), [[10], [80, 80]]),
    ],
    ids=["one", "longest first", "one each", "no shard is empty", "the wide one apart from the long ones"],
)
def test_who_goes_where(units: list[Unit], count: int, node: NodeShape, expected: list[list[float]]) -> None:
    assert seconds_of(assign(units, count, node)) == expected


any_units = st.lists(
    st.builds(
        unit,
        st.integers(0, 60),
        st.sampled_from([1, 1, 1, 2, 4, 8]),
        st.sampled_from(["normal"] * 5 + ["serial"]),
    ),
    min_size=4,
    max_size=40,
).map(lambda units: [unit(u.expected_seconds, u.gpus, u.mode, f"u{i}") for i, u in enumerate(units)])


@settings(max_examples=200)
@given(any_units, st.integers(1, 4), st.builds(NodeShape, st.just(8), st.integers(1, 2)))
def test_every_unit_has_one_shard_and_no_shard_is_empty(
    units: list[Unit], count: int, node: NodeShape
) -> None:
    shards = assign(units, count, node)
    assert sorted(each.id for shard in shards for each in shard.units) == sorted(each.id for each in units)
    assert len(shards) == count
    assert all(shard.units for shard in shards)
    assert all(shard.seconds == makespan(shard.units, node) for shard in shards)


@settings(max_examples=100)
@given(any_units, st.integers(2, 4))
def test_moves_never_lengthen_a_plan_and_lose_nothing(units: list[Unit], count: int) -> None:
    node = NodeShape(8)
    before = [ShardUnits.of(units[i::count], node) for i in range(count)]
    after = improve(before, node, lower_bound(units, count, node).seconds)
    assert max(shard.seconds for shard in after) <= max(shard.seconds for shard in before)
    assert sorted(each.id for shard in after for each in shard.units) == sorted(each.id for each in units)
    assert all(shard.units for shard in after)


def test_moves_bring_units_to_an_idle_shard() -> None:
    node = NodeShape(1)
    before = [ShardUnits.of([unit(5, name=f"u{i}") for i in range(6)], node), ShardUnits.of([unit(1)], node)]
    assert [shard.seconds for shard in improve(before, node, 15.5)] == [15, 16]


def test_moves_end_when_their_work_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    node = NodeShape(1)
    before = [ShardUnits.of([unit(5, name=f"u{i}") for i in range(6)], node), ShardUnits.of([unit(1)], node)]
    monkeypatch.setattr(module, "WORK", 7)
    assert [shard.seconds for shard in improve(before, node, 15.5)] == [25, 6]
