"""The Debian packages of the bed, and what must be true of a machine before there can be one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.bed.processes import say, tail

from gpuci.errors import GpuciError

LIST = Path(__file__).resolve().parents[1] / "packages.txt"
POLICY = Path("/usr/sbin/policy-rc.d")


def unfit() -> str | None:
    """Why there can be no bed on this machine, None where there can."""
    if os.geteuid() != 0:
        return "the test bed needs root: users, devices and daemons of its own"
    if shutil.which("apt-get") is None or shutil.which("dpkg-query") is None:
        return "the test bed needs Debian: it is made of its packages (no apt-get here)"
    return None


def install_missing() -> None:
    """Install what packages.txt names and the machine lacks. Raises GpuciError: apt can't."""
    missing = [name for name in wanted(LIST.read_text()) if not _installed(name)]
    if not missing:
        return
    say(f"installing by apt-get: {' '.join(missing)}")
    with _no_services():
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *missing)


def wanted(text: str) -> list[str]:
    """The package names in the text of packages.txt."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _installed(package: str) -> bool:
    command = ["dpkg-query", "-W", "-f=${db:Status-Status}", package]
    return subprocess.run(command, capture_output=True, check=False).stdout == b"installed"


@contextmanager
def _no_services() -> Iterator[None]:
    """Packages would start daemons with the machine's own settings (Debian policy 9.3.3: policy-rc.d)."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink()


def _apt(*arguments: str) -> None:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments]
    done = subprocess.run(command, env=environ, stdin=-3, stdout=-1, stderr=-2, text=True, check=False)
    if done.returncode:
        raise GpuciError(
            f"apt-get {arguments[0]} failed",
            why=f"no network, or another Debian than 12\n{tail(done.stdout)}",
            then="install the packages of tests/cluster/packages.txt by hand, and try again",
        )
