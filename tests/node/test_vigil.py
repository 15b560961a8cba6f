"""Nobody follows, or nothing moves: what the keeper does then, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuci_node.supervisor.effects import Dump, Stop, Write
from gpuci_node.supervisor.limits import DUMP_SECONDS
from gpuci_node.supervisor.vigil import Vigil


def vigil(**job: Any) -> Vigil:
    return Vigil({"lease": None, "stall_seconds": None, **job}, 0.0)


def test_a_job_on_this_machine_is_not_watched() -> None:
    assert vigil().next_look(5.0) is None
    assert vigil().look(1e9, 5.0, ["gw0.1"]) == []


def test_a_log_that_stands_still_gets_the_stacks_and_then_the_job_ends() -> None:
    watched = vigil(stall_seconds=100.0)
    assert watched.next_look(50.0) == 150.0
    assert watched.look(149.0, 50.0, ["gw0.1", "base.1"]) == []
    note, *dumps = watched.look(150.0, 50.0, ["gw0.1", "base.1"])
    assert isinstance(note, Write)
    assert note.record["topic"] == "stall"
    assert dumps == [Dump("gw0.1"), Dump("base.1")]
    # What the stacks write to the log does not begin the wait anew.
    assert watched.next_look(150.5) == 150.0 + DUMP_SECONDS
    assert watched.look(151.0, 150.5, ["gw0.1"]) == []
    (stop,) = watched.look(150.0 + DUMP_SECONDS, 150.5, ["gw0.1"])
    assert isinstance(stop, Stop)
    assert stop.verdict == "timeout"
    assert "stood still for 100 s" in stop.reason
    assert watched.look(1e6, 0.0, []) == []


def test_a_log_that_moves_is_left_alone() -> None:
    watched = vigil(stall_seconds=100.0)
    assert all(watched.look(now, now - 99.0, ["gw0.1"]) == [] for now in range(100, 2000, 50))


def test_a_lease_is_read_when_it_is_due(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    path.write_text("1")
    watched = vigil(lease={"path": str(path), "seconds": 20.0})
    assert watched.look(0.0, 0.0, []) == []
    assert watched.next_look(0.0) == 1.0
    assert [watched.look(float(now), 0.0, []) for now in range(1, 20)] == [[]] * 19
    (stop,) = watched.look(20.0, 0.0, [])
    assert isinstance(stop, Stop)
    assert (stop.verdict, stop.reason) == (
        "cancelled",
        "whoever followed this job is gone: its lease stood still for 20 s",
    )


def test_a_lease_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    watched = vigil(lease={"path": str(tmp_path / "lease"), "seconds": 20.0})
    assert [watched.look(float(now), 0.0, []) for now in range(0, 100, 5)] == [[]] * 20
