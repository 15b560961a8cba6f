"""One run of a small tree on the bed, and what a row can wait for and do to it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.bed.handle import Bed
from tests.cluster.bed.place import GPU_NODES, USER, Place
from tests.cluster.example import of_schedule
from tests.cluster.faulting.door import Door, comm, environ, pids, words
from tests.cluster.faulting.rows import Row
from tests.cluster.faulting.runner import Product, Runner
from tests.cluster.faulting.trees import Seen, read_witness, write_tree
from tests.cluster.faulting.watch import Watch

from gpuci.execution.slurm.names import job_name

STEP_SECONDS = 0.05
TRIES = (1, 2)


class NeverCame(Exception):
    """What a row waited for did not come: the row shows nothing then."""


@dataclass(frozen=True)
class Job:
    """A line of squeue."""

    id: str
    name: str
    state: str
    reason: str
    node: str

    @property
    def over(self) -> bool:
        """Whether Slurm has finished with it."""
        return self.state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED")


class Scene:
    """`nodes` are the bed's GPU nodes that its jobs may use; `product` is what is under test."""

    def __init__(
        self, place: Place, row: Row, seed: int, variant: str, nodes: Sequence[str], product: Product
    ) -> None:
        self.place, self.row, self.seed, self.variant, self.nodes = place, row, seed, variant, nodes
        self.bed = Bed(place)
        self.rng = random.Random(f"{row.name}/{seed}")
        self.key = f"x{secrets.token_hex(4)}"
        self.top = Path(tempfile.mkdtemp(prefix="gpuci-faults-"))
        self.top.chmod(0o755)
        self.shared = place / "shared" / self.key
        self.scratch = place / "scratch" / self.key
        self.witness = self.top / "witness/seen"
        self.settings: dict[str, Any] = dict(row.slurm)
        self.container: dict[str, Any] = {}
        self.runtime = row.runtime
        self.leaves = set(row.leaves)
        self.runners: list[Runner] = []
        self.notes: list[str] = []  # problems that a row saw itself
        self.planted = ""  # what was done, and when
        self.columns: dict[str, Any] = {}  # of a row's own
        self.blockers: list[str] = []
        self._product = product
        self.tree = self.top / "tree"
        self._folders()
        self.planned = write_tree(self.tree, row.tree, self.witness, self.rng)
        self.door = Door(place, self.top, self.key)
        self.doors = [self.door]
        self.watch = Watch(self.shared)

    def _folders(self) -> None:
        for folder in (self.tree, self.scratch, self.witness.parent, self.shared):
            folder.mkdir(parents=True)
        shutil.chown(self.shared, USER, USER)
        self.shared.chmod(0o700)
        self.witness.touch()
        for path in (self.scratch, self.witness.parent, self.witness):
            path.chmod(0o1777)

    # --- the run

    def overlay(self) -> dict[str, Any]:
        """The configuration that makes the tree run here."""
        base = "gpuci.yml" if self.runtime == "podman" else "gpuci-plain.yml"
        given: dict[str, Any] = json.loads((self.place / base).read_text())
        known = self.top / "known_hosts"
        known.write_text("".join(door.known_hosts for door in self.doors))
        witness = str(self.witness.parent)
        mounts = [*given["container"].get("mounts", ()), f"{witness}:{witness}"]
        slurm = {
            **given["slurm"],
            "login": [door.host for door in self.doors],
            "port": self.door.port,
            "known-hosts": str(known),
            "shared-dir": str(self.shared),
            "scratch-dir": str(self.scratch),
            "exclude": ",".join(node for node in GPU_NODES if node not in self.nodes),
            **self.settings,
        }
        container = {**given["container"], "mounts": mounts, **self.container}
        return {"slurm": slurm, "container": container}

    def start(self) -> Runner:
        """Open the doors, plan, start a runner."""
        for door in self.doors:
            door.start()
        (self.top / "overlay.yml").write_text(json.dumps(self.overlay()))
        gpuci = [self._product.python, "-I", str(self._product.scripts / "gpuci/__main__.py")]
        command = [*gpuci, "plan", str(self.tree), "--json", "--shards", "1"]
        command += [
            "--config",
            str(self.tree / ".github/gpuci.yml"),
            "--config",
            str(self.top / "overlay.yml"),
        ]
        with (self.top / "plan.json").open("wb") as plan:
            done = subprocess.run(command, stdin=-3, stdout=plan, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise NeverCame(f"no plan: {done.stderr.decode()[-500:]}")
        self.watch.start()
        return self.another()

    def another(self, *arguments: str) -> Runner:
        """One more runner of the same identity; the first is the one that a row is about."""
        repository = f"faults/{self.row.name}"
        environ = {
            "GPUCI_PLAN": str(self.top / "plan.json"),
            "GPUCI_SHARD": "all",
            "GPUCI_TREE": str(self.tree),
            "GITHUB_REPOSITORY": repository,
            "GITHUB_RUN_ID": self.key,
            "GITHUB_RUN_ATTEMPT": "1",
            **(of_schedule(self.top, self.key, repository) if self.row.actions else {}),
        }
        runner = Runner(self.top / f"r{len(self.runners)}", self._product, environ, *arguments)
        if not arguments:
            self.runners.append(runner)
        return runner

    @property
    def runner(self) -> Runner:
        """The one whose result counts: the last."""
        return self.runners[-1]

    def finish(self, seconds: float) -> None:
        """Wait until no runner is left."""
        end = time.monotonic() + seconds
        for runner in self.runners:
            if not runner.wait(max(0.1, end - time.monotonic())):
                self.notes.append(f"a runner still ran after {seconds:.0f} s")
                runner.kill()

    # --- what can be waited for

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Wait; raises NeverCame when the time is over or the runner has ended before."""
        end = time.monotonic() + seconds
        while not condition():
            ended = self.runners and not any(runner.alive for runner in self.runners)
            if (ended and not condition()) or time.monotonic() > end:
                said = "".join(runner.said for runner in self.runners)[-700:]
                raise NeverCame(f"{what} never came{' before the runner ended' if ended else ''}: {said}")
            time.sleep(STEP_SECONDS)

    def seen(self, word: str) -> list[Seen]:
        """Tests that have begun (`start`) or ended (`end`) so far."""
        return [line for line in read_witness(self.witness) if line.word == word]

    def tests_ended(self, least: int = 0, share: float = 0.67) -> int:
        """Wait for a moment drawn from the seed: until so many tests, at most a share, have ended."""
        return self._until(self.rng.randint(least, max(least, int(len(self.planned) * share))))

    def _until(self, many: int) -> int:
        self.wait(f"the end of {many} tests", lambda: len(self.seen("end")) >= many)
        if not many:
            self.wait("a test", lambda: bool(self.seen("start")))
        return many

    def moment(self, share: float = 1.0) -> str:
        """Wait for a moment from the first folder to the end of a share of the tests; say which it was."""
        drawn = self.rng.randint(-3, int(len(self.planned) * share))
        if drawn >= 0:
            return f"after {self._until(drawn)} tests"
        if drawn == -1:
            return f"with its job {self.job().state}"
        place = self.shared / "nodes" if drawn == -2 else self.directory()
        self.wait(f"{place}", place.exists)
        return f"when {'its job directory' if drawn == -3 else 'the first folder'} was there"

    def names(self) -> list[str]:
        """The job names that this run can use."""
        return [job_name(f"faults/{self.row.name}", self.key, 1, 1, number) for number in TRIES]

    def jobs(self) -> list[Job] | None:
        """What the queue knows of them, None when it does not answer."""
        words = ("squeue", "-h", "-t", "all", "-n", ",".join(self.names()), "-o", "%i|%j|%T|%r|%N")
        try:
            done = self.bed.root(*words, timeout=30)
        except subprocess.TimeoutExpired:
            return None
        lines = done.stdout.splitlines()
        return None if done.returncode else [Job(*line.split("|", 4)) for line in lines]

    def job(self, *states: str, seconds: float = 60) -> Job:
        """Wait for a job of this run in one of the states (none named: one that is not over)."""
        found: list[Job] = []

        def look() -> bool:
            jobs = self.jobs() or []
            found[:] = [job for job in jobs if (job.state in states if states else not job.over)]
            return bool(found)

        self.wait(f"a job in state {' or '.join(states) or 'alive'}", look, seconds)
        return found[-1]

    def directory(self, number: int = 1) -> Path:
        """The job directory of a try."""
        return self.shared / "jobs" / self.names()[number - 1]

    def block(self, *options: str) -> None:
        """Submit a job that keeps this run's waiting, until `unblock`."""
        words = ("sbatch", "--parsable", "-J", "blocker", "-o", "/dev/null", "--time=30", *options)
        done = self.bed.as_ci(*words, stdin="#!/bin/sh\nexec sleep 900\n")
        if done.returncode:
            raise NeverCame(f"no blocker: {done.stderr}")
        self.blockers.append(done.stdout.strip())
        self.bed.await_state(self.blockers[-1], "RUNNING")

    def occupy(self) -> None:
        """Take all GPUs of this run's nodes."""
        for node in self.nodes:
            self.block("--partition=gpu", "--gres=gpu:8", f"--nodelist={node}", "--mem=100")

    def unblock(self) -> None:
        """Let the run's jobs start."""
        if self.blockers:
            self.bed.root("scancel", *self.blockers)
        self.blockers.clear()

    # --- the end

    @property
    def patience(self) -> float:
        """Seconds that a job may take longer to end, when nobody is left who ends it."""
        return (
            0.0
            if self.runners and self.runner.code is not None and self.runner.code >= 0
            else self.lease * 1.5
        )

    @property
    def lease(self) -> float:
        """Seconds of the lease."""
        return float(self.settings.get("lease-seconds", 300))

    def unmount(self) -> None:
        """Take away what a row mounted over the shared folder."""
        if os.path.ismount(self.shared):
            self.bed.root("umount", "--lazy", str(self.shared))

    def close(self, keep: Path | None) -> None:
        """Put the bed right, remove everything; `keep`: copy what explains a failure there before."""
        for runner in self.runners:
            if runner.alive:
                runner.kill()
        self.bed.heal()
        self.unblock()
        if jobs := [job.id for job in self.jobs() or [] if not job.over]:
            self.bed.root("scancel", *jobs)
        self._end_what_is_left()
        self.watch.stop()
        for door in self.doors:
            door.stop()
        if keep is not None:
            self._keep(keep)
        self.unmount()
        for folder in (self.top, self.shared, self.scratch):
            shutil.rmtree(folder, ignore_errors=True)

    def _end_what_is_left(self) -> None:
        """A red run, or a mutant, can leave processes and containers; the next run is not to meet them."""
        if self.runtime == "podman":
            names = [f"gpuci-{job.id}" for job in self.jobs() or []]
            self.bed.as_ci("podman", "rm", "--force", "--ignore", "--time=0", "none", *names)
        for pid in pids():
            if pid != os.getpid() and comm(pid) != "sshd" and self.key in words(pid) + environ(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _keep(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, path in {"run": self.top, "shared": self.shared}.items():
            command = ["cp", "-a", str(path), str(folder / name)]
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
