"""What a job waits for before its tests, and why there are none."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci_node.supervisor.opening import START_SECONDS, Opening, bad_setup, lost_devices, not_started

SETUP = {"text": "make", "seconds": 60.0}


def opening(**job: Any) -> Opening:
    return Opening({"link": None, "health": None, "setup": None, **job}, 0.0)


def test_a_job_on_this_machine_waits_for_nothing() -> None:
    made = opening()
    assert made.open
    assert made.deadline is None


def test_the_set_up_comes_when_container_and_node_are_fine_and_tests_after_it() -> None:
    made = opening(link="/l", health={}, setup=SETUP)
    steps = []
    for step in ("health", "start"):
        assert made.next_setup(1.0) is None
        made.passed(step)
        steps.append(made.open)
    assert made.next_setup(1.0) == SETUP
    assert made.next_setup(2.0) is None
    steps.append(made.open)
    made.passed("setup")
    assert [*steps, made.open] == [False, False, False, True]


def test_each_step_has_its_time() -> None:
    made = opening(link="/l", health={}, setup=SETUP)
    assert made.deadline == 30.0
    assert made.late(29.0) == []
    assert made.late(30.0) == ["health"]
    assert not made.waits_for("health")
    assert made.late(START_SECONDS) == ["start"]
    assert made.next_setup(400.0) == SETUP
    assert made.deadline == 460.0
    assert made.late(460.0) == ["setup"]


@pytest.mark.parametrize(
    ("code", "said", "verdict", "words"),
    [
        (125, "trying\nError: no space left\n", "infra", "ended with exit code 125: Error: no space left"),
        (126, "", "infra", "ended with exit code 126"),
        (127, "exec: no such file", "config_error", "no such Python: exec: no such file; container.python"),
        (None, "", "infra", "did not start within 300 s"),
        (-9, "", "infra", "ended with exit code -9"),
    ],
    ids=["the engine", "not executable", "no python", "late", "killed"],
)
def test_a_container_that_does_not_start(code: int | None, said: str, verdict: str, words: str) -> None:
    judged = not_started(code, said)
    assert judged.verdict == verdict
    assert words in judged.reason
    assert bool(judged.fault) == (verdict == "infra")


@pytest.mark.parametrize(
    ("outside", "inside", "is_fine"), [(8, 8, True), (4, 8, True), (8, 7, False), (8, 0, False), (0, 0, True)]
)
def test_gpus_that_do_not_arrive_are_missed(outside: int, inside: int, is_fine: bool) -> None:
    judged = lost_devices(outside, inside)
    assert (judged is None) == is_fine
    if judged is not None:
        assert (judged.verdict, judged.fault) == ("config_error", "")
        assert f"of the {outside} GPUs of this job the container sees {inside}" in judged.reason


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"code": 0, "signal": None, "tail": "fine"}, None),
        (
            {"code": 3, "signal": None, "tail": "a\nb\nc\nd\n"},
            "container.setup failed (exit code 3): b | c | d",
        ),
        ({"code": None, "signal": "SIGSEGV", "tail": ""}, "container.setup failed (SIGSEGV): "),
        ({}, "container.setup did not end within 60 s"),
    ],
    ids=["fine", "fails", "crashes", "late"],
)
def test_the_end_of_the_set_up(event: dict[str, Any], reason: str | None) -> None:
    judged = bad_setup(event, 60.0)
    assert (judged and judged.reason) == reason
    assert judged is None or judged.verdict == "config_error"
