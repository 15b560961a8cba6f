"""The plan as a whole: deterministic, complete, and honest about its makespan."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.config.model import Config, Profile, Shards
from gpuci.errors import ConfigError
from gpuci.model import Manifest, Plan, Root, SourceError, TestTarget
from gpuci.planning.plan import make_plan

CONFIG = Config(profiles=(Profile("default", gpus=8), Profile("small", gpus=2)))


def target(
    path: str, name: str, mode: str = "normal", gpus: int = 1, runs_on: str | None = None
) -> TestTarget:
    return TestTarget(f"{path}::{name}", path, None, name, None, ".", 0, mode, runs_on, None, gpus)


def manifest(targets: list[TestTarget]) -> Manifest:
    files = tuple(sorted({target.test_path for target in targets}))
    return Manifest(tuple(targets), (Root(".", files=files),))


def files(count: int, tests: int = 10, mode: str = "normal", runs_on: str | None = None) -> list[TestTarget]:
    return [
        target(f"{mode}/{runs_on}/test_{i:03}.py", f"test_{j}", mode, 0 if mode == "cpu" else 1, runs_on)
        for i in range(count)
        for j in range(tests)
    ]


def profiles(plan: Plan) -> list[str]:
    return [shard.profile for shard in plan.shards]


@pytest.mark.parametrize(
    ("targets", "shards", "expected"),
    [
        ([], None, []),
        (files(3), None, ["default"]),
        (files(12), None, ["default"] * 3),
        (files(200), None, ["default"] * 12),
        (files(2), 5, ["default"] * 2),
        (files(8) + files(4, runs_on="small"), None, ["default", "small", "small"]),
        (files(2) + files(2, runs_on="small"), 1, ["default", "small"]),
        (files(20, mode="cpu"), None, []),
        (files(20, mode="cpu") + files(4), None, ["default"]),
    ],
    ids=[
        "nothing",
        "few tests",
        "one per 40",
        "12 at most",
        "never more than units",
        "by work on each profile",
        "one for each profile, whatever was asked",
        "cpu only",
        "cpu tests don't count",
    ],
)
def test_shards(targets: list[TestTarget], shards: int | None, expected: list[str]) -> None:
    plan = make_plan(manifest(targets), CONFIG, shards=shards)
    assert profiles(plan) == expected
    assert [shard.index for shard in plan.shards] == list(range(1, len(expected) + 1))


def test_cpu_units_are_in_no_shard() -> None:
    plan = make_plan(manifest(files(2, mode="cpu") + files(2)), CONFIG)
    assert {unit.file.partition("/")[0] for unit in plan.units if unit.id in plan.cpu_units} == {"cpu"}
    assert set(plan.cpu_units).isdisjoint(plan.shards[0].units)
    assert plan.makespan_seconds == 10.0


def test_what_a_plan_carries() -> None:
    found = manifest(files(1))
    plan = make_plan(found, CONFIG, sha="a" * 40, event="schedule")
    assert (plan.sha, plan.event, plan.roots) == ("a" * 40, "schedule", found.roots)
    assert plan.targets == tuple(target.nodeid for target in found.targets)
    assert plan.config["schema"] == "gpuci/config/1"
    assert [unit.timeout_seconds for unit in plan.units] == [900.0]


@pytest.mark.parametrize(
    ("durations", "note"),
    [
        (
            {"normal/None/test_000.py::test_0": 50.0},
            "normal/None/test_000.py (500 s), sets the makespan of 500 s",
        ),
        (
            {},
            "10 of 10 tests have no known duration: estimated from tests near them, "
            "else durations.default-seconds",
        ),
    ],
    ids=["makespan", "unknown"],
)
def test_the_notes_say_why(durations: dict[str, float], note: str) -> None:
    config = Config(shards=Shards(piece_seconds=1e6))
    assert note in " | ".join(make_plan(manifest(files(1)), config, durations=durations).notes)


def test_the_notes_count_what_could_not_be_read_and_what_was_not_followed() -> None:
    broken = Manifest(roots=(Root(".", files=("t.py",)),), errors=(SourceError("t.py", 1, "bad"),))
    notes = make_plan(broken, CONFIG, shards=3).notes
    assert "3 shards asked for, the plan has 1" in notes
    assert "1 file can't be read as Python: planned whole, pytest says why" in notes


def test_the_default_duration_is_the_configurations() -> None:
    plan = make_plan(manifest(files(1)), Config(durations={"default-seconds": 7.0}))
    assert plan.makespan_seconds == 70.0
    assert plan.unknown_durations == 10


@pytest.mark.parametrize(
    ("targets", "shards", "message"),
    [
        ([target("t.py", "f", gpus=9)], None, "needs 9 GPUs, profile 'default' has 8"),
        ([target("t.py", "f", runs_on="moon")], None, "no profile 'moon'"),
        (files(1), 13, "13 shards were asked for"),
        (files(1), 0, "0 shards were asked for"),
    ],
    ids=["too many GPUs", "unknown profile", "too many shards", "no shard"],
)
def test_what_can_not_be_planned(targets: list[TestTarget], shards: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_plan(manifest(targets), CONFIG, shards=shards)


def test_more_profiles_than_the_configuration_has_shards() -> None:
    config = Config(profiles=CONFIG.profiles, shards=Shards(max=1))
    both = manifest(files(1) + files(1, runs_on="small"))
    with pytest.raises(ConfigError, match="need 2 profiles, a run has at most 1 shards"):
        make_plan(both, config)
    assert profiles(make_plan(both, config, shards=2)) == ["default", "small"]


any_targets = st.lists(
    st.builds(
        target,
        path=st.integers(0, 15).map(lambda i: f"d{i % 3}/test_{i}.py"),
        name=st.integers(0, 5).map(lambda i: f"test_{i}"),
        mode=st.sampled_from(["normal", "normal", "normal", "isolated", "serial", "cpu"]),
        gpus=st.sampled_from([1, 1, 1, 2]),
        runs_on=st.sampled_from([None, None, "small"]),
    ),
    max_size=60,
    unique_by=lambda target: target.nodeid,
)


any_seconds = st.lists(st.floats(0, 1e4), max_size=60)


@settings(max_examples=100)
@given(any_targets, any_seconds, st.none() | st.integers(1, 12), st.randoms(use_true_random=False))
def test_a_plan_is_complete_and_the_same_in_any_order(
    targets: list[TestTarget], seconds: list[float], shards: int | None, source: random.Random
) -> None:
    durations = {target.nodeid: value for target, value in zip(targets, seconds, strict=False)}
    plan = make_plan(manifest(targets), CONFIG, durations=durations, shards=shards)
    shuffled = manifest(source.sample(targets, len(targets)))
    assert make_plan(shuffled, CONFIG, durations=durations, shards=shards) == plan
    placed = [unit for shard in plan.shards for unit in shard.units] + list(plan.cpu_units)
    assert sorted(placed) == [unit.id for unit in plan.units]
    profile = {unit.id: unit.profile for unit in plan.units}
    assert all(profile[unit] == shard.profile for shard in plan.shards for unit in shard.units)
    assert all(shard.units for shard in plan.shards)
    assert plan.lower_bound_seconds <= plan.makespan_seconds * (1 + 1e-9)
    assert len(plan.shards) <= 12


def test_sums_are_exact() -> None:
    """Python 3.12 adds floats in another way than 3.11; the plan is the same everywhere."""
    tenths = [target("test_a.py", f"test_{i}") for i in range(10)]
    plan = make_plan(manifest(tenths), CONFIG, durations={test.nodeid: 0.1 for test in tenths})
    assert [unit.expected_seconds for unit in plan.units] == [1.0]
    spread = [target(f"test_{i}.py", "test_a") for i in range(10)]
    plan = make_plan(
        manifest(spread),
        Config(profiles=(Profile("one", gpus=1),)),
        durations={t.nodeid: 0.1 for t in spread},
    )
    assert plan.lower_bound_seconds == 1.0
