"""Settings and plan -> options of sbatch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.config.model import Profile
from gpuci.errors import ConfigError
from gpuci.execution.slurm.options import (
    LEAST_SECONDS,
    START_UP_SECONDS,
    ShardFacts,
    asked_for,
    limit_seconds,
    parse_time,
    sbatch_options,
    settings_for,
    signal_seconds,
    time_text,
)

SHARD = ShardFacts("gpuci-o.r-1-a1-s1-t1", "gpuci repo=o/r", "/shared/jobs/x", 600.0, 900.0)
EIGHT = Profile("default")


def options(
    slurm: dict[str, Any] | None = None, profile: Profile = EIGHT, shard: ShardFacts = SHARD
) -> tuple[str, ...]:
    return sbatch_options(slurm or {}, profile, shard)


def test_all_of_them() -> None:
    slurm = {
        "partition": "gpu",
        "account": "ci",
        "qos": "high",
        "constraint": "h100&ib",
        "reservation": "tests",
        "exclude": "gpu[001-003]",
        "extra-options": ["--mem=0", "-c 64"],
    }
    shard = ShardFacts(SHARD.name, SHARD.comment, SHARD.job_dir, 600.0, 900.0, excluded=("gpu009", "gpu007"))
    assert sbatch_options(slurm, Profile("default", gpu="h100"), shard) == (
        "--job-name=gpuci-o.r-1-a1-s1-t1",
        "--comment=gpuci repo=o/r",
        "--output=/shared/jobs/x/slurm.out",
        "--open-mode=append",
        "--chdir=/shared/jobs/x",
        "--partition=gpu",
        "--account=ci",
        "--qos=high",
        "--constraint=h100&ib",
        "--reservation=tests",
        "--exclude=gpu[001-003],gpu007,gpu009",
        "--nodes=1",
        "--ntasks=1",
        "--gres=gpu:h100:8",
        "--time=1:00:00",
        "--signal=B:USR1@60",
        "--no-requeue",
        "--kill-on-invalid-dep=yes",
        "--export=ALL",
        "--mem=0",
        "--cpus-per-task=64",
    )


def test_what_is_not_set_is_left_to_the_cluster() -> None:
    nothing: dict[str, Any] = {
        "partition": None,
        "account": None,
        "exclude": None,
        "gres": None,
        "extra-options": [],
    }
    names = {option.partition("=")[0] for option in options(nothing)}
    assert names.isdisjoint({"--partition", "--account", "--qos", "--constraint", "--exclude", "--mem"})


@pytest.mark.parametrize(
    ("slurm", "profile", "expected"),
    [
        ({}, Profile("p", gpus=4), ["--gres=gpu:4"]),
        ({}, Profile("p", gpu="a100", gpus=4), ["--gres=gpu:a100:4"]),
        ({"gres": "gpu:x:4"}, Profile("p", gpu="a100", gpus=4), ["--gres=gpu:x:4"]),
        ({"gres": "gpu:4,tmpdisk:10"}, Profile("p", gpus=4), ["--gres=gpu:4,tmpdisk:10"]),
        ({"gres": "gpu:a:2,gpu:b:2"}, Profile("p", gpus=4), ["--gres=gpu:a:2,gpu:b:2"]),
        ({"gres": "gpu"}, Profile("p", gpus=1), ["--gres=gpu"]),
        ({"gres": "tmpdisk:10"}, Profile("p", gpus=4), ["--gres=gpu:4,tmpdisk:10"]),
        ({"gpus-per-node": 4}, Profile("p", gpus=4), ["--gpus-per-node=4"]),
        ({"gpus-per-node": 4}, Profile("p", gpu="a100", gpus=4), ["--gpus-per-node=a100:4"]),
        (
            {"gpus-per-node": 4, "gres": "tmpdisk:10"},
            Profile("p", gpus=4),
            ["--gpus-per-node=4", "--gres=tmpdisk:10"],
        ),
        ({"gres": "gpu:8"}, Profile("p", gpus=4, slurm={"gpus-per-node": 4}), ["--gpus-per-node=4"]),
        ({"gpus-per-node": 8}, Profile("p", gpus=4, slurm={"gres": "gpu:4"}), ["--gres=gpu:4"]),
    ],
)
def test_how_gpus_are_asked_for(slurm: dict[str, Any], profile: Profile, expected: list[str]) -> None:
    asked = [option for option in options(slurm, profile) if option.startswith(("--gres", "--gpus"))]
    assert asked == expected


@pytest.mark.parametrize(
    ("slurm", "profile", "what"),
    [
        ({"gres": "gpu:4"}, EIGHT, "asks for 4 GPUs, and profile `default` has 8"),
        ({"gres": "gpu:h100"}, EIGHT, "asks for 1 GPUs"),
        ({"gpus-per-node": 4}, EIGHT, "asks for 4 GPUs"),
        ({"gpus-per-node": 8, "gres": "gpu:8"}, EIGHT, "both ask for GPUs"),
        ({"exclude": "gpu001;id"}, EIGHT, "not a list of nodes"),
        ({"exclude": "/etc/passwd"}, EIGHT, "not a list of nodes"),
        ({"extra-options": ["--wrap=id"]}, EIGHT, "slurm.extra-options"),
    ],
)
def test_what_can_not_be_asked_for(slurm: dict[str, Any], profile: Profile, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        options(slurm, profile)


@pytest.mark.parametrize("job_dir", ["/a\\b", "/a\nb", "/a\0b"])
def test_a_directory_that_slurm_reads_otherwise_is_refused(job_dir: str) -> None:
    with pytest.raises(ConfigError, match="can't write a log"):
        options(shard=ShardFacts("n", "c", job_dir, 1.0, 1.0))


def test_patterns_in_the_path_of_the_log_are_switched_off() -> None:
    shard = ShardFacts("n", "c", "/sha%red/%j %%", 1.0, 1.0)
    assert "--output=/sha%%red/%%j %%%%/slurm.out" in options(shard=shard)
    assert "--chdir=/sha%red/%j %%" in options(shard=shard)


def test_a_failed_node_that_is_no_name_is_not_passed_on() -> None:
    shard = ShardFacts("n", "c", "/d", 1.0, 1.0, excluded=("gpu001", "", "a b", "--wrap=id", "/x", "gpu001"))
    assert "--exclude=gpu001" in options(shard=shard)


def test_what_a_profile_says_comes_first() -> None:
    slurm = {
        "partition": "gpu",
        "qos": "low",
        "time-limit": None,
        "queue-timeout": 7200,
        "extra-options": ["-O"],
    }
    profile = Profile("p", slurm={"partition": "h100", "queue-timeout": 60, "extra-options": []})
    merged = settings_for(slurm, profile)
    assert merged["partition"] == "h100"
    assert merged["qos"] == "low"
    assert merged["queue-timeout"] == 60
    assert merged["extra-options"] == []


def test_a_profile_can_not_change_how_the_cluster_is_reached() -> None:
    assert settings_for({"login": ["a"]}, Profile("p", slurm={"login": ["b"]}))["login"] == ["a"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("1:30:05", 5405),
        ("1-2", 93600),
        ("1-2:03", 93780),
        ("1-02:03:04", 93784),
        ("0", 0),
    ],
)
def test_times_as_slurm_writes_them(text: str, seconds: int) -> None:
    assert parse_time(text) == seconds


@given(st.integers(1, 400 * 86400))
def test_a_time_limit_reads_back(seconds: int) -> None:
    assert parse_time(time_text(seconds)) == seconds


def test_no_limit_is_zero() -> None:
    assert time_text(0) == "0"


@pytest.mark.parametrize(
    ("slurm", "expected", "longest", "limit"),
    [
        ({}, 0.0, 0.0, LEAST_SECONDS),
        ({}, 600.0, 900.0, 3 * 600 + 900 + START_UP_SECONDS),
        ({}, 600.1, 900.0, 3 * 600 + 900 + START_UP_SECONDS + 60),
        ({"time-limit": "2:00:00"}, 9999.0, 900.0, 7200),
        ({"time-limit": "0"}, 9999.0, 900.0, 0),
    ],
    ids=["floor", "from the plan", "whole minutes", "configured", "none"],
)
def test_the_time_limit(slurm: dict[str, Any], expected: float, longest: float, limit: float) -> None:
    assert limit_seconds(slurm, EIGHT, ShardFacts("n", "c", "/d", expected, longest)) == limit


@given(st.integers(0, 10**7))
def test_the_signal_comes_within_the_limit(limit: int) -> None:
    assert 0 < signal_seconds(limit) <= 60
    assert not limit or signal_seconds(limit) < max(limit, 2)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("`slurm.partition` is misspelt", " (asked for --partition=gpux)"),
        ("set `slurm.time-limit`, or `slurm.partition`", " (asked for --time=0:30:00 --partition=gpux)"),
        ("`slurm.qos` is misspelt", ""),
        ("check `slurm.extra-options`", ""),
        ("the partition is down", ""),
    ],
)
def test_what_the_settings_of_a_message_came_to(text: str, asked: str) -> None:
    assert asked_for(text, ("--partition=gpux", "--nodes=1", "--time=0:30:00")) == asked
