"""What the benchmarks on a bed share: a login host of their own, whose log is theirs alone; a small tree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "scripts")]

from tests.cluster.bed import ssh  # noqa: E402
from tests.cluster.bed.place import LOGIN_HOSTS, Place  # noqa: E402
from tests.cluster.bed.processes import system_environ, wait_for  # noqa: E402
from tests.cluster.sshd import free_port  # noqa: E402

GPUCI = str(REPOSITORY / "gpuci")


@dataclass(frozen=True)
class LoginHost:
    """A running sshd of the bed's kind, with OpenSSH's limits."""

    place: Place
    port: int
    log: Path
    pid: int

    @property
    def known_hosts(self) -> str:
        """Its line."""
        key = " ".join((self.place / "sshd/host1.pub").read_text().split()[:2])
        return f"[{LOGIN_HOSTS[0]}]:{self.port} {key}\n"

    def counts(self) -> dict[str, int]:
        """So far, by its log: connections that came, that were let in, that were refused; sessions."""
        text = self.log.read_text(errors="replace")
        patterns = {
            "came": r"^Connection from ",
            "let in": r"^Accepted publickey ",
            "refused": r"drop connection #",
            "sessions": r"^Starting session: command ",
        }
        return {name: len(re.findall(pattern, text, re.MULTILINE)) for name, pattern in patterns.items()}


@contextmanager
def login_host(place: Place, directory: Path) -> Iterator[LoginHost]:
    """Start one, at a free port."""
    port, log = free_port(), directory / "sshd.log"
    config = directory / "sshd_config"
    text = ssh.sshd_config(place, 1)
    listen = f"ListenAddress {LOGIN_HOSTS[0]}:{port}"
    config.write_text(re.sub(r"(?m)^ListenAddress .*$", listen, text))
    command = ["/usr/sbin/sshd", "-D", "-f", str(config), "-E", str(log)]
    with subprocess.Popen(command, env=system_environ(), stdin=subprocess.DEVNULL) as process:
        try:
            assert wait_for(lambda: log.exists() and b"Server listening" in log.read_bytes(), 10)
            yield LoginHost(place, port, log, process.pid)
        finally:
            process.kill()


def overlay(host: LoginHost, port: int, directory: Path, *, plain: bool) -> Path:
    """A configuration for that login host, reached by `port` (its own, or that of a line to it)."""
    document = json.loads((host.place / ("gpuci-plain.yml" if plain else "gpuci.yml")).read_text())
    known_hosts = directory / "known_hosts"
    known_hosts.write_text(host.known_hosts.replace(f":{host.port} ", f":{port} "))
    document["slurm"] |= {"login": [LOGIN_HOSTS[0]], "port": port, "known-hosts": str(known_hosts)}
    path = directory / "gpuci.json"
    path.write_text(json.dumps(document))
    return path


def write_tree(directory: Path, files: Mapping[str, str]) -> Path:
    """A git repository with these tests, for nodes of two GPUs."""
    for name, text in {".github/gpuci.yml": "packages: [.]\nprofiles: {node: {gpus: 2}}\n", **files}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q", str(directory)], check=True)
    return directory


def plan(tree: Path, configuration: Path, shards: int) -> dict[str, Any]:
    """plan.json."""
    files = (tree / ".github/gpuci.yml", configuration)
    words = [word for file in files for word in ("--config", str(file))]
    made = subprocess.run(
        [GPUCI, "plan", str(tree), *words, "--shards", str(shards), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    document: dict[str, Any] = json.loads(made.stdout)
    return document


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns, the first to the left and the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(widths[i]) for i, cell in enumerate(row) if i)])
        for row in rows
    ]
    return "\n".join(lines)
