"""Many runners that start at once, against one sshd with OpenSSH's limits: do all get through, and when?

    python bench/connects.py --bed DIR [-n 24] [--rounds 3]

`tests/cluster/up DIR` makes the bed; needs root. Each runner is a process of its own; all are let go at the
same moment, connect, and run one command. sshd (MaxStartups 10:30:100) turns connections away by chance from
the eleventh that is not let in yet; they come again after a pause that chance makes longer or shorter. Exit
code 1 if one does not get through.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from bench.cluster_login import LoginHost, login_host, overlay, table  # noqa: E402
from tests.cluster.bed.place import Place  # noqa: E402

from gpuci.execution.transport.connection import Connection  # noqa: E402
from gpuci.execution.transport.login import login_from  # noqa: E402


def runner(configuration: Path) -> int:
    """One of many: wait to be let go, connect; prints seconds and attempts."""
    login = login_from(json.loads(configuration.read_text())["slurm"], {})
    with tempfile.TemporaryDirectory() as directory:
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.monotonic()
        with Connection(login, Path(directory), lambda text: None) as connection:
            answer = connection.run("echo here")
            print(json.dumps([time.monotonic() - began, connection.counts.attempts, answer.out == b"here\n"]))
    return 0


def a_round(host: LoginHost, many: int, configuration: Path) -> list[tuple[float, int]]:
    """Seconds and attempts of those that got through."""
    command = [sys.executable, __file__, "--runner", str(configuration)]
    environ = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    processes = [
        subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(many)
    ]
    for process in processes:
        assert _stream(process.stdout).readline() == b"ready\n"
    for process in processes:
        _stream(process.stdin).write(b"go\n")
        _stream(process.stdin).flush()
    answers = [process.communicate()[0] for process in processes]
    rows = [json.loads(answer) for answer in answers if answer]
    return [(seconds, attempts) for seconds, attempts, here in rows if here]


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bed", type=Path, metavar="DIR")
    parser.add_argument("-n", dest="many", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runner", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.runner:
        return runner(args.runner)
    if not args.bed:
        parser.error("--bed is missing")
    rows = [["round", "through", "least s", "median s", "most s", "attempts", "turned away"]]
    with (
        tempfile.TemporaryDirectory() as directory,
        login_host(Place(args.bed.resolve()), Path(directory)) as host,
    ):
        configuration = overlay(host, host.port, Path(directory), plain=True)
        through = 0
        for number in range(1, args.rounds + 1):
            before = host.counts()["refused"]
            ran = a_round(host, args.many, configuration)
            refused = host.counts()["refused"] - before
            through += len(ran)
            seconds = sorted(row[0] for row in ran)
            spread = [f"{value:.1f}" for value in (seconds[0], statistics.median(seconds), seconds[-1])]
            attempts = str(sum(row[1] for row in ran))
            rows.append([str(number), f"{len(ran)}/{args.many}", *spread, attempts, str(refused)])
    print(table(rows))
    return 0 if through == args.many * args.rounds else 1


if __name__ == "__main__":
    sys.exit(main())
