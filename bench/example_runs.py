"""Whole runs of examples/monorepo: are the outcomes the same each time, and how long does a run take?

    python bench/example_runs.py [--runs 10] [--jobs 1] [-- more arguments of `gpuci run`]

Each run is the command of the README in a process of its own. Prints seconds, verdict and counts of each
run, then the median; exits with 1 if two runs differ in any outcome or a run is not passed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


def one_run(out: Path, jobs: int, more: list[str]) -> tuple[float, str, dict[str, str]]:
    """Seconds, verdict and outcome by node id."""
    command = [str(REPOSITORY / "gpuci"), "run", str(REPOSITORY / "examples" / "monorepo")]
    started = time.monotonic()
    subprocess.run(
        [*command, "--out", str(out), "--jobs", str(jobs), *more], capture_output=True, check=False
    )
    seconds = time.monotonic() - started
    report = json.loads((out / "report.json").read_text())
    return seconds, report["verdict"], {test["nodeid"]: test["outcome"] for test in report["tests"]}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("more", nargs="*")
    args = parser.parse_args()
    times, seen = [], []
    for number in range(args.runs):
        with tempfile.TemporaryDirectory() as directory:
            seconds, verdict, outcomes = one_run(Path(directory) / "out", args.jobs, args.more)
        times.append(seconds)
        seen.append((verdict, outcomes))
        print(f"run {number + 1:>2}: {seconds:6.1f} s  {verdict}  {len(outcomes)} tests", flush=True)
    same = all(outcomes == seen[0][1] for _verdict, outcomes in seen)
    print(f"median {statistics.median(times):.1f} s; outcomes {'identical' if same else 'DIFFER'}")
    return 0 if same and all(verdict == "passed" for verdict, _outcomes in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
