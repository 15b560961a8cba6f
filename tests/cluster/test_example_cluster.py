"""The example as Slurm jobs in containers, and one shard as a step of a workflow runs it."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.bed.handle import Bed
from tests.cluster.bed.processes import wait_for
from tests.cluster.example import (
    EXPECTED,
    REPOSITORY,
    differences,
    environment,
    here,
    of_schedule,
    on_the_bed,
)

REPOSITORY_NAME = "octo/tests"


def test_each_test_comes_out_on_the_cluster_as_it_does_here(bed: Bed, tmp_path: Path) -> None:
    """Also with files that can't be collected, hang, crash: with every fault that the example has."""
    faults = list(EXPECTED["faults"])[-1]
    with ThreadPoolExecutor(2) as pool:
        local = pool.submit(here, tmp_path / "here", faults=faults)
        cluster = on_the_bed(bed, tmp_path / "there", faults=faults)
    assert local.result().report["counts"] == EXPECTED["faults"][faults]
    assert differences(local.result(), cluster) == []
    assert (cluster.report["verdict"], cluster.code) == ("failed", 1)
    assert cluster.report["counts"]["elsewhere"] > 0
    shards = cluster.report["shards"]
    assert sorted(shard["index"] for shard in shards) == list(range(1, 13))
    assert len({shard["node"] for shard in shards}) == 12
    assert "Traceback" not in cluster.stderr


HOSTILE = [
    "::error file=x.py::not the tests'",
    "::set-output name=x::y",
    "::add-mask::passed",
    "::endgroup::",
    "::stop-commands::0",
    "##[error]not the tests'",
    "##[add-matcher]/tmp/m.json",
    "\x1b[2J\x1b[1;1Hnot the tests'",
    "\r::warning::not the tests'",
    "gpuci-frame 0 {}",
]
TREE = {
    ".github/gpuci.yml": "packages: [.]\nprofiles: {node: {gpus: 2}}\n",
    "tests/test_loud.py": f"""
import os, sys, time
import pytest

pytestmark = pytest.mark.gpu
LINES = {HOSTILE!r}


@pytest.mark.parametrize("line", LINES)
def test_prints(line):
    print(line)
    os.write(1, (line + "\\n").encode())
    sys.__stderr__.write(line + "\\n")


def test_fails():
    print("\\n".join(LINES))
    raise AssertionError("\\n".join(LINES))
""",
    "tests/test_quiet.py": """
import pytest

pytestmark = pytest.mark.gpu


def test_passes():
    pass
""",
    "tests/test_slow.py": """
import os, signal, time
import pytest


@pytest.mark.gpu
def test_waits():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
""",
}


@dataclass
class Started:
    """A step's process, and the files that it writes."""

    process: subprocess.Popen[bytes]
    directory: Path

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(120)

    @property
    def streams(self) -> tuple[str, str]:
        """Standard output and error so far."""
        log, errors = (self.directory / name for name in ("stdout", "stderr"))
        return log.read_text(), errors.read_text()

    @property
    def report(self) -> dict[str, Any]:
        """report.json."""
        document: dict[str, Any] = json.loads((self.directory / "out/report.json").read_bytes())
        return document

    def runs_a_test(self) -> bool:
        """Whether a test has begun."""
        log = self.directory / "out/shard-1/log"
        return log.exists() and b'"kind":"start"' in log.read_bytes()


@dataclass
class Step:
    """A tree with a plan of one shard, and the environment of a step that runs it."""

    bed: Bed
    directory: Path
    plan: Path
    run: str

    def start(self, name: str, *arguments: str) -> Started:
        """Start `run_gpu_shard.py`."""
        directory = self.directory / name
        directory.mkdir()
        environ = {
            **environment(),
            **of_schedule(directory, self.run, REPOSITORY_NAME),
            "GPUCI_PLAN": str(self.plan),
            "GPUCI_SHARD": "1",
            "GPUCI_TREE": str(self.directory / "tree"),
            "GPUCI_OUT": str(directory / "out"),
        }
        command = [sys.executable, "-I", str(REPOSITORY / "scripts/run_gpu_shard.py"), *arguments]
        with (directory / "stdout").open("wb") as stdout, (directory / "stderr").open("wb") as stderr:
            # A session of its own: a signal is for it alone.
            process = subprocess.Popen(
                command, env=environ, stdout=stdout, stderr=stderr, start_new_session=True
            )
        return Started(process, directory)

    @property
    def job_names(self) -> str:
        """How names of its jobs start."""
        return f"gpuci-{REPOSITORY_NAME.replace('/', '.')}-{self.run}-"


def planned(bed: Bed, directory: Path, *files: str) -> Step:
    """A step for a tree that holds these files of TREE."""
    for name in (".github/gpuci.yml", *files):
        path = directory / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TREE[name])
    subprocess.run(["git", "init", "-q", str(directory / "tree")], check=True)
    made = subprocess.run(
        [
            *(sys.executable, "-I", str(REPOSITORY / "scripts/gpuci"), "plan", str(directory / "tree")),
            *(
                "--config",
                str(directory / "tree/.github/gpuci.yml"),
                "--config",
                str(bed.place / "gpuci.yml"),
            ),
            *("--shards", "1", "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    (directory / "plan.json").write_text(made.stdout)
    return Step(bed, directory, directory / "plan.json", secrets.token_hex(6))


@pytest.fixture
def loud(bed: Bed, tmp_path: Path) -> Step:
    """Tests that print what a log must not obey."""
    return planned(bed, tmp_path, "tests/test_loud.py", "tests/test_quiet.py")


@pytest.fixture
def slow(bed: Bed, tmp_path: Path) -> Iterator[Step]:
    """A test that takes longer than anybody waits, and ignores SIGTERM."""
    step = planned(bed, tmp_path, "tests/test_slow.py")
    yield step
    bed.root("scancel", *[job.id for job in bed.queue() if job.name.startswith(step.job_names)])


def heard(log: str) -> Iterator[tuple[str, str]]:
    """The workflow commands that GitHub's runner would obey: (command, value)."""
    stopped = ""
    for line in log.splitlines():
        assert "##[" not in line, "GitHub's runner finds it anywhere in a line"
        found = re.match(r"\s*::([\w-]+)(?: [^:]*)?::(.*)", line)
        if found and stopped in ("", found[1]):
            yield ("resume" if stopped else found[1]), found[2]
            stopped = found[2] if found[1] == "stop-commands" and not stopped else ""


def test_the_log_of_a_step_folds_by_file_and_obeys_no_test(loud: Step) -> None:
    step = loud.start("run")
    code = step.wait()
    log, errors = step.streams
    assert code == 1, (log, errors)
    assert step.report["counts"] == {"passed": len(HOSTILE) + 1, "failed": 1}
    commands = list(heard(log))
    obeyed = {"remove-matcher", "stop-commands", "resume", "group", "endgroup"}
    assert {name for name, _ in commands} == obeyed
    groups = [value.partition(" (")[0] for name, value in commands if name == "group"]
    assert sorted(groups) == ["tests/test_loud.py", "tests/test_quiet.py"]
    assert [name for name, _ in commands if name in ("group", "endgroup")] == ["group", "endgroup"] * 2
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", log + errors)
    assert "FAILED shard 1: tests/test_loud.py::test_fails" in log
    assert list(heard(errors)) == []
    assert "results: " not in errors  # nobody can open a runner's files


def running(bed: Bed, step: Step) -> tuple[Started, str]:
    """A started step whose test runs, and the id of its job."""
    started = step.start("run")
    assert wait_for(started.runs_a_test, 60), started.streams
    (job,) = (job for job in bed.queue() if job.name.startswith(step.job_names))
    assert job.state == "RUNNING"
    assert f"gpuci-{job.id}" in bed.containers()
    return started, job.id


def test_a_clean_up_step_ends_what_a_killed_step_left(bed: Bed, slow: Step) -> None:
    started, job = running(bed, slow)
    started.process.kill()
    cleaning = slow.start("clean-up", "clean-up")
    assert cleaning.wait() == 0, cleaning.streams
    bed.wait_empty(0, name=slow.job_names)
    assert f"gpuci-{job}" not in bed.containers()
    assert f"cancelling {job}" in cleaning.streams[1]
    assert slow.start("again", "clean-up").wait() == 0
    started.process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_cancelled_step_waits_until_its_job_is_gone(bed: Bed, slow: Step, number: signal.Signals) -> None:
    started, job = running(bed, slow)
    started.process.send_signal(number)
    assert started.wait() == 7, started.streams
    bed.wait_empty(0, name=slow.job_names)
    assert f"gpuci-{job}" not in bed.containers()
    assert (started.report["verdict"], started.report["counts"]) == ("cancelled", {"not_finished": 1})
