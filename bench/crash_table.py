"""What a fault costs: gpuci and pytest-xdist over the same files, side by side.

    python bench/crash_table.py [--faults NAME…] [--runners NAME…] [--seeds N…] [--limit SECONDS]

Needs a Python with pytest, pytest-xdist and pytest-timeout, which runs the tests of both. For each fault a
tree of 18 files is written: two have the fault, each at a random position with 20 tests behind it. Each tree
is run by `gpuci run --gpus 8` and by `pytest -n 8 --dist MODE`, everything else as it is set by default. A
run that has not ended at the limit is killed: it `hangs`. The columns:

    lost     tests that never ran
    twice    how often a test ran again
    wrong    tests that ran and have another outcome in the report than they had, or none
    shared   tests that began on a device that another test used; with xdist a test takes the device of
             its worker's number, modulo 8
    left     processes that lived on after the run
    seconds  of the whole command
    ms       from one test behind a fault to the next one in the same process, median; each sleeps 100 ms
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from tests.node.faults import FAULTS, Ran, Tree, living, plant, read_log  # noqa: E402

from gpuci_node.contract import worst_outcome  # noqa: E402

NAMES = (
    "segfault",
    "abort",
    "leave",
    "kill",
    "hang",
    "bomb",
    "thread",
    "close_descriptor",
    "close_stdout",
    "allocate",
    "keep_memory",
)
RUNNERS = ("gpuci", "loadfile", "loadgroup", "load", "worksteal")
SOUND = 16
WORK = 0.1
HEAD = ("fault", "runner", "lost", "twice", "wrong", "shared", "left", "seconds", "ms")
ROW = "{:17}{:11}{:>6}{:>6}{:>6}{:>7}{:>6}{:>9}{:>7}"

# Writes the reports that xdist's controller gets, one a line: they outlive a run that is killed.
REPORTER = """import json

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter())


class Reporter:
    def pytest_runtest_logreport(self, report):
        with open("reports.jsonl", "a") as file:
            record = {"nodeid": report.nodeid, "when": report.when, "outcome": report.outcome}
            file.write(json.dumps(record) + "\\n")
"""


@dataclass(frozen=True)
class Cost:
    """What came of one run; `seconds` and `pace` (milliseconds) are None if there is no such figure."""

    lost: int
    twice: int
    wrong: int
    shared: int
    left: int
    seconds: float | None
    pace: float | None


def main() -> int:
    """Print a row per fault and runner as it is measured, then the sums of each runner."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=NAMES, metavar="NAME")
    parser.add_argument("--runners", nargs="+", choices=RUNNERS, default=RUNNERS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS")
    options = parser.parse_args()
    print(ROW.format(*HEAD), flush=True)
    costs: dict[str, list[Cost]] = {runner: [] for runner in options.runners}
    for seed in options.seeds:
        for fault in options.faults:
            for runner in options.runners:
                cost = run(runner, plant({fault: FAULTS[fault]}, seed, SOUND, WORK), options.limit)
                costs[runner].append(cost)
                print(row(fault, runner, cost), flush=True)
    for runner, found in costs.items():
        print(total(runner, found))
    return 0


def row(fault: str, runner: str, cost: Cost) -> str:
    """A line of the table."""
    *counts, seconds, pace = astuple(cost)
    shown = "hangs" if seconds is None else f"{seconds:.1f}"
    return ROW.format(fault, runner, *counts, shown, "" if pace is None else f"{pace:.0f}")


def total(runner: str, costs: Sequence[Cost]) -> str:
    """The sums of a runner: of the counts, and how many of its runs did not end."""
    sums = [sum(column) for column in zip(*(astuple(cost)[:5] for cost in costs), strict=True)]
    hung = sum(cost.seconds is None for cost in costs)
    return ROW.format(f"all {len(costs)} runs", runner, *sums, f"{hung} hang" if hung else "", "").rstrip()


def run(runner: str, tree: Tree, limit: float) -> Cost:
    """Run a tree in a folder of its own; nothing that it started is left."""
    with tempfile.TemporaryDirectory(prefix="crash-table-") as directory:
        root, out = Path(directory, "tree"), Path(directory, "out")
        root.mkdir()
        for path, text in {**tree.files, "reporter.py": REPORTER}.items():
            (root / path).write_text(text)
        try:
            seconds = wall_seconds(command(runner, root, out), root, limit)
            left = 0 if seconds is None else len(stay(root))
        finally:
            end(root)
        reported = gpuci_outcomes(out) if runner == "gpuci" else xdist_outcomes(root)
        return judge(tree, read_log(root), reported, left=left, seconds=seconds)


def command(runner: str, root: Path, out: Path) -> list[str]:
    """How a person runs the tree."""
    if runner == "gpuci":
        options = ["--gpus", "8", "--shards", "1", "--out", str(out)]
        return [str(REPOSITORY / "gpuci"), "run", str(root), *options]
    return [sys.executable, "-m", "pytest", "-q", "-p", "reporter", "-n", "8", "--dist", runner]


def wall_seconds(command: Sequence[str], root: Path, limit: float) -> float | None:
    """Seconds that it takes, None if it does not end within the limit."""
    foreign = ("GPUCI_", "PYTEST_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    started = time.monotonic()
    # To no pipe: a process that is left behind would hold it open.
    process = subprocess.Popen(
        command,
        cwd=root,
        env={**kept, "VIRTUAL_ENV": sys.prefix},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
    return time.monotonic() - started


def stay(root: Path, seconds: float = 2.0) -> list[int]:
    """The processes of a tree that don't leave by themselves within some seconds."""
    until = time.monotonic() + seconds
    while (left := living(root)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def end(root: Path) -> None:
    """Kill what works in the tree, until nothing does."""
    while left := living(root):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def gpuci_outcomes(out: Path) -> dict[str, str]:
    """Node id -> outcome of a report, nothing if there is none."""
    path = out / "report.json"
    tests = json.loads(path.read_text())["tests"] if path.exists() else []
    return {test["nodeid"]: test["outcome"] for test in tests}


def xdist_outcomes(root: Path) -> dict[str, str]:
    """Node id -> the worst of what xdist's controller was told."""
    path = root / "reports.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    told: dict[str, list[str]] = {}
    for report in map(json.loads, lines):
        by_fixture = report["outcome"] == "failed" and report["when"] in ("setup", "teardown")
        told.setdefault(report["nodeid"], []).append("error" if by_fixture else report["outcome"])
    return {nodeid: worst_outcome(outcomes) for nodeid, outcomes in told.items()}


def judge(
    tree: Tree, told: Sequence[Ran], reported: Mapping[str, str], *, left: int, seconds: float | None
) -> Cost:
    """Compare what ran and what is reported with what the tree holds."""
    times = Counter(test.nodeid for test in told)
    wrong = [nodeid for nodeid in times if reported.get(nodeid) != tree.outcomes[nodeid]]
    return Cost(
        lost=len(tree.outcomes.keys() - times.keys()),
        twice=sum(times.values()) - len(times),
        wrong=len(wrong),
        shared=sum(not test.alone for test in told),
        left=left,
        seconds=seconds,
        pace=pace(behind_a_fault(tree, told)),
    )


def behind_a_fault(tree: Tree, told: Iterable[Ran]) -> list[Ran]:
    """The tests that stand behind the fault of their file."""
    found = []
    for test in told:
        nodeids = [nodeid for nodeid in tree.faults if nodeid.startswith(f"{test.file}::")]
        order = tree.order(test.file)
        if nodeids and order.index(test.nodeid) > order.index(nodeids[0]):
            found.append(test)
    return found


def pace(told: Sequence[Ran]) -> float | None:
    """Milliseconds from one of these tests to the next one in the same process, median."""
    last: dict[int, float] = {}
    steps = []
    for test in sorted(told, key=lambda test: test.at):
        if test.process in last:
            steps.append(1000 * (test.at - last[test.process]))
        last[test.process] = test.at
    return statistics.median(steps) if steps else None


if __name__ == "__main__":
    sys.exit(main())
