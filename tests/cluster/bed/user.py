"""The user `ci`, whose home lies in the bed, and its settings for rootless podman."""

from __future__ import annotations

import os
import pwd
import resource
import shutil
import signal
from pathlib import Path

from tests.cluster.bed.place import USER, Place
from tests.cluster.bed.processes import run, say

from gpuci.errors import GpuciError

# In the comment field of /etc/passwd: whose user this is.
MARK = "gpuci test bed"


def make_user(place: Place) -> None:
    """Make `ci`, or move its home here. Raises GpuciError: another `ci` lives on this machine."""
    place.home.mkdir(exist_ok=True)
    entry = _entry()
    if entry is None:
        say(f"makes the user {USER}")
        run(
            ["useradd", "-M", "-d", str(place.home), "-s", "/bin/bash", "-c", MARK, USER],
            f"the user {USER} can't be made",
        )
    elif entry.pw_gecos != MARK:
        raise GpuciError(
            f"this machine has a user {USER} that is not the test bed's",
            why="its home and its processes would be taken for the bed's",
            then=f"use another machine, or `usermod -c '{MARK}' {USER}` if nobody needs it",
        )
    elif entry.pw_dir != str(place.home):
        run(["usermod", "-d", str(place.home), USER], f"the home of {USER} can't be changed")
    # `!`, which useradd writes, means "locked" to an sshd without PAM.
    run(["usermod", "-p", "*", USER], f"the user {USER} can't be unlocked")
    for file in ("subuid", "subgid"):
        _subordinate_ids(Path("/etc") / file)
    _own(place.home, 0o755)
    _podman_settings(place)


def _entry() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        return None


def _subordinate_ids(file: Path) -> None:
    """A range of 65536 ids for rootless containers, behind those that are taken (subuid(5))."""
    lines = file.read_text().splitlines() if file.exists() else []
    ranges = [line.split(":") for line in lines if line.count(":") == 2]
    if not any(name == USER for name, _, _ in ranges):
        start = max([100000, *(int(first) + int(count) for _, first, count in ranges)])
        file.write_text("".join(f"{line}\n" for line in [*lines, f"{USER}:{start}:65536"]))


def _own(path: Path, mode: int) -> None:
    shutil.chown(path, USER, USER)
    path.chmod(mode)


def _podman_settings(place: Place) -> None:
    """Settings with which podman starts where limits can't be raised and cgroups are not delegated."""
    directory = place.home / ".config/containers"
    for path in (directory.parent, directory):
        path.mkdir(exist_ok=True)
        _own(path, 0o755)
    limits = [f'"{name}={most}:{most}"' for name, most in _limits().items()]
    (directory / "containers.conf").write_text(
        f"[containers]\ndefault_ulimits = [{', '.join(limits)}]\n"
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
    )
    (directory / "storage.conf").write_text('[storage]\ndriver = "overlay"\n')
    (directory / "registries.conf").write_text(
        f'[[registry]]\nlocation = "127.0.0.1:{place.registry_port}"\ninsecure = true\n'
    )


def _limits() -> dict[str, int]:
    """What podman may ask for: its own defaults are higher than what this machine may allow."""
    asked = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    allowed = {name: resource.getrlimit(number)[1] for name, number in asked.items()}
    return {
        name: 20000 if most == resource.RLIM_INFINITY else min(most, 20000) for name, most in allowed.items()
    }


def end_processes() -> None:
    """SIGKILL for all that `ci` runs: after the daemons are gone nothing of it is wanted."""
    entry = _entry()
    if entry is None or entry.pw_gecos != MARK:
        return
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == entry.pw_uid:
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass  # it has ended
