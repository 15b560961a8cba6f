"""One line for many shards: what it says, when it comes, and that it stays one harmless line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.model import Plan, Shard, ShardState, Unit
from gpuci.reporting.heartbeat import (
    EVERY_SECONDS,
    PHASES,
    SOONEST_SECONDS,
    WIDTH,
    Heartbeat,
    words,
)
from gpuci.reporting.text import width_of


def plan(count: int, tests: int = 4) -> Plan:
    units = [
        Unit(f"u{n}", ".", f"f{n}.py", "all", "normal", 1, "default", 10.0, 900.0, tests=tests)
        for n in range(count + 1)
    ]
    return Plan(
        config={},
        sha=None,
        event="manual",
        roots=(),
        targets=(),
        units=tuple(units),
        shards=tuple(Shard(n, "default", (f"u{n}",), 10.0) for n in range(1, count + 1)),
        cpu_units=("u0",),
        skipped=(),
        makespan_seconds=10.0,
        lower_bound_seconds=10.0,
        unknown_durations=0,
    )


def heart(count: int = 12, elsewhere: bool = True, width: int = WIDTH) -> Heartbeat:
    return Heartbeat(plan(count), elsewhere=elsewhere, width=width)


def start(shard: int, name: str, t: float) -> dict[str, Any]:
    return {"kind": "start", "t": t, "unit": f"u{shard}", "nodeid": f"f{shard}.py::{name}"}


def end(shard: int, name: str, outcome: str = "passed") -> dict[str, Any]:
    return {**start(shard, name, 5.0), "kind": "end", "outcome": outcome}


def test_one_shard() -> None:
    beat = heart(1)
    beat.state(1, ShardState("running", "gpu003"))
    for record in (start(1, "a", 1.0), start(1, "b", 2.0), end(1, "b", "failed")):
        beat.feed(1, record)
    assert beat.line(36.0) == "1/4 tests, 1 failed; shard 1 running on gpu003; longest f1.py::a 35.0 s"


def test_many_shards_are_told_by_state() -> None:
    beat = heart(12, elsewhere=False)
    for shard in (1, 2, 3):
        beat.state(shard, ShardState("waiting", "Priority", 100.0 + shard))
    for shard in range(4, 11):
        beat.state(shard, ShardState("running", f"gpu{shard:03}"))
    beat.state(11, ShardState("submitted"))
    beat.state(12, ShardState("ended", "passed"))
    beat.feed(4, start(4, "slow", 300.0))
    assert beat.line(341.0) == (
        "0/52 tests; shards 4-10 running; shards 1-3 waiting (Priority) 4 min; shard 11 submitted;"
        " shard 12 passed; cpu pool planned; longest f4.py::slow 41.0 s"
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (ShardState(), "planned"),
        (ShardState("submitted", since=40.0), "submitted 2 min"),
        (ShardState("waiting", "Resources", 40.0), "waiting (Resources) 2 min"),
        (ShardState("waiting", "Resources"), "waiting (Resources)"),
        (ShardState("waiting", since=200.0), "waiting 1 s"),
        (ShardState("running", "gpu003"), "running on gpu003"),
        (ShardState("running"), "running"),
        (ShardState("ended", "queue_timeout"), "queue timeout"),
        (ShardState("ended"), "ended"),
        (ShardState("waiting", "a\n::b\x1b[2J"), "waiting (a |::b)"),
    ],
)
def test_a_state_in_words(state: ShardState, expected: str) -> None:
    assert words(state, 160.0) == expected


@pytest.mark.parametrize(
    "record",
    [{"kind": "job", "unit": []}, {"kind": "unknown", "unit": {}, "t": "x"}, {"kind": "unknown", "t": True}],
)
def test_fields_that_no_journal_has_are_not_believed(record: dict[str, Any]) -> None:
    beat = heart(1)
    beat.feed(1, record)
    beat.feed(1, start(1, "a", 5.0))
    assert beat.line(10.0) == "0/4 tests; shard 1 planned; longest f1.py::a 5.00 s"


def test_what_ran_on_a_lost_node_does_not_run() -> None:
    beat = heart(1)
    beat.feed(1, start(1, "a", 1.0))
    beat.state(1, ShardState("submitted"))
    assert beat.line(9.0) == "0/4 tests; shard 1 submitted"


def beats(beat: Heartbeat, seconds: int, changes: dict[int, ShardState]) -> list[int]:
    """The seconds at which lines come."""
    found = []
    for now in range(seconds):
        if now in changes:
            beat.state(1, changes[now])
        if beat.tick(1000.0 + now):
            found.append(now)
    return found


WAITS = ShardState("waiting", "Resources", 1000.0)
SOON, EVERY = int(SOONEST_SECONDS), int(EVERY_SECONDS)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        pytest.param({}, [EVERY, 2 * EVERY], id="nothing changes"),
        pytest.param({0: WAITS}, [0, EVERY, 2 * EVERY], id="at once"),
        pytest.param({10: WAITS}, [10, 10 + EVERY], id="a change starts the time anew"),
        pytest.param({0: WAITS, 1: ShardState("running", "n")}, [0, SOON, SOON + EVERY], id="not too often"),
        pytest.param(
            {0: WAITS, 9: ShardState("waiting", "Resources", 1009.0)}, [0, EVERY, 60], id="no change"
        ),
        pytest.param(
            {0: WAITS, 9: ShardState("waiting", "Priority", 1000.0)}, [0, 9, 9 + EVERY], id="a reason"
        ),
    ],
)
def test_when_a_line_comes(changes: dict[int, ShardState], lines: list[int]) -> None:
    assert beats(heart(1), 2 * EVERY + 1, changes) == lines


def test_a_clock_that_is_set_back_keeps_the_heart_beating() -> None:
    beat = heart(1)
    beat.tick(1000.0)
    assert beat.tick(500.0)


def test_shards_that_nobody_planned_are_ignored() -> None:
    beat = heart(1)
    beat.feed(9, start(9, "a", 1.0))
    beat.state(9, ShardState("running"))
    assert beat.line(2.0) == "0/4 tests; shard 1 planned"


TEXT = st.text(st.one_of(st.sampled_from("\x1b\r\n:[]#%界\u202e\u2028"), st.characters()), max_size=99)
STATES = st.builds(ShardState, st.sampled_from(PHASES), TEXT, st.none() | st.floats(0, 2e9))


@given(
    st.dictionaries(st.integers(0, 12), STATES),
    st.lists(st.tuples(st.integers(1, 12), TEXT)),
    st.integers(20, 200),
)
def test_it_is_one_harmless_line_that_fits(
    states: dict[int, ShardState], running: list[tuple[int, str]], width: int
) -> None:
    beat = heart(12, elsewhere=False, width=width)
    for shard, state in states.items():
        beat.state(shard, state)
    for shard, name in running:
        beat.feed(shard, start(shard, name, 1.0))
    line = beat.line(1e9)
    assert width_of(line) <= width
    assert not set(line) & set("\x1b\r\n\u202e\u2028")
    assert not line.strip().startswith("::")
    assert "##[" not in line
