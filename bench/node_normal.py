"""A `normal` suite of 60 files that import torch, on 8 slots: the node against xdist's loadfile.

    python3 bench/node_normal.py [--rounds 3] [--files 60] [--slots 8] [--bound 30]

Both run the same tree, one after the other in each round: one node with 8 pretended GPUs and `preload:
[torch]`, and `pytest -n 8 --dist loadfile`. Three suites:

  start-up   each slot's first test waits until all slots have begun one; the others do nothing. Start-up is
             from the start of the command until the first test of the last slot begins.
  sleeping   tests sleep, so that few cores suffice. The bound is what 8 slots can't beat: all sleep / 8, or
             the longest file. --bound scales the sleep to it; durations are made up (seeded, heavy tail)
             and known to the node, as after a first run.
  crash      the same, and one more test in the middle of a file of the middle kills its process.

`lost` are tests without a result, `twice` those with more than one. Exit code 1 if the node loses one, runs
one twice, or a test is not what it should be. Goals: wall time within 10 % of the bound, start-up at least
2 x as fast as xdist's, the crash costs no test and no time.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import node_runs
from bench.node_runs import File, Ran

SLEEPS = """\
import os, signal, time
import pytest
import torch

@pytest.mark.parametrize("seconds", {first})
def test_sleeps(seconds):
    time.sleep(seconds)
"""
CRASH = """
def test_crashes():
    os.kill(os.getpid(), signal.SIGSEGV)

@pytest.mark.parametrize("seconds", {second})
def test_sleeps_more(seconds):
    time.sleep(seconds)
"""
# The workers that began: files in a directory. A slot that never begins fails the tests, in bounded time.
MEETS = """\
import os, pathlib, time
import torch
BEGUN = pathlib.Path(__file__).with_name("begun")
def test_meets():
    BEGUN.mkdir(exist_ok=True)
    (BEGUN / os.environ["PYTEST_XDIST_WORKER"]).touch()
    end = time.monotonic() + 60
    while len(list(BEGUN.iterdir())) < {slots}:
        assert time.monotonic() < end, "not all slots began a test"
        time.sleep(0.02)
"""


@dataclass
class Measured:
    """What one way of running a suite gave, round by round."""

    seconds: list[float] = field(default_factory=list)
    start_up: list[float] = field(default_factory=list)
    slots: set[int] = field(default_factory=set)
    hung: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    def add(self, ran: Ran, ends: Counter[str]) -> None:
        """One more round."""
        self.seconds.append(ran.seconds)
        self.start_up.append(ran.start_up)
        self.slots.add(ran.slots)
        self.hung += ran.hung
        self.ends += ends


def main() -> int:
    """Measure the three suites; 1 if the node did anything wrong."""
    parser = node_runs.parser(__doc__, needs_torch=True)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--bound", type=float, default=30.0, help="seconds (default: 30)")
    arguments = parser.parse_args()
    python = node_runs.check_torch(arguments.python)
    slots, rounds = arguments.slots, arguments.rounds
    print(f"{node_runs.versions(python)}; {arguments.files} files, {slots} slots")
    durations = made_up(arguments.files, slots, arguments.bound)
    bound = lower_bound(durations, slots)
    meeting = [File(f"test_{number:03}.py", MEETS.format(slots=slots)) for number in range(arguments.files)]
    suites = {
        "start-up": (meeting, None, 0),
        "sleeping": (sleeping(durations, None), bound, 0),
        "crash": (sleeping(durations, len(durations) // 2), bound, 1),
    }
    faults = 0
    for title, (files, limit, crashes) in suites.items():
        faults += compare(title, files, python, slots, rounds, limit, crashes)
    return 1 if faults else 0


def made_up(files: int, slots: int, bound: float) -> list[list[float]]:
    """Seconds of sleep by file and test; seeded. Together they are `bound` for so many slots."""
    source = random.Random(20_240_601)
    raw = [
        [source.lognormvariate(0.0, 0.8) for _test in range(source.randint(1, 9))] for _file in range(files)
    ]
    scale = bound / lower_bound(raw, slots)
    return [[round(seconds * scale, 3) for seconds in file] for file in raw]


def lower_bound(durations: Sequence[Sequence[float]], slots: int) -> float:
    """No schedule of whole files is shorter."""
    files = [sum(file) for file in durations]
    return max(sum(files) / slots, *files)


def sleeping(durations: Sequence[Sequence[float]], crash_in: int | None) -> list[File]:
    """The files; in the middle of one of them a test may crash."""
    files = []
    for number, seconds in enumerate(durations):
        half = (len(seconds) + 1) // 2
        crashes = number == crash_in
        text = SLEEPS.format(first=seconds[:half] if crashes else seconds)
        text += CRASH.format(second=seconds[half:]) if crashes else ""
        files.append(File(f"test_{number:03}.py", text, seconds=sum(seconds)))
    return files


def compare(
    title: str,
    files: Sequence[File],
    python: str,
    slots: int,
    rounds: int,
    bound: float | None,
    crashes: int,
) -> int:
    """Print a table; return the number of tests that the node treated wrongly."""
    ours, xdist, expected = Measured(), Measured(), 0
    with node_runs.tree(files, {}) as root:
        expected = collected(root, python)
        for _round in range(rounds):
            clear(root)
            ran = node_runs.on_node(root, files, python, gpus=slots, preload=["torch"])
            ours.add(ran, node_ends(ran, expected))
            clear(root)
            ran, printed = node_runs.with_pytest(root, python, xdist_arguments(slots), 60 + 3 * (bound or 0))
            xdist.add(ran, xdist_ends(printed, expected))
    print(f"\n{title}: {expected} tests" + (f", bound {bound:.2f} s" if bound else ""))
    show("gpuci", ours, bound)
    show("xdist loadfile", xdist, bound)
    ratios = [other / own for own, other in zip(ours.start_up, xdist.start_up, strict=True)]
    print(f"  xdist's start-up / gpuci's   {node_runs.spread(ratios, 'x')}", flush=True)
    wrong = abs(ours.ends["failed"] - crashes * rounds)
    return wrong + ours.ends["lost"] + ours.ends["twice"]


def clear(root: Path) -> None:
    """Forget which workers began."""
    for name in (root / "begun").glob("*"):
        name.unlink()


def collected(root: Path, python: str) -> int:
    """How many tests pytest finds."""
    _ran, printed = node_runs.with_pytest(root, python, ["-q", "--collect-only"])
    found = re.search(r"^(\d+) tests? collected", printed, re.MULTILINE)
    if not found:
        raise SystemExit(f"pytest did not collect the tree:\n{printed}")
    return int(found[1])


def node_ends(ran: Ran, expected: int) -> Counter[str]:
    """passed, failed, lost, twice."""
    ends = Counter(outcome for outcomes in ran.outcomes.values() for outcome in outcomes[:1])
    ends["lost"] = expected - len(ran.outcomes)
    ends["twice"] = sum(len(outcomes) > 1 for outcomes in ran.outcomes.values())
    return ends


def xdist_arguments(slots: int) -> list[str]:
    """Verbose: a run that hangs has no last line to count by."""
    return ["-v", "-n", str(slots), "--dist", "loadfile"]


def xdist_ends(printed: str, expected: int) -> Counter[str]:
    """The same from xdist's lines `[gw1] [ 20%] PASSED test_a.py::test_b `."""
    ended = re.findall(r"^\[gw\d+\](?: \[ *\d+%\])? (PASSED|FAILED) (.+?) *$", printed, re.MULTILINE)
    by_test: dict[str, list[str]] = {}
    for outcome, nodeid in ended:
        by_test.setdefault(nodeid, []).append(outcome.lower())
    ends = Counter(outcomes[0] for outcomes in by_test.values())
    ends["lost"] = expected - len(by_test)
    ends["twice"] = sum(len(outcomes) > 1 for outcomes in by_test.values())
    return ends


def show(name: str, measured: Measured, bound: float | None) -> None:
    """Two lines of the table; the counts are of all rounds."""
    beyond = [seconds / bound for seconds in measured.seconds] if bound else []
    ends = ", ".join(f"{measured.ends[word]} {word}" for word in ("passed", "failed", "lost", "twice"))
    print(f"  {name:16} wall {node_runs.spread(measured.seconds)}", end="")
    print(f" = {node_runs.spread(beyond, 'x bound')}" if bound else "")
    slots = "/".join(map(str, sorted(measured.slots)))
    print(f"  {'':16} start-up {node_runs.spread(measured.start_up)} on {slots} slots; {ends}")
    if measured.hung:
        print(f"  {'':16} HUNG in {measured.hung} of {len(measured.seconds)} rounds, and was killed")


if __name__ == "__main__":
    raise SystemExit(main())
