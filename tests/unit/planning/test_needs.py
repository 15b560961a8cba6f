"""What a target asks for, why it is left out, and what no node can run."""

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, MarkerRule, Profile
from gpuci.errors import ConfigError
from gpuci.model import Marker, TestTarget
from gpuci.planning.needs import Need, need, refuse_impossible, schedule_marks, why_skipped

CONFIG = Config(profiles=(Profile("default", gpus=8), Profile("small", gpus=2)))


def target(
    mode: str = "normal",
    gpus: int = 1,
    runs_on: str | None = None,
    skip: str | None = None,
    marks: tuple[str, ...] = (),
    line: int = 1,
) -> TestTarget:
    markers = tuple(Marker(name) for name in marks)
    return TestTarget(
        "t.py::f", "t.py", None, "f", None, ".", line, mode, runs_on, skip, gpus, markers=markers
    )


@pytest.mark.parametrize(
    ("mode", "gpus", "runs_on", "expected"),
    [
        ("normal", 1, None, Need("normal", 1, "default")),
        ("normal", 0, None, Need("normal", 1, "default")),
        ("normal", 2, "small", Need("normal", 2, "small")),
        ("isolated", 4, None, Need("isolated", 4, "default")),
        ("serial", 1, None, Need("serial", 8, "default")),
        ("serial", 1, "small", Need("serial", 2, "small")),
        ("cpu", 0, None, Need("cpu", 0, "default")),
        ("cpu", 4, "small", Need("cpu", 0, "default")),
    ],
    ids=str,
)
def test_needs(mode: str, gpus: int, runs_on: str | None, expected: Need) -> None:
    assert need(mode, gpus, runs_on, CONFIG) == expected


def test_all_impossible_targets_are_in_one_message() -> None:
    targets = [
        target(gpus=3, runs_on="small", line=7),
        target(runs_on="huge", line=9),
        target(gpus=16, line=11),
        target("cpu", gpus=16, runs_on="huge", line=13),
        target(gpus=8, line=15),
    ]
    with pytest.raises(ConfigError) as raised:
        refuse_impossible(targets, CONFIG)
    assert raised.value.what.splitlines()[1:] == [
        "  t.py:11: needs 16 GPUs, profile 'default' has 8",
        "  t.py:7: needs 3 GPUs, profile 'small' has 2",
        "  t.py:9: there is no profile 'huge'",
    ]
    assert "default, small" in raised.value.then


def test_a_profile_without_gpus_runs_cpu_tests_only() -> None:
    config = Config(profiles=(Profile("cpus", gpus=0),))
    refuse_impossible([target("cpu", gpus=0)], config)
    with pytest.raises(ConfigError, match="needs 1 GPUs, profile 'cpus' has 0"):
        refuse_impossible([target(gpus=0)], config)


@pytest.mark.parametrize(
    ("made", "event", "expected"),
    [
        (target(), "manual", None),
        (target(mode="skip"), "manual", "mode skip"),
        (target(skip="modes: skip a/"), "schedule", "modes: skip a/"),
        (target(marks=("slow_nightly",)), "manual", "mark slow_nightly: runs on schedule only"),
        (target(marks=("gpu", "slow_nightly")), "pull_request", "mark slow_nightly: runs on schedule only"),
        (target(marks=("slow_nightly",)), "schedule", None),
        (target(marks=("nightly_slow", "gpu")), "manual", None),
    ],
    ids=["runs", "mode", "reason", "nightly", "nightly beside another", "on schedule", "another mark"],
)
def test_why_a_target_is_left_out(made: TestTarget, event: str, expected: str | None) -> None:
    scheduled = schedule_marks([made], Config(markers=DEFAULT_MARKERS), event)
    assert why_skipped(made, scheduled) == expected


def test_a_rule_that_always_holds_schedules_nothing() -> None:
    config = Config(markers=(MarkerRule("slow"), MarkerRule("big", gpus=8)))
    assert schedule_marks([target(marks=("slow", "big"))], config, "manual") == frozenset()
