"""Isolated files that import torch: the node with `preload` against a process per file.

    python3 bench/node_isolated.py [--rounds 3] [--files 20] [--at-once 1] [--slow-rounds 1]

Each file imports torch and works for 0.1 s. Two preloads: torch, and a module that imports torch and takes
6 s more (--slow-seconds). In each round both run all files, the same number at a time: `python -m pytest
FILE` each, and one node with as many pretended GPUs. The figure is the ratio of their wall times within a
round. The more at a time, the more of the preload's own time stands against all that is saved. Goals with
one at a time: 5 x with torch, 10 x with the slow module. Exit code 1 if any test does not pass.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import node_runs
from bench.node_runs import File, Ran

WORK_SECONDS = 0.1

TEST = """\
import time
import {module}
import torch
def test_works():
    end = time.perf_counter() + 0.1
    a = torch.ones(64, 64)
    while time.perf_counter() < end:
        a = (a @ a).clamp(-1, 1)
    assert a.sum() == 64 * 64
"""
SLOW = "import time\nimport torch\ntime.sleep({seconds})\n"


def main() -> int:
    """Measure both preloads; 1 if a test did not pass."""
    parser = node_runs.parser(__doc__, needs_torch=True)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--slow-seconds", type=float, default=6.0)
    parser.add_argument("--slow-rounds", type=int, default=1, help="0 leaves the slow module out")
    arguments = parser.parse_args()
    python = node_runs.check_torch(arguments.python)
    print(f"{node_runs.versions(python)}; {arguments.files} files, {arguments.at_once} at a time")
    more = {"lib/slow_preload.py": SLOW.format(seconds=arguments.slow_seconds)}
    good = True
    slow = arguments.slow_seconds
    for module, least, rounds in (
        ("torch", 0.0, arguments.rounds),
        ("slow_preload", slow, arguments.slow_rounds),
    ):
        files = [
            File(f"test_{number:03}.py", TEST.format(module=module), mode="isolated")
            for number in range(arguments.files)
        ]
        with node_runs.tree(files, more) as root:
            good &= compare(root, files, python, (module, least), arguments.at_once, rounds)
    return 0 if good else 1


def compare(
    root: Path, files: Sequence[File], python: str, preload: tuple[str, float], at_once: int, rounds: int
) -> bool:
    """Print the wall times of both ways and their ratio; return whether every round was right.

    A round in which a test did not pass, or that was faster than it can be, gives no ratio.
    """
    module, least = preload
    plain, ours, good = [], [], True
    print(f"\npreload: [{module}]", flush=True)
    for _round in range(rounds):
        seconds, passed = process_per_file(root, files, python, at_once)
        ran = node_runs.on_node(root, files, python, gpus=at_once, preload=[module])
        complaint = wrong(ran, passed, len(files), least + len(files) / at_once * WORK_SECONDS)
        if complaint:
            print(f"  NO FIGURE: {complaint}")
            good = False
            continue
        plain.append(seconds)
        ours.append(ran.seconds)
    if ours:
        ratios = [one / other for one, other in zip(plain, ours, strict=True)]
        print(f"  a process per file   {node_runs.spread(plain)}")
        print(f"  gpuci                {node_runs.spread(ours)}")
        print(f"  ratio                {node_runs.spread(ratios, 'x')}", flush=True)
    return good


def wrong(ran: Ran, passed: int, files: int, floor: float) -> str:
    """Why a round can't be counted, or nothing. No run is faster than its preload and its work."""
    seen = sorted({outcome for outcomes in ran.outcomes.values() for outcome in outcomes})
    if passed != files:
        return f"plain pytest passed {passed} of {files}"
    if ran.count("passed") != files or len(ran.outcomes) != files:
        return f"gpuci passed {ran.count('passed')} of {files} in {ran.seconds:.2f} s; outcomes: {seen}"
    if ran.seconds < floor:
        return f"gpuci took {ran.seconds:.2f} s, and less than {floor:.2f} s is impossible"
    return ""


def process_per_file(root: Path, files: Sequence[File], python: str, at_once: int) -> tuple[float, int]:
    """Wall seconds of plain pytest on each file, and how many passed."""
    started = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        printed = list(
            pool.map(lambda file: node_runs.with_pytest(root, python, ["-q", file.path])[1], files)
        )
    return time.monotonic() - started, sum("1 passed" in text for text in printed)


if __name__ == "__main__":
    raise SystemExit(main())
