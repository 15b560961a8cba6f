"""Daemons by pid file: start, stop, kill, pause. They outlive the process that starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuci.errors import GpuciError

STEP_SECONDS = 0.05


@dataclass(frozen=True)
class Daemon:
    """A program that stays in the foreground; `program` is its name in /proc/PID/comm.

    `ready` is a command that succeeds once it serves. Its output goes to `output`.
    """

    name: str
    command: tuple[str, ...]
    pid_file: Path
    output: Path
    user: str = "root"
    ready: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def pid(self) -> int | None:
        """The living process, None if there is none: a pid can be another program's by now."""
        try:
            pid = int(self.pid_file.read_text())
            comm = Path(f"/proc/{pid}/comm").read_text().strip()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError):
            return None
        return pid if comm == Path(self.command[0]).name[:15] and state != "Z" else None

    def launch(self) -> None:
        """Start it unless it lives."""
        if self.pid is not None:
            return
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                self.command,
                cwd="/",
                env={**system_environ(), **self.environ},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=[],
            )
        self.pid_file.write_text(f"{process.pid}\n")
        process.returncode = 0  # it is meant to outlive us: no warning that it still runs

    def await_ready(self, seconds: float = 30) -> None:
        """Wait until it serves. Raises GpuciError with the end of its log."""
        served = wait_for(lambda: self.pid is None or self._serves(), seconds)
        if not served or self.pid is None:
            raise GpuciError(
                f"{self.name} {'died' if self.pid is None else 'does not answer'}",
                why=f"the end of {self.output}:\n{tail(_read(self.output))}",
                then="stop what holds its port, or `tests/cluster/down` the bed and bring it up again",
            )

    def start(self, seconds: float = 30) -> None:
        """Start it and wait until it serves."""
        self.launch()
        self.await_ready(seconds)

    def signal(self, number: int) -> None:
        """Send a signal to it alone, if it lives."""
        if (pid := self.pid) is not None:
            os.kill(pid, number)

    def stop(self, seconds: float = 20) -> None:
        """End it by SIGTERM, by SIGKILL if it takes longer than `seconds`."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        if not self.await_end(seconds):
            say(f"{self.name} ignores SIGTERM: killed")
            self.kill()
        self.pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        self.await_end(10)

    def await_end(self, seconds: float) -> bool:
        """Whether it is gone within `seconds`."""
        return wait_for(lambda: self.pid is None, seconds)

    def _serves(self) -> bool:
        if not self.ready:
            return True
        environ = {**system_environ(), **self.environ}
        try:
            done = subprocess.run(
                self.ready, env=environ, cwd="/", capture_output=True, stdin=-3, timeout=10, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def system_environ() -> dict[str, str]:
    """What a daemon and a user's session start with; nothing of whoever starts the bed."""
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def run(
    command: Sequence[str], what: str, *, environ: Mapping[str, str] | None = None, stdin: str = ""
) -> str:
    """Run a command of the set-up, return its output. Raises GpuciError with the end of it."""
    done = subprocess.run(
        command,
        env={**system_environ(), **(environ or {})},
        cwd="/",
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = tail(done.stdout + done.stderr)
        raise GpuciError(what, why=f"`{' '.join(command)}` ended with {done.returncode}:\n{said}")
    return done.stdout


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Look until `condition()` holds; False if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(STEP_SECONDS)
    return True


def tail(text: str, lines: int = 12) -> str:
    """The last lines of a text, set off for an error page."""
    return "\n".join(f"    | {line}" for line in text.strip().splitlines()[-lines:])


def say(text: str) -> None:
    """Tell the person who waits."""
    print(f"test bed: {text}", file=sys.stderr, flush=True)


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
