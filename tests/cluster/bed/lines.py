"""A line that is slow, silent or cut, and a folder that lags: delayproxy.py and slowfs.py for a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.bed.processes import wait_for

CLUSTER = Path(__file__).resolve().parents[1]


@dataclass
class Proxy:
    """A running delayproxy.py, on 127.0.0.1 or the host that was asked for."""

    process: subprocess.Popen[str]
    port: int

    def tell(self, command: str) -> None:
        """`delay SECONDS`, `silent`, `pass` or `drop`; returns when it is so."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"


@contextmanager
def proxy(target: str, *, listen: str = "127.0.0.1:0", delay: float = 0.0) -> Iterator[Proxy]:
    """A line to `target` (HOST:PORT) on which each byte takes `delay` seconds longer, both ways."""
    command = [sys.executable, str(CLUSTER / "delayproxy.py"), listen, target, str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield Proxy(process, int(process.stdout.readline().split()[1]))
        finally:
            process.kill()


@contextmanager
def slow_folder(
    directory: Path, *, delay: float = 0.0, stale: float = 0.0, writeback: float = 0.0
) -> Iterator[None]:
    """`directory` as a busy NFS shows it; seconds, as slowfs.py describes them. Needs root."""
    command = ["/usr/bin/python3", str(CLUSTER / "slowfs.py"), str(directory)]
    command += [f"--delay={delay}", f"--stale={stale}", f"--writeback={writeback}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        assert wait_for(lambda: os.path.ismount(directory) or process.poll() is not None, 10)
        assert process.poll() is None, "slowfs.py ended"
        try:
            yield
        finally:
            subprocess.run(["umount", "--lazy", str(directory)], check=True)
