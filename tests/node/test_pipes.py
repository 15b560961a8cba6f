"""The pipes between gpuci, keeper, starter and test processes: full, cut, or with a dead end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.execution import node_package
from gpuci_node.processes import parents_and_sessions
from gpuci_node.supervisor.child import Lines

SCRIPTS = str(Path(__file__).parents[2] / "scripts")
ENDLESS = 60  # seconds: after that, something waits for ever


@given(st.lists(st.binary(max_size=12) | st.just(b"\n") | st.just(b"ab\ncd")))
def test_lines_do_not_depend_on_how_the_stream_is_cut(chunks: list[bytes]) -> None:
    lines = Lines()
    assert [line for chunk in chunks for line in lines.feed(chunk)] == b"".join(chunks).split(b"\n")[:-1]


def test_a_line_without_end_is_dropped() -> None:
    lines = Lines(longest=10)
    assert [line for chunk in [b"x" * 8, b"x" * 8, b"\nfine\n"] for line in lines.feed(chunk)] == [
        b"",
        b"fine",
    ]


def keeper_job(tmp_path: Path, python: list[str], select: Any = "all", lifeline: bool = False) -> list[str]:
    """The command of a keeper with one unit, test_a.py below `tmp_path`."""
    package = tmp_path / "node.pyz"
    node_package.build(package)
    (tmp_path / "out").mkdir()
    unit = {"id": "u1", "root": ".", "file": "test_a.py", "select": select, "mode": "normal", "gpus": 1}
    document = {
        **{"run": "r1", "shard": 1, "try": 1, "token": "nonce", "event": "manual", "python": python},
        **{"lifeline": lifeline, "deadline_seconds": None, "markers": []},
        "paths": {name: str(tmp_path / name) for name in ("out", "scratch")} | {"root": str(tmp_path)},
        "node": {"name": "n1", "gpus": ["0"], "workers_per_gpu": 1, "cpu_workers": 0, "expect_gpus": 0},
        **dict.fromkeys(("link", "lease", "stall_seconds", "health", "setup", "output_bytes")),
        "settings": {
            **{"env": {}, "isolate": "file", "pytest_args": [], "pythonpath": []},
            **{"engine": "gpuci", "fork": False, "preload": [], "recycle_after_files": None},
        },
        "roots": [{"path": ".", "config_file": None, "args": [], "gpu_isolation": "mask"}],
        "units": [{**unit, "profile": "default", "expected_seconds": 1.0, "timeout_seconds": 60.0}],
    }
    (tmp_path / "job.json").write_text(json.dumps(document))
    return [sys.executable, "-I", str(package), "keeper", str(tmp_path / "job.json")]


# Says more than a pipe holds before it reads the rest of its first command, which is as long.
BUSY_STARTER = """
import json, os, sys
os.read(0, 1)
for _ in range(20_000):
    os.write(1, b'{"event": "record", "id": "gw0.1", "line": "no record, but it fills the pipe"}\\n')
sys.stdin.readline()
end = {"event": "exited", "id": "gw0.1", "code": 0, "signal": None, "tail": "", "left_over": 0, "born": True}
os.write(1, json.dumps(end).encode() + b"\\n")
sys.stdin.read()
"""


def test_keeper_and_starter_may_both_have_more_to_say_than_a_pipe_holds(tmp_path: Path) -> None:
    ids = [f"test_a.py::test_{number}" for number in range(20_000)]
    command = keeper_job(tmp_path, [sys.executable, "-c", BUSY_STARTER], select=ids)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=ENDLESS, check=False)
    assert done.returncode == 1  # the file was never collected
    assert json.loads((tmp_path / "out" / "verdict.json").read_text())["verdict"] == "failed"


INTERRUPTED_EVENT = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from gpuci_node.supervisor import starter
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
for _ in range(20):
    starter._tell("record", "gw0.1", line="x" * 500_000)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_events_are_whole_although_signals_cut_writes_short() -> None:
    """Children die while the starter writes. With PYTHONUNBUFFERED, sys.stdout loses what was not written."""
    command = [sys.executable, "-c", INTERRUPTED_EVENT, SCRIPTS]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=env, timeout=ENDLESS, check=True)
    assert [len(json.loads(line)["line"]) for line in done.stdout.splitlines()] == [500_000] * 20


# A child that neither session nor environment gives away, then records without end.
HIDING = """
import subprocess, pytest
@pytest.mark.parametrize("number", range(50_000))
def test_1(number):
    if number == 0:
        child = subprocess.Popen(["sleep", "600"], env={}, start_new_session=True)
        with open("child.tmp", "w") as stream:
            stream.write(str(child.pid))
    if number == 100:
        import os
        os.rename("child.tmp", "child")
"""


def wait_for_end(pid: int) -> bool:
    """Wait until a process that is not ours has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], ENDLESS)[0])
    finally:
        os.close(fd)


def test_nothing_survives_a_keeper_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(HIDING)
    command = keeper_job(tmp_path, [sys.executable])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        while not (tmp_path / "child").exists():
            assert keeper.stdout.readline(), "the keeper ended by itself"
        keeper.kill()
    assert wait_for_end(int((tmp_path / "child").read_text()))


def test_nothing_survives_a_starter_that_is_killed(run_tree: Any) -> None:
    body = (
        "import os, signal, subprocess, time\n"
        "def test_1():\n"
        "    child = subprocess.Popen(['sleep', '600'], env={}, start_new_session=True)\n"
        "    with open('child', 'w') as stream: stream.write(str(child.pid))\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
        "    time.sleep(600)\n"
    )
    ran = run_tree({"test_a.py": body})
    assert (ran.report.verdict, ran.report.shards[0].reason) == (
        "infra",
        "the process that starts the tests died",
    )
    assert int((run_tree.root / "child").read_text()) not in parents_and_sessions()


def test_a_test_process_that_cannot_be_started_is_no_failure_of_its_file(run_tree: Any) -> None:
    (run_tree.root.parent / "scratch").write_text("no directory")
    ran = run_tree({"test_a.py": "def test_1(): pass\n"})
    assert ran.report.verdict == "infra"
    assert "a test process can't be started" in ran.report.reason
    assert set(ran.outcomes.values()) == {"not_finished"}


FLOOD = (
    "import subprocess\n"
    "def test_1(capfd):\n"
    "    with capfd.disabled():\n"
    "        subprocess.Popen(['sh', '-c', 'while :; do echo y; done'], env={}, start_new_session=True)\n"
)


def test_output_of_a_process_that_got_away_does_not_hold_up_the_run(run_tree: Any) -> None:
    ran = run_tree({"test_a.py": FLOOD, "test_b.py": FLOOD})
    assert ran.outcomes == {"test_a.py::test_1": "passed", "test_b.py::test_1": "passed"}


def test_a_signal_while_a_keeper_starts_ends_it_with_a_verdict(
    run_tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        process = start(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr("gpuci.execution.local.run.subprocess.Popen", interrupted)
    ran = run_tree({"test_a.py": "import time\ndef test_1(): time.sleep(30)\n"})
    assert ran.report.verdict == "cancelled"
    assert (ran.runs[0].problem, ran.runs[0].verdict["verdict"]) == ("", "cancelled")


def test_a_hangup_that_is_ignored_ends_nothing(run_tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`nohup gpuci run` goes on when its terminal is closed."""
    monkeypatch.setenv("RUNNER", str(os.getpid()))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ran = run_tree({"test_a.py": "import os\ndef test_1(): os.kill(int(os.environ['RUNNER']), 1)\n"})
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (ran.report.verdict, ran.outcomes) == ("passed", {"test_a.py::test_1": "passed"})


def test_a_shard_that_cannot_be_started_costs_the_others_nothing(run_tree: Any) -> None:
    run_tree.out.mkdir()
    (run_tree.out / "shard-1").write_text("in the way")
    files = {f"test_{name}.py": "def test_1(): pass\n" for name in "ab"}
    ran = run_tree(files, units={"test_a.py": {"mode": "cpu", "gpus": 0}})
    assert ran.outcomes["test_a.py::test_1"] == "passed"
    assert [(shard.index, shard.verdict) for shard in ran.report.shards] == [(0, "passed"), (1, "infra")]
    assert "shard 1: infra (it can't be started: [Errno 17] File exists" in ran.report.reason
