"""The lease: who follows a job shows it by a counter that moves; nothing else ends the job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci_node.supervisor.lease import Lease

MOVES = [b"000000000001", b"000000000002"]


def ran_out(seconds: float, looks: list[tuple[float, bytes | None]]) -> float | None:
    """When a lease that was seen like this ran out."""
    lease = Lease(seconds, 0.0)
    return next((now for now, content in looks if lease.see(content, now)), None)


SAME = b"000000000007"
CASES = {
    "still from the start": ([(t, SAME) for t in range(0, 500, 10)], 300),
    "it moves": ([(t, b"%012d" % t) for t in range(0, 2000, 10)], None),
    "it moved at last after 200 s": (
        [(t, SAME) for t in range(0, 200, 10)] + [(t, b"000000000008") for t in range(200, 900, 10)],
        500,
    ),
    "never to be read": ([(t, None) for t in range(0, 2000, 10)], None),
    "empty: caught between truncation and writing": ([(t, b"") for t in range(0, 2000, 10)], None),
    "unreadable for long, then the same": (
        [(0, SAME), *((t, None) for t in range(10, 900, 10)), (900, SAME)],
        None,
    ),
    "every second look fails": ([(t, SAME if t % 20 else None) for t in range(0, 900, 10)], 610),
    "the file server was away, and whoever follows could not write either": (
        [(0, SAME), (400, SAME), (405, SAME), (410, b"000000000008")],
        None,
    ),
    "the node was suspended, the counter moved": ([(0, SAME), (5000, b"000000000008")], None),
}


@pytest.mark.parametrize(("looks", "expected"), CASES.values(), ids=CASES)
def test_when_a_lease_runs_out(looks: list[tuple[float, bytes | None]], expected: float | None) -> None:
    assert ran_out(300.0, looks) == expected


@pytest.mark.parametrize(("seconds", "every"), [(300.0, 10.0), (2.0, 0.1), (100.0, 5.0)])
def test_it_is_looked_at_twenty_times_in_its_time_and_every_ten_seconds(seconds: float, every: float) -> None:
    lease = Lease(seconds, 0.0)
    assert lease.due == 0.0
    lease.see(b"0", 7.0)
    assert lease.due == 7.0 + every


@given(st.lists(st.tuples(st.floats(0.1, 20), st.sampled_from([*MOVES, None, b""])), max_size=80))
def test_a_lease_never_runs_out_before_its_time_since_it_moved_last(
    steps: list[tuple[float, bytes | None]],
) -> None:
    lease, now, moved, last = Lease(60.0, 0.0), 0.0, 0.0, None
    for step, content in steps:
        now += step
        if content and content != last:
            moved, last = now, content
        assert not (lease.see(content, now) and now - moved < 59.99)
