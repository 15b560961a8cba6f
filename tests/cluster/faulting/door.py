"""A login host of a run's own, on the bed: what is done to its sshd is done to no other run."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.bed import ssh
from tests.cluster.bed.place import LOGIN_HOSTS, Place
from tests.cluster.bed.processes import system_environ, wait_for

MARK = "GPUCI_FAULT"


class Door:
    """An sshd at `host`:`port`. Commands that come through it find programs in `bin` first."""

    def __init__(self, place: Place, directory: Path, key: str, *, number: int = 1, port: int = 0) -> None:
        self.host = LOGIN_HOSTS[number - 1]
        self.port = port or _free_port(self.host)
        self.bin = directory / "bin"
        self.bin.mkdir(exist_ok=True)
        self._config = directory / f"sshd_config{number}"
        text = ssh.sshd_config(place, number)
        text = re.sub(r"(?m)^ListenAddress .*$", f"ListenAddress {self.host}:{self.port}", text)
        text = re.sub(r"(?m)^(SetEnv .*)PATH=(\S+)", rf"\1{MARK}={key} PATH={self.bin}:\2", text)
        # Many runs come through one door at once in no row, so nothing is to be turned away by chance.
        self._config.write_text(f"{text}MaxStartups 100\n")
        self._log = directory / f"sshd{number}.log"
        self._process: subprocess.Popen[bytes] | None = None
        public = " ".join((place / f"sshd/host{number}.pub").read_text().split()[:2])
        self.known_hosts = f"[{self.host}]:{self.port} {public}\n"

    def start(self) -> None:
        """Start it, wait until it greets."""
        command = ["/usr/sbin/sshd", "-D", "-f", str(self._config), "-E", str(self._log)]
        self._process = subprocess.Popen(
            command, env=system_environ(), stdin=-3, stdout=-3, stderr=-3, start_new_session=True
        )
        if not wait_for(self._greets, 10):
            raise RuntimeError(f"sshd does not start: {self._log.read_text()[-500:]}")

    def _greets(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 2) as link:
            return link.recv(4) == b"SSH-"
        return False

    def stop(self, *, sessions: bool = True) -> None:
        """Kill the listener, and its sessions."""
        if self._process is None:
            return
        victims = self.sessions() if sessions else []
        for pid in [self._process.pid, *victims]:
            _kill(pid)
        self._process.wait()
        self._process = None

    def kill_sessions(self) -> int:
        """Kill the server's processes of each connection; how many."""
        victims = self.sessions()
        for pid in victims:
            _kill(pid)
        return len(victims)

    def sessions(self) -> list[int]:
        """The sshd processes below the listener."""
        if self._process is None:
            return []
        return [pid for pid in descendants(self._process.pid) if comm(pid) == "sshd"]

    def wrap(self, program: str, text: str) -> None:
        """Put a sh text before a program of the login node; `"$@"` are its arguments, $real the program."""
        path = self.bin / program
        half = path.with_suffix(".half")
        half.write_text(f"#!/bin/sh\nreal=/usr/bin/{program}\n{text}\n")
        half.chmod(0o755)
        half.rename(path)


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as server:
        return int(server.getsockname()[1])


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def comm(pid: int) -> str:
    """The name of a process, empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def pids() -> list[int]:
    """All processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def words(pid: int) -> str:
    """The command line of a process, empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def environ(pid: int) -> str:
    """The environment of a process, empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return ""


def descendants(pid: int) -> Iterator[int]:
    """Processes below `pid`."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from descendants(child)
