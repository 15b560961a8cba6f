"""What it costs to follow shards: our process, the login node, over a near and a far line.

    python bench/follow.py --bed DIR [--minutes 5] [--delay 100] [--shards 12]

`tests/cluster/up DIR` makes the bed; needs root. Starts `run_gpu_shard.py` for shards of a tree whose tests
sleep five seconds each, waits until all jobs run, and measures for the time that was asked for. With
--delay each byte between us and the login node takes so many milliseconds longer, both ways. CPU counts what
a process starts: ours its ssh clients, sshd's the texts that we send and the Slurm clients in them (what
slurmctld does for them is not in it). Commands are counted in sshd's log. Exit code 1 if there was more than
one connection.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from bench.cluster_login import LoginHost, login_host, overlay, plan, table, write_tree  # noqa: E402
from tests.cluster.bed.lines import proxy  # noqa: E402
from tests.cluster.bed.place import Place  # noqa: E402
from tests.cluster.bed.processes import wait_for  # noqa: E402

FILES = "abcdefghijkl"
TICKS = os.sysconf("SC_CLK_TCK")
TEST = """
import time
import pytest


@pytest.mark.gpu
@pytest.mark.parametrize("number", range({many}))
def test_sleeps(number):
    time.sleep(5.0)
"""


def cpu_seconds(pid: int) -> float:
    """Of a process, of all below it, and of those that these have waited for (proc(5): stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(map(cpu_seconds, map(int, below)))


def peak_megabytes(pid: int) -> float:
    """The most memory that the process had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def line_to(host: LoginHost, milliseconds: float) -> Iterator[int]:
    """The port to connect to."""
    if not milliseconds:
        yield host.port
        return
    with proxy(f"127.0.0.1:{host.port}", delay=milliseconds / 1000) as line:
        yield line.port


def started(directory: Path, document: dict[str, object], tree: Path) -> subprocess.Popen[bytes]:
    """`run_gpu_shard.py` for all shards."""
    (directory / "plan.json").write_text(json.dumps(document))
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GPUCI_", "GITHUB_"))},
        "GPUCI_PLAN": str(directory / "plan.json"),
        "GPUCI_SHARD": "all",
        "GPUCI_TREE": str(tree),
        "GPUCI_OUT": str(directory / "out"),
        "GITHUB_REPOSITORY": "bench/follow",
        "GITHUB_RUN_ID": secrets.token_hex(6),
    }
    with (directory / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(REPOSITORY / "scripts/run_gpu_shard.py")],
            env=environ,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def measure(
    host: LoginHost, directory: Path, minutes: float, delay: float, shards: int
) -> tuple[dict[str, str], int]:
    """What to print, and the number of connections."""
    with line_to(host, delay) as port:
        configuration = overlay(host, port, directory, plain=True)
        tests = TEST.format(many=int(minutes * 60 / 5) + 60)
        tree = write_tree(directory / "tree", {f"test_{letter}.py": tests for letter in FILES[:shards]})
        process = started(directory, plan(tree, configuration, shards), tree)
        try:
            values = window(host, process, directory, minutes * 60, shards)
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait()
    values["exit code after SIGTERM"] = str(code)
    return values, host.counts()["let in"]


def window(
    host: LoginHost, process: subprocess.Popen[bytes], directory: Path, seconds: float, shards: int
) -> dict[str, str]:
    """Measure while all shards run."""

    def all_run() -> bool:
        logs = [directory / f"out/shard-{number}/log" for number in range(1, shards + 1)]
        return all(log.exists() and b'"kind":"end"' in log.read_bytes() for log in logs)

    assert wait_for(lambda: all_run() or process.poll() is not None, 300), (directory / "log").read_text()
    assert process.poll() is None, (directory / "log").read_text()
    before = (cpu_seconds(process.pid), cpu_seconds(host.pid), host.counts()["sessions"], time.monotonic())
    time.sleep(seconds)
    after = (cpu_seconds(process.pid), cpu_seconds(host.pid), host.counts()["sessions"], time.monotonic())
    ours, theirs, sessions, took = (end - begin for begin, end in zip(before, after, strict=True))
    return {
        "followed, seconds": f"{took:.0f}",
        "our CPU, seconds (with ssh clients)": f"{ours:.1f}",
        "our CPU, share of a core": f"{100 * ours / took:.1f} %",
        "our peak memory, MB": f"{peak_megabytes(process.pid):.0f}",
        "login node: commands": f"{sessions:.0f}",
        "login node: commands a second": f"{sessions / took:.2f}",
        "login node: CPU, seconds": f"{theirs:.1f}",
        "login node: CPU, share of a core": f"{100 * theirs / took:.1f} %",
        "login node: CPU a command, ms": f"{1000 * theirs / max(1, sessions):.0f}",
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bed", type=Path, required=True, metavar="DIR")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--delay", type=float, default=0.0, metavar="MS")
    parser.add_argument("--shards", type=int, choices=range(1, len(FILES) + 1), default=12, metavar="N")
    args = parser.parse_args()
    place = Place(args.bed.resolve())
    with tempfile.TemporaryDirectory() as directory, login_host(place, Path(directory)) as host:
        values, connections = measure(host, Path(directory), args.minutes, args.delay, args.shards)
    print(table([[f"shards: {args.shards}", f"{args.delay:g} ms each way"], *map(list, values.items())]))
    print(f"connections: {connections}")
    return 0 if connections == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
