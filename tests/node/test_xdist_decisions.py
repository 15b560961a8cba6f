"""What the scheduler decides of a run of pytest-xdist, without any process: groups, limits, ends."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci_node.supervisor.effects import Dump, Exit, Kill, Start, Stop, Tell, Write
from gpuci_node.supervisor.limits import DUMP_SECONDS
from gpuci_node.supervisor.xdist_engine import XdistEngine

LIMIT = 10.0


def unit(
    name: str, mode: str = "normal", gpus: int = 1, root: str = ".", seconds: float = 1.0
) -> dict[str, Any]:
    return {
        **{"id": name, "root": root, "file": f"test_{name}.py", "select": "all", "mode": mode, "gpus": gpus},
        **{"profile": "default", "expected_seconds": seconds, "timeout_seconds": LIMIT},
    }


def engine(*units: dict[str, Any], gpus: int = 2, workers_per_gpu: int = 1) -> XdistEngine:
    ids = [str(gpu) for gpu in range(gpus)]
    return XdistEngine(
        {
            **{"run": "r1", "event": "manual", "markers": [], "units": list(units)},
            "paths": {"root": "/tree", "out": "/out"},
            "node": {
                **{"name": "n1", "gpus": ids, "workers_per_gpu": workers_per_gpu},
                "cpu_workers": 0 if gpus else 3,
            },
            "settings": {
                **{"pytest_args": [], "pythonpath": [], "isolate": "file", "env": {}, "engine": "xdist"},
                **{"fork": True, "preload": [], "recycle_after_files": None},
            },
            "roots": [
                {"path": path, "config_file": None, "args": [], "gpu_isolation": "mask"}
                for path in (".", "b")
            ],
        }
    )


def started(effects: list[Any]) -> list[Start]:
    return [effect for effect in effects if isinstance(effect, Start)]


def runs(effects: list[Any]) -> list[Start]:
    return [start for start in started(effects) if start.spec["role"] == "xdist"]


def ends(effects: list[Any]) -> dict[str, tuple[str, str]]:
    records = [effect.record for effect in effects if isinstance(effect, Write)]
    return {r["nodeid"]: (r["outcome"], r["message"]) for r in records if r["kind"] == "end"}


class Run:
    """A run of the file test_a.py with some tests, as its controller tells of it."""

    def __init__(self, *tests: str) -> None:
        self.engine = engine(unit("a"))
        (start,) = started(self.engine.fill(0.0))
        self.id = start.id
        self.task = start.spec["units"][0]["task"]
        self.ids = [f"test_a.py::{test}" for test in tests]
        nothing: dict[str, Any] = {"marks": {}, "deselected": [], "errors": [], "skipped": []}
        self.say(0.0, "collected", file="test_a.py", ids=self.ids, **nothing)

    def say(self, now: float, kind: str, **fields: Any) -> list[Any]:
        return self.engine.on_record(self.id, {"kind": kind, **fields}, now)

    def start(self, now: float, test: str, seat: int, timeout: float = LIMIT) -> list[Any]:
        place = {"file": "test_a.py", "line": 1}
        fields: dict[str, Any] = {"task": self.task, "nodeid": f"test_a.py::{test}", **place}
        return self.say(now, "start", timeout=timeout, seat=seat, **fields)

    def end(self, now: float, test: str, outcome: str = "passed") -> list[Any]:
        return self.say(now, "end", task=self.task, nodeid=f"test_a.py::{test}", outcome=outcome)

    def exit(self, code: int | None = 0, signal: str | None = None) -> list[Any]:
        return self.engine.on_exit(self.id, Exit(code, signal, ""), 99.0)


def test_one_run_per_root_alone_on_the_node_the_longest_first() -> None:
    units = [unit("a"), unit("b", gpus=0), unit("c", root="b", seconds=5.0), unit("d", mode="cpu", gpus=0)]
    node = engine(*units, unit("wide", gpus=2), unit("own", mode="isolated"))
    (first,) = runs(node.fill(0.0))
    assert (first.parent, [each["file"] for each in first.spec["units"]]) == (None, ["test_c.py"])
    assert "PYTEST_XDIST_WORKER" not in first.env
    assert runs(node.fill(0.0)) == []
    (second,) = runs(node.on_exit(first.id, Exit(1, None, ""), 1.0) + node.fill(1.0))
    assert [each["file"] for each in second.spec["units"]] == ["test_a.py", "test_b.py", "test_d.py"]


@pytest.mark.parametrize(
    ("gpus", "workers_per_gpu", "seats"),
    [(2, 1, [["0"], ["1"]]), (2, 2, [["0"], ["1"], ["0"], ["1"]]), (0, 1, [[], [], []])],
    ids=["one each", "two each", "no GPU"],
)
def test_seats(gpus: int, workers_per_gpu: int, seats: list[list[str]]) -> None:
    (start,) = started(engine(unit("a", gpus=0), gpus=gpus, workers_per_gpu=workers_per_gpu).fill(0.0))
    assert start.spec["seats"] == seats


def test_no_base_is_started_for_what_it_does_not_fork() -> None:
    (start,) = started(engine(unit("a"), unit("b")).fill(0.0))
    assert start.spec["role"] == "xdist"


def test_several_tests_at_once_and_the_earliest_limit_counts() -> None:
    run = Run("x", "y", "z")
    run.start(1.0, "x", 0)
    (write,) = run.start(2.0, "y", 1, timeout=3.0)
    assert (write.record["slot"], write.record["gpus"]) == ("gw1", ["1"])
    assert run.engine.next_deadline() == 5.0
    assert run.engine.on_deadline(5.0) == [
        Tell(run.id, {"do": "kill", "unit": {"seat": 1, "nodeid": "test_a.py::y", "seconds": DUMP_SECONDS}})
    ]
    assert run.engine.on_deadline(5.0) == []
    late = run.end(5.2, "y")
    assert ends(late) == {"test_a.py::y": ("failed", "no end within its limit of 3 s: killed")}
    assert run.engine.next_deadline() == 11.0
    run.end(6.0, "x")
    assert run.engine.next_deadline() == 16.0


def test_a_controller_that_does_not_obey_is_killed_with_all() -> None:
    run = Run("x", "y")
    run.start(0.0, "x", 0)
    run.start(9.0, "y", 1)
    run.engine.on_deadline(10.0)
    assert run.engine.next_deadline() == 19.0  # of the other test
    run.engine.on_deadline(19.0)
    assert run.engine.next_deadline() == 20 + DUMP_SECONDS
    assert run.engine.on_deadline(20 + DUMP_SECONDS) == [Dump(run.id)]
    assert run.engine.on_deadline(20 + 2 * DUMP_SECONDS) == [Kill(run.id)]
    said = ends(run.exit(None, "SIGKILL"))
    assert set(said.values()) == {("failed", "no end within its limit of 10 s: killed")}


def test_what_is_due_at_the_end_is_not_finished_and_not_tried_again() -> None:
    run = Run("x", "y", "z")
    run.start(1.0, "x", 0)
    run.end(2.0, "x")
    run.start(3.0, "y", 0)
    assert ends(run.exit(None, "SIGSEGV")) == {
        "test_a.py::y": ("not_finished", "killed by SIGSEGV"),
        "test_a.py::z": ("not_finished", "pytest-xdist ended before it: killed by SIGSEGV"),
    }
    assert run.engine.finished


@pytest.mark.parametrize("seat", [2, 10**9, None], ids=str)
def test_a_seat_that_there_is_not_is_no_record(seat: int | None) -> None:
    run = Run("x")
    (note,) = run.start(1.0, "x", seat)  # type: ignore[arg-type]
    assert note.record["topic"] == "bad_record"


def test_only_a_run_that_has_collected_nothing_is_unusable() -> None:
    node = engine(unit("a"))
    (start,) = started(node.fill(0.0))
    assert node.on_record(start.id, {"kind": "unusable", "text": "why"}, 0.0) == [Stop("config_error", "why")]
    run = Run("x")
    (note,) = run.say(1.0, "unusable", text="why")
    assert note.record["topic"] == "bad_record"


def test_one_that_comes_late_for_a_test_that_ended_starts_nothing_again() -> None:
    """loadfile runs a test that crashed once more: both ends are told, the worse counts."""
    run = Run("x")
    for outcome in ("failed", "passed"):
        run.start(1.0, "x", 0)
        assert ends(run.end(2.0, "x", outcome))["test_a.py::x"][0] == outcome
    assert run.engine.outcomes == {"test_a.py::x": "failed"}
    assert ends(run.exit(0)) == {}
