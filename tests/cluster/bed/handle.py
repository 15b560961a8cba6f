"""What a test does with a bed that runs: commands, jobs, nodes, daemons, faults."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.bed.daemons import daemons
from tests.cluster.bed.place import USER, Place
from tests.cluster.bed.processes import Daemon, system_environ, wait_for

# States in which a job is still Slurm's (squeue(1), JOB STATE CODES).
ALIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "STOPPED"}
# States of a node that takes jobs (sinfo(1), NODE STATE CODES).
READY = {"idle", "mixed", "allocated", "completing"}

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Job:
    """A row of squeue."""

    id: str
    name: str
    state: str
    node: str


@dataclass
class Bed:
    """The bed in `place`. What a test changes through it, `heal` puts right again."""

    place: Place
    changed: set[str] = field(default_factory=set)
    jobs: list[str] = field(default_factory=list)

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`; its hosts are `bed` and `bed2`."""
        return self.place / "ssh_config"

    @property
    def image(self) -> str:
        """The image's id, `sha256:…`."""
        found = re.search(r"sha256:[0-9a-f]{64}", (self.place / "gpuci.yml").read_text())
        assert found
        return found.group()

    # --- commands

    def root(self, *command: str, stdin: str = "", timeout: float = 60) -> Done:
        """Run a command as root, with the bed's Slurm."""
        environ = {**system_environ(), "SLURM_CONF": str(self.place.slurm_conf)}
        return subprocess.run(
            command,
            env=environ,
            cwd="/",
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def as_ci(self, *command: str, stdin: str = "", timeout: float = 60) -> Done:
        """Run a command as the user `ci`, as on the login node, without ssh."""
        words = ("runuser", "-u", USER, "--", "env", f"HOME={self.place.home}", *command)
        return self.root(*words, stdin=stdin, timeout=timeout)

    def ssh(self, text: str, *, stdin: str = "", host: str = "bed", timeout: float = 60) -> Done:
        """Run a shell text on a login node, through a connection of its own."""
        return self.root("ssh", "-F", str(self.ssh_config), host, text, stdin=stdin, timeout=timeout)

    def get(self, *command: str) -> str:
        """What a command prints that must succeed, run as root."""
        done = self.root(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout.strip()

    # --- jobs

    def submit(self, script: str, *options: str) -> str:
        """Submit as `ci` over ssh; return the job's id. `heal` cancels what is left of it."""
        words = " ".join(["sbatch", "--parsable", "--output=/dev/null", *options])
        done = self.ssh(words, stdin=f"#!/bin/sh\n{script}\n")
        assert done.returncode == 0, done.stderr
        self.jobs.append(done.stdout.strip())
        return self.jobs[-1]

    def queue(self) -> list[Job]:
        """The jobs of all users that have not ended."""
        lines = self.get("squeue", "-h", "-t", "all", "-o", "%i|%j|%T|%N").splitlines()
        jobs = [Job(*line.split("|")) for line in lines]
        return [job for job in jobs if job.state in ALIVE]

    def job(self, identifier: str) -> dict[str, str]:
        """`scontrol show job` of one: JobState, Reason, ExitCode, NodeList, Restarts, …"""
        words = self.get("scontrol", "show", "job", "-o", identifier).split()
        return dict(word.partition("=")[::2] for word in words if "=" in word)

    def await_state(self, identifier: str, *states: str, seconds: float = 60) -> dict[str, str]:
        """Wait until the job is in one of the states; return it as `job` does."""
        facts: dict[str, str] = {}

        def reached() -> bool:
            facts.update(self.job(identifier))
            return facts["JobState"] in states

        assert wait_for(reached, seconds), facts
        return facts

    def wait_empty(self, seconds: float = 60, *, name: str = "") -> None:
        """Wait until no job is left; with `name`: none whose name starts so."""

        def left() -> list[Job]:
            return [job for job in self.queue() if job.name.startswith(name)]

        assert wait_for(lambda: not left(), seconds), left()

    def containers(self) -> list[str]:
        """Names of `ci`'s containers, those that have ended too."""
        done = self.as_ci("podman", "ps", "--all", "--format", "{{.Names}}")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    # --- nodes and faults

    def drain(self, node: str) -> None:
        """No new jobs; those that run stay."""
        self._set_node(node, "State=DRAIN", "Reason=test")

    def fail(self, node: str) -> None:
        """The controller calls it down: its jobs end with NODE_FAIL (or are queued again)."""
        self._set_node(node, "State=DOWN", "Reason=test")

    def resume(self, node: str) -> None:
        """Take it back."""
        if not self.daemon(node).pid:
            self.daemon(node).start()
        if self._node_state(node).startswith(("drain", "down")):
            # It can come back by itself just now, and then can't be resumed: what counts is asked below.
            self.root("scontrol", "update", f"NodeName={node}", "State=RESUME")
        assert wait_for(lambda: self._node_state(node) in READY, 40), self._node_state(node)
        self.changed.discard(node)

    def _node_state(self, node: str) -> str:
        return self.get("sinfo", "-h", "-N", "-n", node, "-o", "%T").split()[0]

    def _set_node(self, node: str, *changes: str) -> None:
        self.changed.add(node)
        self.get("scontrol", "update", f"NodeName={node}", *changes)

    def plant(self, node: str, fault: str, text: str = "") -> None:
        """A fault of a node's nvidia-smi, by a name of nvidia_smi.py."""
        self.changed.add(node)
        (self.place / f"faults/{node}/{fault}").write_text(text)

    # --- daemons

    def daemon(self, name: str) -> Daemon:
        """By its name: slurmctld, slurmdbd, munged, mariadbd, a node, sshd, sshd2, registry."""
        return daemons(self.place)[name]

    def stop(self, name: str) -> None:
        """End a daemon in an orderly way."""
        self.changed.add(name)
        self.daemon(name).stop()

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self.changed.add(name)
        self.daemon(name).kill()

    def pause(self, name: str) -> None:
        """SIGSTOP: it holds its port and answers nobody."""
        self.changed.add(name)
        self.daemon(name).signal(signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        """SIGCONT."""
        self.daemon(name).signal(signal.SIGCONT)

    def start(self, name: str) -> None:
        """Start a daemon, wait until it serves."""
        self.daemon(name).start()

    def restart(self, name: str) -> None:
        """Stop and start."""
        self.stop(name)
        self.start(name)

    # --- putting right

    def heal(self) -> None:
        """Cancel the jobs that `submit` made, undo faults, start and resume what was stopped through this."""
        if names := [name for name in self.changed if name in daemons(self.place)]:
            self._revive(names)
        if self.jobs:
            self.root("scancel", *self.jobs)
        self.jobs.clear()
        self.changed.clear()

    def _revive(self, names: Sequence[str]) -> None:
        for name in [name for name in daemons(self.place) if name in names]:
            self.go_on(name)
            if (self.place / f"faults/{name}").is_dir():
                for fault in (self.place / f"faults/{name}").iterdir():
                    fault.unlink()
                self.resume(name)
            elif name != "registry":
                self.start(name)
