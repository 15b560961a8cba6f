"""How long after a cancellation on GitHub the cluster has nothing of a run any more.

    python bench/cancel_step.py --bed DIR [--runs 20] [--shards 4] [--kills 2] [--lease-seconds 60]

`tests/cluster/up DIR` makes the bed; needs root. Each run starts a step as GitHub's runner does (bash, with
the run line of actions/run-gpu-shard) for shards whose tests only SIGKILL ends, cancels it as the runner does
(SIGINT to bash's process, SIGTERM after 7.5 s, SIGKILL after 2.5 s more) at one of three moments in turn, and
watches the queue. Then all processes of a step are killed at once, and the lease has to end its jobs. Exit
code 1 if a cancellation took 10 s or more, or a lease longer than itself and 30 s.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from bench.cluster_login import table  # noqa: E402
from tests.cluster.bed.handle import Bed  # noqa: E402
from tests.cluster.bed.place import Place  # noqa: E402
from tests.cluster.bed.processes import wait_for  # noqa: E402
from tests.cluster.runner_step import Emptied, Planned, RunnerStep, planned, until_empty  # noqa: E402

LIMIT_SECONDS = 10.0
BEHIND_THE_LEASE_SECONDS = 30.0
PATIENCE_SECONDS = 90.0
MOMENTS = ("at once", "a job is there", "all tests run")


def reached(work: Planned, step: RunnerStep, names: str, moment: str) -> bool:
    """Wait for the moment."""
    if moment == "at once":
        return True
    if moment == "a job is there":
        return wait_for(lambda: bool(work.jobs(names)), PATIENCE_SECONDS)
    return wait_for(lambda: step.running(work.shards), PATIENCE_SECONDS)


def measured(work: Planned, moment: str, blow: Callable[[RunnerStep], int], patience: float) -> Emptied:
    """One run that is struck at a moment."""
    step, names = work.step()
    if not reached(work, step, names, moment):
        raise TimeoutError(step.log.read_text())
    return until_empty(work, names, lambda: blow(step), patience=patience)


def killed(step: RunnerStep) -> int:
    """As when the runner's machine is lost."""
    step.kill()
    return step.process.wait()


def row(what: str, found: list[Emptied]) -> list[str]:
    """For the table."""
    seconds = [each.seconds for each in found]
    return [what, str(len(found)), f"{statistics.median(seconds):.2f} s", f"{max(seconds):.2f} s"]


def measure(bed: Bed, directory: Path, arguments: argparse.Namespace) -> tuple[list[list[str]], bool]:
    """What to print, and whether all were in time."""
    work = planned(bed, directory, arguments.shards, lease_seconds=arguments.lease_seconds)
    cancelled: dict[str, list[Emptied]] = {moment: [] for moment in MOMENTS}
    for number in range(arguments.runs):
        moment = MOMENTS[number % len(MOMENTS)]
        cancelled[moment].append(measured(work, moment, RunnerStep.cancel, PATIENCE_SECONDS))
    limit = arguments.lease_seconds + BEHIND_THE_LEASE_SECONDS
    lost = [measured(work, MOMENTS[-1], killed, limit + PATIENCE_SECONDS) for _ in range(arguments.kills)]
    rows = [["queue empty after", "runs", "median", "most"]]
    rows += [row(f"cancelled when {moment}", found) for moment, found in cancelled.items() if found]
    rows += [row(f"everything killed, lease {arguments.lease_seconds} s", lost)] if lost else []
    in_time = all(each.seconds < LIMIT_SECONDS for found in cancelled.values() for each in found)
    return rows, in_time and all(each.seconds < limit for each in lost)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bed", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--lease-seconds", type=int, default=60)
    arguments = parser.parse_args()
    # A shell ignores it in what it starts in the background, and the steps would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="g-") as directory:
        rows, good = measure(Bed(Place(arguments.bed.resolve())), Path(directory), arguments)
    print(table(rows))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
