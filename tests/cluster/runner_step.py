"""A step as GitHub's runner runs it: its shell, its signals and how long it waits. For tests and a bench.

Source: actions/runner, ScriptHandlerHelpers.cs (the shell's arguments) and ProcessInvoker.cs (SIGINT to the
one process that it started, SIGTERM 7.5 s later, and 2.5 s after that SIGKILL to all below it).
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.cluster.bed.handle import Bed
from tests.cluster.example import REPOSITORY, environment, of_schedule

SIGINT_SECONDS, SIGTERM_SECONDS = 7.5, 2.5
OWNER = "octo/cancelled"
CONFIG = "packages: [.]\nprofiles: {node: {gpus: 2}}\n"
# Nothing but SIGKILL ends it.
TEST = """
import signal, time
import pytest


@pytest.mark.gpu
def test_waits():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
"""


def run_line(action: str) -> str:
    """The text that the last step of one of our actions runs."""
    document = yaml.safe_load((REPOSITORY / "actions" / action / "action.yml").read_text())
    line: str = document["runs"]["steps"][-1]["run"]
    return line


def tree_of(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(other for child in below for other in tree_of(int(child)))]


class RunnerStep:
    """The process of a step; its output goes to `directory`/log."""

    def __init__(self, directory: Path, action: str, environ: dict[str, str]) -> None:
        directory.mkdir()
        self.out = directory / "out"
        self.log = directory / "log"
        script = directory / "step.sh"
        script.write_text(run_line(action))
        files = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
                env={
                    **environment(),
                    "GITHUB_ACTION_PATH": str(REPOSITORY / "actions" / action),
                    "GPUCI_OUT": str(self.out),
                    **{name: str(directory / file) for name, file in files.items()},
                    **environ,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def cancel(self) -> int:
        """What the runner does when a person cancels; returns the exit code, negative after a signal."""
        for number, patience in ((signal.SIGINT, SIGINT_SECONDS), (signal.SIGTERM, SIGTERM_SECONDS)):
            self.process.send_signal(number)
            try:
                return self.process.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        self.kill()
        return self.process.wait()

    def kill(self) -> None:
        """SIGKILL to everything of it on this machine."""
        for pid in tree_of(self.process.pid):
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def running(self, shards: int) -> bool:
        """Whether a test has begun in each of the shards."""
        logs = [self.out / f"shard-{index}" / "log" for index in range(1, shards + 1)]
        return all(log.exists() and b'"kind":"start"' in log.read_bytes() for log in logs)


@dataclass(frozen=True)
class Planned:
    """A tree of as many shards as it has files, each busy for longer than anybody waits."""

    bed: Bed
    directory: Path
    shards: int

    def step(self, action: str = "run-gpu-shard", run: str = "") -> tuple[RunnerStep, str]:
        """Start a step for all shards, and how names of its jobs start."""
        run = run or secrets.token_hex(6)
        environ = {
            **of_schedule(self.directory, run, OWNER),
            "GPUCI_PLAN": str(self.directory / "plan.json"),
            "GPUCI_SHARD": "all",
            "GPUCI_TREE": str(self.directory / "tree"),
        }
        step = RunnerStep(self.directory / f"{action}-{run}", action, environ)
        return step, f"gpuci-{OWNER.replace('/', '.')}-{run}-"

    def jobs(self, names: str) -> list[str]:
        """The ids of jobs that are called so and have not ended."""
        return [job.id for job in self.bed.queue() if job.name.startswith(names)]


def planned(
    bed: Bed, directory: Path, shards: int, *, lease_seconds: int = 300, plain: bool = False
) -> Planned:
    """Make the tree and its plan."""
    tree, overlay = directory / "tree", directory / "overlay.json"
    (tree / ".github").mkdir(parents=True)
    (tree / ".github/gpuci.yml").write_text(CONFIG)
    for index in range(shards):
        (tree / f"test_{index:02}.py").write_text(TEST)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    overlay.write_text(json.dumps({"slurm": {"lease-seconds": lease_seconds}}))
    site = bed.place / "gpuci.yml"
    files = [word for file in (tree / ".github/gpuci.yml", site, overlay) for word in ("--config", str(file))]
    command = [sys.executable, "-I", str(REPOSITORY / "scripts/gpuci"), "plan", str(tree), *files]
    made = subprocess.run(
        [*command, "--shards", str(shards), "--json"], env=environment(), capture_output=True, check=True
    )
    (directory / "plan.json").write_bytes(made.stdout)
    return Planned(bed, directory, shards)


@dataclass(frozen=True)
class Emptied:
    """How long after a blow, in seconds, the queue had none of the jobs, and what the step ended with.

    `jobs`: the ids of those that there were.
    """

    seconds: float
    code: int
    jobs: Sequence[str]


def until_empty(work: Planned, names: str, blow: Callable[[], int], *, patience: float) -> Emptied:
    """Do `blow`, and watch the queue until the step is over and none of its jobs is left.

    The time counts to the look that found none, if no later one found any. Raises TimeoutError.
    """
    started = time.monotonic()
    before = work.jobs(names)
    last, after = started, started
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(blow)
        while True:
            over, now = done.done(), time.monotonic()
            if work.jobs(names):
                last = after = now
            elif after == last:
                after = now
            if over and after > last:
                return Emptied(after - started, done.result(), before)
            if now - started > patience:
                raise TimeoutError(f"after {patience:.0f} s there is still {work.jobs(names)}")
            time.sleep(0.05)
