"""Whole runs of examples/monorepo, as a newcomer starts them: counts, exit codes, interrupts, mutants."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "monorepo"
EXPECTED = json.loads((EXAMPLE / "expected.json").read_text())


def command(scripts: Path, *args: str) -> list[str]:
    return [sys.executable, "-I", str(scripts / "gpuci"), *args]


def environment(faults: str = "") -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCI_", "PYTEST_"))}
    # The Python of this test has pytest: the environment counts as the active one.
    return {**kept, "EXAMPLE_FAULTS": faults, "VIRTUAL_ENV": sys.prefix}


def run_example(
    out: Path, *args: str, faults: str = "", scripts: Path = REPOSITORY / "scripts"
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run it; return the finished process and report.json."""
    done = subprocess.run(
        command(scripts, "run", str(EXAMPLE), "--out", str(out), *args),
        env=environment(faults),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (out / "report.json").exists(), done.stderr
    return done, json.loads((out / "report.json").read_text())


@pytest.mark.parametrize(
    ("args", "faults", "counts", "verdict", "exit_code"),
    [
        ([], "", EXPECTED["run"], "passed", 0),
        (["--event", "schedule", "--jobs", "3"], "", EXPECTED["scheduled_run"], "passed", 0),
        *[
            (["--shards", "2"], faults, EXPECTED["faults"][faults], "failed", 1)
            for faults in ("fail,teardown,collection,hang", "fail,teardown,collection,hang,crash,exit,leak")
        ],
    ],
    ids=["plain", "schedule", "four_faults", "all_faults"],
)
def test_counts(
    tmp_path: Path, args: list[str], faults: str, counts: dict[str, int], verdict: str, exit_code: int
) -> None:
    done, report = run_example(tmp_path / "out", *args, faults=faults)
    assert report["counts"] == counts
    assert (report["verdict"], done.returncode) == (verdict, exit_code)
    assert done.stdout.startswith(verdict.upper())
    assert "Traceback" not in done.stderr
    assert len({test["nodeid"] for test in report["tests"]}) == len(report["tests"])


def mutate(tmp_path: Path, file: str, old: str, new: str) -> Path:
    """A copy of the code with one line changed; fails if that line is not there."""
    scripts = tmp_path / "scripts"
    shutil.copytree(REPOSITORY / "scripts", scripts)
    shutil.copytree(REPOSITORY / "schemas", tmp_path / "schemas")
    text = (scripts / file).read_text()
    assert text.count(old) == 1, f"the mutant of {file} no longer fits: {old}"
    (scripts / file).write_text(text.replace(old, new))
    return scripts


# What is left of a file after a crash. With pytest-xdist the worker that runs it has a new number.
GO_ON = "return self._open_on(process.slot, again[0], source, now)"
NEW_NUMBER = GO_ON.replace(
    "process.slot,",
    'type("New", (Slot,), {"name": "gw%d" % (process.slot.index + self._slots.size)})'
    "(process.slot.index, process.slot.gpus),",
)
NEXT_DEVICE = GO_ON.replace(
    "process.slot,",
    'Slot(process.slot.index, (self._job["node"]["gpus"][(process.slot.index + 1) % self._slots.size],)),',
)


@pytest.mark.parametrize(
    ("packages", "faults", "file", "old", "new", "says"),
    [
        (
            "packages/models packages/serving",
            "",
            "gpuci_node/slots.py",
            "return self._hold(lanes, self._gpus[start : start + width])",
            "return self._hold(lanes[:-1], self._gpus[start : start + width])",
            "is in use by",
        ),
        (
            "packages/models packages/serving",
            "",
            "gpuci_node/worker/identity.py",
            '",".join(self._spec["gpus"])',
            '",".join(self._spec["job_gpus"][-len(self._spec["gpus"]) :])',
            "the test uses the devices",
        ),
        (
            "packages/kernels",
            "crash",
            "gpuci_node/supervisor/engine.py",
            GO_ON,
            NEW_NUMBER,
            "is none of the 8 of this node",
        ),
        (
            "packages/kernels",
            "crash",
            "gpuci_node/supervisor/engine.py",
            GO_ON,
            NEXT_DEVICE,
            "belongs to device",
        ),
    ],
    ids=[
        "wide_slots_overlap_by_one",
        "wrong_device",
        "a_new_number_after_a_crash",
        "another_device_after_a_crash",
    ],
)
def test_the_example_catches_a_wrong_scheduler(
    tmp_path: Path, packages: str, faults: str, file: str, old: str, new: str, says: str
) -> None:
    scripts = mutate(tmp_path, file, old, new)
    done, report = run_example(tmp_path / "out", "--packages", packages, faults=faults, scripts=scripts)
    assert (report["verdict"], done.returncode) == ("failed", 1)
    assert any(says in test.get("message", "") for test in report["tests"])


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for child in map(int, children) for found in [child, *descendants(child)]]


@pytest.mark.parametrize(
    "numbers",
    [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]],  # two of a kind may become one
    ids=["SIGINT", "SIGTERM", "SIGINT, then another"],
)
def test_an_interrupt_ends_every_child_and_reports_what_finished(
    tmp_path: Path, numbers: list[signal.Signals]
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(REPOSITORY / "scripts", "run", str(EXAMPLE), "--out", str(out)),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_a_passed_test(out, process)
    below = descendants(process.pid)
    for number in numbers:
        process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 7
    assert stdout.startswith("CANCELLED")
    assert "Traceback" not in stderr
    report = json.loads((out / "report.json").read_text())
    assert report["counts"]["passed"] >= 1
    assert report["counts"]["not_finished"] >= 1
    assert {shard["verdict"] for shard in report["shards"]} <= {"passed", "cancelled"}
    assert "is gone" not in report["reason"]  # what a keeper thinks whose lifeline is cut
    if len(numbers) > 1:  # a killed keeper's children see its pipe close, and end a moment after it
        wait_for_their_end(below)
    assert [pid for pid in below if is_alive(pid)] == []


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not, and whoever adopted it may be slow."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_their_end(pids: list[int]) -> None:
    end = time.monotonic() + 60
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)


def wait_for_a_passed_test(out: Path, process: subprocess.Popen[str]) -> None:
    journal = out / "shard-1" / "journal.jsonl"
    end = time.monotonic() + 60
    while not journal.exists() or b'"outcome":"passed"' not in journal.read_bytes():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no test passed within a minute"
        time.sleep(0.05)  # a file has no event that the standard library could wait for
