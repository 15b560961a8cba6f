"""Whole runs of examples/monorepo: are the outcomes the same each time, and how long does a run take?

    python bench/example_runs.py [--runs 10 | --seeds 20] [--jobs 1] [-- more arguments of `gpuci run`]

Each run is the command of the README in a process of its own. With --seeds, run n plans with durations that
were made up with the seed n: other shards, other pieces, another order. Prints seconds, verdict and counts
of each run, then the median; exits with 1 if two runs differ in any outcome or a run is not passed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]


EXAMPLE = REPOSITORY / "examples" / "monorepo"
GPUCI = str(REPOSITORY / "gpuci")


def one_run(out: Path, more: list[str]) -> tuple[float, str, dict[str, str]]:
    """Seconds, verdict and outcome by node id."""
    command = [GPUCI, "run", str(EXAMPLE), "--out", str(out), *more]
    started = time.monotonic()
    subprocess.run(command, capture_output=True, check=False)
    seconds = time.monotonic() - started
    report = json.loads((out / "report.json").read_text())
    return seconds, report["verdict"], {test["nodeid"]: test["outcome"] for test in report["tests"]}


def functions() -> list[str]:
    """The node ids of the example's test functions."""
    command = [GPUCI, "manifest", str(EXAMPLE), "--json"]
    manifest = subprocess.run(command, capture_output=True, check=True).stdout
    return [target["nodeid"] for target in json.loads(manifest)["targets"]]


def made_up(nodeids: list[str], seed: int) -> dict[str, float]:
    """Durations from a hundredth of a second to a hundred seconds, evenly over the magnitudes."""
    chance = random.Random(seed)
    return {nodeid: round(10 ** chance.uniform(-2, 2), 3) for nodeid in nodeids}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seeds", type=int, metavar="N", help="N runs, each with durations of its own")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("more", nargs="*")
    args = parser.parse_args()
    nodeids = functions() if args.seeds else []
    times, seen = [], []
    for number in range(1, (args.seeds or args.runs) + 1):
        with tempfile.TemporaryDirectory() as directory:
            more = ["--jobs", str(args.jobs), *args.more]
            if args.seeds:
                durations = Path(directory, "durations.json")
                durations.write_text(json.dumps(made_up(nodeids, number)))
                more += ["--durations", str(durations)]
            seconds, verdict, outcomes = one_run(Path(directory, "out"), more)
        times.append(seconds)
        seen.append((verdict, outcomes))
        print(f"run {number:>2}: {seconds:6.1f} s  {verdict}  {len(outcomes)} tests", flush=True)
    same = all(outcomes == seen[0][1] for _verdict, outcomes in seen)
    print(f"median {statistics.median(times):.1f} s; outcomes {'identical' if same else 'DIFFER'}")
    return 0 if same and all(verdict == "passed" for verdict, _outcomes in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
