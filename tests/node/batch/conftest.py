"""A job directory as the runner makes it, and its script run by hand: no Slurm, no container."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuci.config.model import Config, Node
from gpuci.execution import jobs, node_package
from gpuci.execution.containers.render import render
from gpuci.execution.log import LogReader
from gpuci.execution.slurm.script import BatchJob, batch_script
from gpuci.model import Plan, Root, Shard, Unit
from gpuci_node.processes import descendants

TOKEN = "5" * 32
BODY = Path(jobs.__file__).with_name("slurm") / "batch.sh"
ENDLESS = 60  # seconds: after that, something waits for ever
CONTAINER = {
    **{"runtime": "none", "image": None, "python": sys.executable, "setup": None, "pythonpath": []},
    **{"mounts": [], "env": [], "user": None, "workdir": "/workspace", "network": "host"},
    **{"shm-size": "64g", "cap-add": [], "extra-options": [], "pull-credential-command": []},
}
# Plugins that happen to be installed would act before the keeper does.
CONFIG = Config(node=Node(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}), container=dict(CONTAINER))


def plan_of(files: Mapping[str, str]) -> Plan:
    tests = [path for path in files if Path(path).name.startswith("test_")]
    units = tuple(
        Unit(f"u{i}", ".", path, "all", "normal", 1, "default", 1.0, 60.0) for i, path in enumerate(tests)
    )
    ids = tuple(unit.id for unit in units)
    return Plan(
        config={},
        sha=None,
        event="manual",
        roots=(Root("."),),
        targets=(),
        units=units,
        shards=(Shard(1, "default", ids, 1.0),),
        cpu_units=(),
        skipped=(),
        makespan_seconds=1.0,
        lower_bound_seconds=1.0,
        unknown_durations=0,
    )


@dataclass
class Ended:
    """What a job left."""

    code: int
    text: str
    log: LogReader
    outputs: list[tuple[str, str]]  # who printed what
    verdict: dict[str, Any] | None

    @property
    def said(self) -> str:
        return "\n".join(self.log.text)

    @property
    def outcomes(self) -> dict[str, str]:
        return {r["nodeid"]: r["outcome"] for r in self.log.records if r["kind"] == "end"}

    def notes(self, topic: str) -> list[str]:
        return [r["text"] for r in self.log.records if r["kind"] == "note" and r.get("topic") == topic]


class BatchDirectory:
    """A job directory below `home`, on a file system that "login node" and "node" share."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / "jobs" / "name"
        self.scratch = home / "scratch"
        self.bin = home / "bin"
        for path in (self.directory / "out", self.scratch, self.bin):
            path.mkdir(parents=True)
        self.environ = {
            **{"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(home), "SLURM_JOB_ID": "17"},
            **{"SLURMD_NODENAME": "n1", "CUDA_VISIBLE_DEVICES": "0,1"},
        }
        self.variables = {
            **{"GPUCI_JOB_DIR": str(self.directory), "GPUCI_NAME": "name", "GPUCI_RUNTIME": "none"},
            **{"GPUCI_SCRATCH_BASE": str(self.scratch), "GPUCI_LEASE_SECONDS": "300"},
            "GPUCI_NODE_PYTHON": sys.executable,
        }
        self.functions = ""  # besides those of the container

    def make(self, files: Mapping[str, str], expect_gpus: int = 2, **care: Any) -> None:
        """Deliver a tree, the node's code and the documents."""
        text = {"token": TOKEN + "\n", "lease": "0" * 12}
        for name, content in text.items():
            (self.directory / name).write_text(content)
        node_package.build(self.directory / "gpuci_node.pyz")
        self._deliver(files)
        given = {"lease_seconds": 300.0, "stall_seconds": 600.0, **care}
        document = jobs.job_document(
            plan_of(files),
            CONFIG,
            1,
            run="r.1",
            token=TOKEN,
            node=jobs.NodeFacts(None, (), expect_gpus=expect_gpus),
            paths=jobs.Paths(None, str(self.directory / "out"), None),
            python=["sh", str(self.directory / "job.sh"), "enter"],
            care=jobs.Care(str(self.directory / "lease"), **given),
        )
        (self.directory / "job.json").write_text(json.dumps(document))
        self.write_script()

    def write_script(self) -> None:
        """Make job.sh of the variables as they are now."""
        functions = render(CONTAINER, gpus=2, job_dir=str(self.directory)) + self.functions
        job = BatchJob((), self.variables, functions, BODY.read_text())
        (self.directory / "job.sh").write_text(batch_script(job))

    def _deliver(self, files: Mapping[str, str]) -> None:
        tree = self.home / "tree"
        for path, text in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        with tarfile.open(self.directory / "tree.tar", "w") as archive:
            for path in files:
                archive.add(tree / path, path)
        digest = hashlib.sha256((self.directory / "tree.tar").read_bytes()).hexdigest()
        self.variables["GPUCI_TREE_SHA256"] = digest

    def program(self, name: str, text: str) -> None:
        """Put a program in front of the node's own."""
        path = self.bin / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def start(self, shell: str = "sh") -> subprocess.Popen[bytes]:
        """Start the script as slurmd does: its output goes to a file."""
        with open(self.directory / "slurm.out", "ab") as log:
            return subprocess.Popen(
                [shell, str(self.directory / "job.sh")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environ,
                cwd="/",
                start_new_session=True,
            )

    def finish(self, script: subprocess.Popen[bytes]) -> Ended:
        """Wait for the end of the script, and read what there is."""
        code = script.wait(timeout=ENDLESS)
        data = (self.directory / "slurm.out").read_bytes()
        log = LogReader(TOKEN)
        outputs = [(r["slot"], r["text"]) for r in log.feed(data) if r["kind"] == "output"]
        path = self.directory / "out" / "verdict.json"
        verdict = json.loads(path.read_text()) if path.exists() else None
        return Ended(code, data.decode("utf-8", "replace"), log, outputs, verdict)

    def run(self, shell: str = "sh") -> Ended:
        """From start to end."""
        return self.finish(self.start(shell))

    def kill_all(self, script: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
        """Signal every process of the job at once, as scancel does."""
        for pid in self.processes(script.pid):
            os.kill(pid, number)

    def processes(self, top: int) -> list[int]:
        """The living processes below and with `top`, the youngest first."""
        return [*sorted(descendants(top), reverse=True), top]

    def is_alive(self, pid: int) -> bool:
        """Whether a process runs; a zombie does not."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until something is there, or has come about."""
        end = time.monotonic() + ENDLESS
        while not condition():
            assert time.monotonic() < end, what
            time.sleep(0.02)


@pytest.fixture
def batch(tmp_path: Path) -> BatchDirectory:
    """A job directory, its script still to be made."""
    return BatchDirectory(tmp_path)
