"""Tests share folders with keeper and script, who see more than they: nothing beyond those is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PASSES = {"test_a.py": "def test_1(): pass\n"}
PLANTS = {
    "a link": "os.symlink({theirs!r} + '/file', path)",
    "a link to a directory": "os.symlink({theirs!r}, path)",
    "a named pipe": "os.mkfifo(path)",
    "a directory": "os.makedirs(path + '/full')",
}


@pytest.fixture
def theirs(batch: Any) -> Path:
    """What is no business of this job."""
    place: Path = batch.home / "theirs"
    place.mkdir()
    (place / "file").write_text("theirs")
    for number in range(9):
        (place / f"gw0.{number}").mkdir()
    return place


def is_untouched(theirs: Path) -> bool:
    return len(list(theirs.iterdir())) == 10 and (theirs / "file").read_text() == "theirs"


def planting(batch: Any, plant: str, names: list[str], then: str = "") -> dict[str, str]:
    lines = [
        "import os, time",
        "def test_1():",
        f"    for path in {[str(batch.directory / 'out' / name) for name in names]!r}:",
        "        if os.path.exists(path): os.unlink(path)",
        f"        {PLANTS[plant].format(theirs=str(batch.home / 'theirs'))}",
        f"    {then}",
    ]
    return {"test_a.py": "\n".join(lines) + "\n"}


def remove(batch: Any, names: list[str]) -> None:
    """So that the results can be read."""
    for name in names:
        path = batch.directory / "out" / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not path.is_file() or path.is_symlink():
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("plant", PLANTS)
def test_what_a_test_puts_where_the_verdict_belongs(batch: Any, theirs: Path, plant: str) -> None:
    batch.make(planting(batch, plant, ["verdict.json"]))
    script = batch.start()
    code = script.wait(60)
    remove(batch, ["verdict.json"])
    ended = batch.finish(script)
    assert code == (4 if plant == "a directory" else 0)
    assert ended.text.splitlines()[-1].endswith(f'{{"kind":"over","code":{code}}}')
    assert is_untouched(theirs)


@pytest.mark.parametrize("plant", PLANTS)
def test_what_a_test_puts_there_before_the_keeper_is_killed(batch: Any, theirs: Path, plant: str) -> None:
    names, mark = ["journal.jsonl", "verdict.json"], batch.home / "mark"
    batch.make(planting(batch, plant, names, f"open({str(mark)!r}, 'w').close(); time.sleep(600)"))
    script = batch.start()
    batch.wait_for(mark.exists, "the test began")
    for pid in batch.processes(script.pid):
        if b"slurm" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            os.kill(pid, signal.SIGKILL)
    code = script.wait(60)
    remove(batch, names)
    ended = batch.finish(script)
    assert code == 4
    assert "left without a verdict (exit code 137)" in ended.said
    assert ended.text.splitlines()[-1].endswith('{"kind":"over","code":4}')
    assert is_untouched(theirs)


def test_a_link_in_place_of_the_processes_folder(batch: Any, theirs: Path) -> None:
    test = (
        "import os\n"
        "def test_1():\n"
        "    there = os.environ['TMPDIR'] + '/processes'\n"
        "    os.rename(there, there + '.old')\n"
        f"    os.symlink({str(theirs)!r}, there)\n"
    )
    # In a container that path would lead to its own files.
    batch.functions = (
        f'container_run() {{ exec unshare --mount sh -c \'mount -t tmpfs none "$0" && exec "$@"\' '
        f"'{theirs}' {sys.executable} \"$@\"; }}\n"
    )
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespace for this user")
    batch.make({"test_a.py": test})
    assert batch.run().outcomes == {"test_a.py::test_1": "passed"}
    assert is_untouched(theirs)


@pytest.mark.parametrize("role", ["starter", "slurm"])
def test_who_comes_after_the_one_before_was_killed_does_not_stay(
    batch: Any, tmp_path: Path, role: str
) -> None:
    """A container may come to life when all of the job outside is dead."""
    batch.make(PASSES)
    for path in ("scratch/tmp/commands", "scratch/tmp/events", "scratch/tmp/lifeline"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / path)
    argument = {"starter": tmp_path / "scratch" / "tmp", "slurm": batch.directory / "job.json"}[role]
    late = subprocess.run(
        [sys.executable, str(batch.directory / "gpuci_node.pyz"), role, str(argument)],
        env={**batch.environ, "GPUCI_SCRATCH": str(tmp_path / "scratch")},
        timeout=60,
    )
    assert late.returncode == {"starter": 1, "slurm": 7}[role]
    assert not (batch.directory / "out" / "journal.jsonl").exists()


def test_the_scratch_of_a_job_that_begins_is_not_taken_for_a_dead_ones(batch: Any) -> None:
    mark, go, flock = batch.home / "mark", batch.home / "go", shutil.which("flock")
    os.mkfifo(go)
    waits = f'if [ "$*" = "-n 8" ] && [ "$SLURM_JOB_ID" = 17 ]; then : >{mark}; read -r _ <{go}; fi'
    batch.program("flock", f'{waits}\nexec {flock} "$@"\n')
    batch.make(PASSES)
    script = batch.start()
    batch.wait_for(mark.exists, "the scratch is there, and not locked")
    other = batch.home / "jobs" / "other"
    shutil.copytree(batch.directory, other, ignore=shutil.ignore_patterns("claim", "slurm.out"))
    for name in ("job.sh", "job.json"):
        (other / name).write_text((other / name).read_text().replace(str(batch.directory), str(other)))
    subprocess.run(["sh", str(other / "job.sh")], env={**batch.environ, "SLURM_JOB_ID": "18"}, timeout=60)
    go.write_text("\n")
    assert batch.finish(script).verdict["verdict"] == "passed"


def test_a_signal_ends_all_of_a_step_before_its_scratch_is_removed(batch: Any) -> None:
    mark = batch.home / "mark"
    writes = 'while mkdir -p "$to"; do true >"$to/$((i += 1))"; done'
    batch.program("tar", f"trap 'exit 1' TERM\nfor to; do :; done\n: >{mark}\n{writes}\n")
    batch.make(PASSES)
    script = batch.start()
    batch.wait_for(mark.exists, "it unpacks")
    step = batch.processes(script.pid)
    os.kill(script.pid, signal.SIGTERM)
    assert batch.finish(script).verdict["verdict"] == "cancelled"
    batch.wait_for(lambda: not any(map(batch.is_alive, step)), "all of it ended")
    assert list(batch.scratch.iterdir()) == []
