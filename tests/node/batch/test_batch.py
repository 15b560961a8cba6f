"""The batch script on a pretended node: each way to begin, to go wrong and to end."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpuci.execution.slurm.fate import NO_IMAGE, judge
from gpuci.execution.slurm.states import JobFacts
from gpuci.schemas import load_schema
from gpuci_node.contract import EXIT_CODES

PASSES = {"test_a.py": "def test_1(): pass\ndef test_2(): pass\n"}
NEARLY_OVER = "the job's time limit is near: its tests were ended (slurm.time-limit, else from the plan)"
NO_SPACE = 'Error: "x": no space\\ left'
# Says that it began, and stays.
STAYS = {
    "test_a.py": (
        "import pathlib, time\n"
        "def test_1(): pass\n"
        "def test_2():\n    pathlib.Path({mark!r}).touch()\n    time.sleep(600)\n"
    )
}


def is_clean(batch: Any) -> bool:
    """Whether nothing of the job is left on the node."""
    return list(batch.scratch.iterdir()) == []


def judged(ended: Any) -> str:
    """The verdict, which exit code, frame, file and log have to agree on."""
    assert ended.verdict is not None
    jsonschema.validate(ended.verdict, load_schema("verdict"))
    name = str(ended.verdict["verdict"])
    assert ended.log.verdict is not None
    assert ended.log.verdict["verdict"] == name
    assert ended.code == ended.log.end_code == EXIT_CODES[name] == ended.verdict["exit_code"]
    return name


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_job_runs_its_tests_and_leaves_nothing(batch: Any, shell: str) -> None:
    batch.make({**PASSES, "test_b.py": "def test_3(): assert 0\n"})
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    ended = batch.run(shell)
    assert judged(ended) == "failed"
    assert ended.outcomes == {
        "test_a.py::test_1": "passed",
        "test_a.py::test_2": "passed",
        "test_b.py::test_3": "failed",
    }
    assert ended.verdict["fault"] is None
    journal = (batch.directory / "out" / "journal.jsonl").read_bytes()
    assert ended.verdict["journal"]["sha256"] == hashlib.sha256(journal).hexdigest()
    assert next(r for r in ended.log.records if r["kind"] == "job")["node"] == "n1"
    assert ended.text.rstrip().endswith('{"kind":"over","code":1}')
    assert is_clean(batch)


def test_tests_see_the_tree_on_scratch_and_temporary_files_of_their_own(batch: Any) -> None:
    batch.make(
        {
            "test_a.py": (
                "import os, tempfile\n"
                "def test_1():\n"
                "    here, tmp = os.path.dirname(os.path.abspath(__file__)), tempfile.mkdtemp()\n"
                "    assert os.path.commonpath([here, tmp]).startswith(os.environ['GPUCI_SCRATCH'])\n"
                "    assert oct(os.stat(__file__).st_mode)[-3:] == '644'\n"
                "    assert os.environ['GPUCI_NODE'] == 'n1'\n"
            )
        }
    )
    assert judged(batch.run()) == "passed"
    assert is_clean(batch)


# -- before the tests --------------------------------------------------------------------------------


def no_archive(batch: Any) -> None:
    (batch.directory / "tree.tar").unlink()


def other_archive(batch: Any) -> None:
    with open(batch.directory / "tree.tar", "ab") as stream:
        stream.write(b"\0")


def no_archive_at_all(batch: Any) -> None:
    (batch.directory / "tree.tar").write_text("this is text\n" * 100)
    digest = hashlib.sha256((batch.directory / "tree.tar").read_bytes()).hexdigest()
    batch.variables["GPUCI_TREE_SHA256"] = digest


def no_scratch(batch: Any) -> None:
    (batch.home / "file").write_text("")
    batch.variables["GPUCI_SCRATCH_BASE"] = str(batch.home / "file" / "scratch")


def no_runtime(batch: Any) -> None:
    batch.functions = 'container_check() { echo "the node has no podman"; return 1; }\n'


def no_image(batch: Any) -> None:
    batch.functions = (
        "container_pull() { echo trying; echo 'Error: \"x\": no space\\ left' >&2; echo; return 125; }\n"
    )


def no_gpus(batch: Any) -> None:
    batch.environ["CUDA_VISIBLE_DEVICES"] = "0"


def no_container(batch: Any) -> None:
    batch.functions = "container_run() { echo 'Error: crun: no cgroup' >&2; exit 126; }\n"


@pytest.mark.parametrize(
    ("plant", "reason"),
    [
        pytest.param(no_archive, "tree.tar", id="the archive is gone"),
        pytest.param(other_archive, "is damaged: its sha256 is", id="the archive has another hash"),
        pytest.param(no_archive_at_all, "the tree can't be unpacked: tar: ", id="it is no archive"),
        pytest.param(
            no_scratch, "file/scratch (slurm.scratch-dir): Not a directory", id="scratch can't be made"
        ),
        pytest.param(no_runtime, "the node has no podman", id="the container's runtime is missing"),
        pytest.param(no_image, NO_IMAGE + NO_SPACE, id="no image"),
        pytest.param(no_gpus, "Slurm gave this job 1 of 2 GPUs", id="fewer GPUs"),
        pytest.param(no_container, "ended with exit code 126: Error: crun: no cgroup", id="no container"),
    ],
)
def test_a_node_that_is_to_blame_says_so(batch: Any, plant: Callable[[Any], None], reason: str) -> None:
    batch.make(PASSES)
    plant(batch)
    batch.write_script()
    ended = batch.run()
    assert judged(ended) == "infra"
    assert reason in ended.verdict["reason"]
    assert ended.verdict["fault"] == {"node": "n1", "reason": ended.verdict["reason"]}
    assert is_clean(batch)


def test_an_image_that_a_registry_refuses_is_the_configurations_fault(batch: Any) -> None:
    said = "Error: reading manifest x: errors:\\ndenied: no\\nunauthorized: authentication required\\n\\n"
    batch.functions = f"container_pull() {{ printf '{said}' >&2; return 125; }}\n"
    batch.make(PASSES)
    ended = batch.run()
    assert ended.verdict["reason"] == NO_IMAGE + "unauthorized: authentication required"
    assert "denied: no" in ended.said
    fate = judge(JobFacts("17", "job", "FAILED", "NonZeroExitCode", ended.code, 0), ended.verdict, "")
    assert (fate.verdict, fate.retry) == ("config_error", False)
    assert is_clean(batch)


def test_a_python_that_is_not_in_the_container_is_the_configurations_fault(batch: Any) -> None:
    batch.functions = "container_run() { exec /nowhere/python3; }\n"
    batch.make(PASSES)
    ended = batch.run()
    assert judged(ended) == "config_error"
    assert "container.python" in ended.verdict["reason"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("raise ImportError(\"No module named 'pytest'\")\n", "No module named 'pytest'"),
        ("__version__ = '6.2.5'\n", "pytest 6.2.5 is older than 7.0"),
    ],
    ids=["none", "an old one"],
)
def test_a_python_without_pytest_is_the_configurations_fault_before_any_test(
    batch: Any, content: str, why: str
) -> None:
    (batch.home / "pytest.py").write_text(content)
    run = f'PYTHONPATH={batch.home} exec {sys.executable} "$@"'
    batch.functions = f"container_run() {{ {run}; }}\n"
    batch.make({**PASSES, "test_b.py": "def test_3(): assert 0\n"})
    ended = batch.run()
    assert judged(ended) == "config_error"
    assert ended.verdict["reason"] == (
        f"container.python: {sys.executable} has no usable pytest: {why}; name the Python that has pytest, "
        "such as /opt/venv/bin/python, or install pytest for this one"
    )
    assert set(ended.outcomes.values()) <= {"not_finished"}
    assert ended.verdict["fault"] is None


def test_without_python_on_the_node_the_keeper_runs_where_the_tests_do(batch: Any) -> None:
    batch.variables["GPUCI_NODE_PYTHON"] = "no-such-python"
    batch.make(PASSES)
    ended = batch.run()
    assert judged(ended) == "passed"
    assert "n1 has no Python 3.8 or newer" in ended.said
    assert len(ended.notes("keeper_inside")) == 1
    assert is_clean(batch)


def test_an_old_python_on_the_node_is_none(batch: Any) -> None:
    batch.program("old-python", "exit 1\n")
    batch.variables["GPUCI_NODE_PYTHON"] = "old-python"
    batch.make(PASSES)
    assert "the keeper runs inside the container" in batch.run().said


# -- once, and for somebody --------------------------------------------------------------------------


def test_a_second_job_of_the_name_touches_nothing(batch: Any) -> None:
    batch.make(PASSES)
    (batch.directory / "claim").mkdir()
    (batch.directory / "claim" / "job").write_text("16\n")
    before = sorted(path.name for path in batch.directory.rglob("*"))
    ended = batch.run()
    assert (ended.code, ended.verdict, ended.log.end_code) == (4, None, None)
    assert ended.said == "gpuci: job 17 leaves at once: job 16 has name"
    assert sorted(path.name for path in batch.directory.rglob("*")) == sorted([*before, "slurm.out"])


@pytest.mark.parametrize(
    ("first", "verdict"),
    [(None, "preempted"), ("cancelled", "preempted"), ("failed", "failed")],
    ids=["killed", "ended by Slurm's signal", "done"],
)
def test_a_requeued_job_runs_nothing_twice(batch: Any, first: str | None, verdict: str) -> None:
    batch.make(PASSES)
    (batch.directory / "claim").mkdir()
    (batch.directory / "claim" / "job").write_text("17\n")
    (batch.directory / "out" / "journal.jsonl").write_bytes(b'{"kind":"job"}\n{"ki')
    if first is not None:
        path = batch.directory / "out" / "verdict.json"
        path.write_text(json.dumps({"verdict": first}, separators=(",", ":")))
    batch.environ["SLURM_RESTART_COUNT"] = "1"
    ended = batch.run()
    assert ended.code == ended.log.end_code == EXIT_CODES["preempted"]
    assert ended.verdict["verdict"] == verdict
    assert ended.outcomes == {}
    if verdict == "preempted":
        assert ended.verdict["journal"]["lines"] == 1
        assert ended.verdict["journal"]["sha256"] == hashlib.sha256(b'{"kind":"job"}\n{"ki').hexdigest()


def test_a_job_that_begins_under_a_dead_lease_ends_at_once(batch: Any) -> None:
    batch.make(PASSES)
    old = time.time() - 1000
    os.utime(batch.directory / "lease", (old, old))
    ended = batch.run()
    assert judged(ended) == "cancelled"
    assert ended.outcomes == {}


def test_a_lease_that_can_not_be_read_is_not_dead(batch: Any) -> None:
    batch.make(PASSES)
    (batch.directory / "lease").unlink()
    assert judged(batch.run()) == "passed"


@pytest.mark.parametrize("python", [sys.executable, "no-such-python"], ids=["outside", "inside"])
def test_a_job_ends_when_nobody_follows_it_any_more(batch: Any, python: str) -> None:
    batch.variables.update(GPUCI_NODE_PYTHON=python, GPUCI_LEASE_SECONDS="2")
    batch.make(staying(batch), lease_seconds=2.0)
    ended = batch.run()
    assert judged(ended) == "cancelled"
    assert "gone" in ended.verdict["reason"] + ended.said
    assert is_clean(batch)


# -- ends --------------------------------------------------------------------------------------------


def staying(batch: Any) -> dict[str, str]:
    mark = str(batch.home / "mark")
    return {path: text.format(mark=mark) for path, text in STAYS.items()}


def begun(batch: Any) -> Callable[[], bool]:
    mark = Path(batch.home) / "mark"
    return mark.exists


@pytest.mark.parametrize(
    ("number", "everywhere", "verdict", "reason"),
    [
        (signal.SIGTERM, False, "cancelled", "ended by a signal"),
        (signal.SIGTERM, True, "cancelled", "ended by a signal"),
        (signal.SIGUSR1, False, "timeout", NEARLY_OVER),
    ],
    ids=["TERM", "TERM to all, as scancel does", "USR1"],
)
def test_a_signal_ends_the_job_with_a_verdict(
    batch: Any, number: int, everywhere: bool, verdict: str, reason: str
) -> None:
    batch.make(staying(batch))
    script = batch.start()
    batch.wait_for(begun(batch), "the test began")
    living = batch.processes(script.pid)
    if everywhere:
        batch.kill_all(script, number)
    else:
        os.kill(script.pid, number)
    ended = batch.finish(script)
    assert judged(ended) == verdict
    assert ended.verdict["reason"] == reason
    assert ended.outcomes == {"test_a.py::test_1": "passed"}
    assert is_clean(batch)
    assert not any(map(batch.is_alive, living))


def test_the_keeper_hears_inside_that_the_time_limit_is_near(batch: Any) -> None:
    """The client of rootless podman does not pass USR1 on."""
    batch.variables["GPUCI_NODE_PYTHON"] = "no-such-python"
    client = f'trap : USR1; {sys.executable} "$@" <&3 & wait $!; wait $!'
    batch.functions = f"container_run() {{ exec sh -c '{client}' sh \"$@\" 3<&0; }}\n"
    batch.make(staying(batch))
    script = batch.start()
    batch.wait_for(begun(batch), "the test began")
    os.kill(script.pid, signal.SIGUSR1)
    ended = batch.finish(script)
    assert ended.verdict["reason"] == NEARLY_OVER
    assert ended.outcomes == {"test_a.py::test_1": "passed"}
    assert is_clean(batch)


@pytest.mark.parametrize(
    ("number", "verdict", "reason"),
    [
        (signal.SIGTERM, "cancelled", "ended by a signal before the tests began"),
        (
            signal.SIGUSR1,
            "timeout",
            "the job's time limit came before the tests began (slurm.time-limit, else from the plan)",
        ),
    ],
    ids=["TERM", "USR1"],
)
@pytest.mark.parametrize("step", ["unpack", "container_pull"])
def test_a_signal_before_the_tests_is_heard_at_once(
    batch: Any, step: str, number: int, verdict: str, reason: str
) -> None:
    mark = batch.home / "mark"
    if step == "unpack":
        batch.program("tar", f": >'{mark}'; exec sleep 600\n")
    else:
        batch.functions = f"container_pull() {{ : >'{mark}'; exec sleep 600; }}\n"
    batch.make(PASSES)
    script = batch.start()
    batch.wait_for(mark.exists, "the step began")
    os.kill(script.pid, number)
    ended = batch.finish(script)
    assert judged(ended) == verdict
    assert ended.verdict["reason"] == reason
    assert is_clean(batch)


def of_role(batch: Any, script: Any, role: str) -> int:
    """The pid of one of our processes of the job."""
    pids: list[int] = batch.processes(script.pid)
    for pid in pids:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if role.encode() in words and any(word.endswith(b"gpuci_node.pyz") for word in words):
            return pid
    raise AssertionError(f"no {role}")


def test_a_keeper_that_is_killed_leaves_no_process(batch: Any) -> None:
    batch.make(staying(batch))
    script = batch.start()
    batch.wait_for(begun(batch), "the test began")
    living = batch.processes(script.pid)
    os.kill(of_role(batch, script, "slurm"), signal.SIGKILL)
    ended = batch.finish(script)
    assert judged(ended) == "infra"
    assert ended.verdict["reason"] == "the keeper left without a verdict (exit code 137)"
    assert ended.verdict["fault"] is None
    data = (batch.directory / "out" / "journal.jsonl").read_bytes()
    assert ended.verdict["journal"] == {
        "lines": data.count(b"\n"),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    batch.wait_for(lambda: not any(map(batch.is_alive, living)), "all ended")


TRAPS = """import os, signal
def test_1():
    out = os.path.join({directory!r}, "out")
    os.symlink({victim!r}, os.path.join(out, "verdict.sh.tmp"))
    os.remove(os.path.join(out, "journal.jsonl"))
    for name in ("journal.jsonl", "verdict.json"):
        os.mkfifo(os.path.join(out, name))
    parent = os.getppid()
    for _ in range({above}):
        with open("/proc/%d/stat" % parent) as stream:
            parent = int(stream.read().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)
    signal.pause()
"""


def test_links_and_pipes_that_a_test_leaves_in_the_jobs_folder_do_no_harm(batch: Any) -> None:
    """The test is two below the keeper: a worker that the starter started, or that its parent forked."""
    victim = batch.home / "victim"
    victim.write_text("precious")
    batch.make({"test_a.py": TRAPS.format(directory=str(batch.directory), victim=str(victim), above=1)})
    ended = batch.run()
    assert judged(ended) == "infra"
    assert ended.verdict["journal"]["lines"] == 0
    assert victim.read_text() == "precious"


def test_the_keeper_ends_when_the_script_is_killed(batch: Any) -> None:
    batch.make(staying(batch))
    script = batch.start()
    batch.wait_for(begun(batch), "the test began")
    living = batch.processes(script.pid)
    os.kill(script.pid, signal.SIGKILL)
    batch.wait_for(lambda: not any(map(batch.is_alive, living)), "all ended")
    ended = batch.finish(script)
    assert ended.verdict["verdict"] == "cancelled"


def test_a_starter_lives_no_longer_than_its_keeper_whatever_stands_between(batch: Any) -> None:
    """A container's client and monitor are killed with the keeper: nobody passes an end of input on."""
    batch.functions = (
        f'container_run() {{ setsid {sys.executable} "$@" </dev/null & exec sleep 600 </dev/null; }}\n'
    )
    batch.make(staying(batch))
    script = batch.start()
    batch.wait_for(begun(batch), "the test began")
    starter = of_role(batch, script, "starter")
    for pid in batch.processes(script.pid):
        if pid != starter:
            os.kill(pid, signal.SIGKILL)
    batch.wait_for(lambda: not batch.is_alive(starter), "the starter ended")
    script.wait()


def test_a_containers_monitor_is_left_to_what_removes_the_container(batch: Any) -> None:
    """podman takes a container whose monitor was killed for one that still stops."""
    pid, alive = batch.home / "pid", batch.home / "alive"
    batch.variables["GPUCI_RUNTIME"] = "podman"
    batch.functions = (
        f"container_run() {{ (sleep 600 & echo $! >'{pid}'); exec {sys.executable} \"$@\"; }}\n"
        f"container_remove() {{ kill \"$(cat '{pid}')\" && : >'{alive}'; }}\n"
    )
    batch.make(PASSES)
    assert judged(batch.run()) == "passed"
    assert alive.exists()


def test_what_a_job_left_that_was_killed_is_removed_by_the_next(batch: Any) -> None:
    names = ["gpuci-n1-3.abcdef", "gpuci-n2-4.abcdef", "gpuci-n1-5.abcdef"]
    for name in names:
        (batch.scratch / name).mkdir()
        (batch.scratch / name / "lock").touch()
    removed = batch.home / "removed"
    batch.functions = f"container_remove() {{ echo $SLURM_JOB_ID >>'{removed}'; }}\n"
    batch.make(PASSES)
    with open(batch.scratch / names[2] / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        batch.run()
    assert sorted(path.name for path in batch.scratch.iterdir()) == sorted(names[1:])
    assert removed.read_text().split() == ["3", "17"]


def test_a_scratch_is_never_one_that_a_job_beside_it_would_remove(batch: Any) -> None:
    """Whoever finds the file can take it for what a killed job left, unless it is held."""
    seen = batch.home / "seen"
    (batch.bin / "flock").write_text(
        f"#!/bin/sh\nls -d '{batch.scratch}'/*/lock >>'{seen}' 2>&1\nexec {shutil.which('flock')} \"$@\"\n"
    )
    (batch.bin / "flock").chmod(0o755)
    batch.make(PASSES)
    assert judged(batch.run()) == "passed"
    assert "No such file" in seen.read_text().splitlines()[0]
