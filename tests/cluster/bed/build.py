"""Bring a bed up and take it down: the steps, in order."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.bed import accounts, image, overlays, packages, registry, slurm_conf, ssh, user
from tests.cluster.bed.daemons import ON_DEMAND, daemons
from tests.cluster.bed.place import DIRECTORY, GPU_NODES, LOGIN_HOSTS, NODES, USER, Place
from tests.cluster.bed.processes import Daemon, run, say, wait_for

from gpuci.errors import ConfigError, GpuciError

# Names the bed that this machine has: ports, the user and its processes allow one.
CURRENT = Path("/run/gpuci-test-bed")
NULL_DEVICE = os.makedev(1, 3)
# Which daemons read slurm.conf when they start.
READERS = ("slurmctld", *NODES)
NVIDIA_SMI = Path(__file__).resolve().parents[1] / "nvidia_smi.py"
FOLDERS: tuple[str, ...] = ("dev", "etc", "faults", "keys", "log/slurm", "mysql", "nodes", "registry")
FOLDERS += ("run/munge", "run/mysql", "run/slurm", "scratch", "shared", "spool", "sshd", "state")
OWNERS = {"run/munge": "munge", "run/mysql": "mysql", "mysql": "mysql", "shared": USER}
OWNERS |= dict.fromkeys(("log/slurm", "run/slurm", "state"), "slurm")


def up(top: Path, changes: Mapping[str, str]) -> None:
    """Make all of it run; what runs already is left alone.

    `changes` are settings of slurm.conf. Raises GpuciError: unfit machine, another bed, a daemon that dies.
    """
    place = place_at(top)
    if reason := packages.unfit():
        raise GpuciError(reason, then="run it on a Debian 12 machine that may be changed, as root")
    with _locked():
        _refuse_another(place)
        packages.install_missing()
        _make_top(place.top)
        CURRENT.write_text(f"{place.top}\n")
        user.make_user(place)
        _folders(place)
        _reachable(place)
        ssh.make_keys(place)
        changed = _configure(place, changes)
        _start(place, changed)
        _give_out(place)


def down(top: Path) -> None:
    """Cancel the jobs, stop the daemons, end what `ci` runs. The files stay."""
    place = place_at(top)
    known = daemons(place)
    with _locked():
        if (other := _current()) not in (None, place.top):
            say(f"none runs in {place.top} (one does in {other})")
            return
        for daemon in known.values():
            daemon.signal(signal.SIGCONT)  # a test may have left it stopped
        if known["slurmctld"].pid is not None:
            _cancel_all(place)
        user.end_processes()
        for name in NODES:
            known[name].signal(signal.SIGTERM)
        for daemon in reversed(known.values()):
            daemon.stop()
        _end_steps(place)
        user.end_processes()
        CURRENT.unlink(missing_ok=True)


def place_at(top: Path) -> Place:
    """The bed below `top`. Raises ConfigError: a path that not every daemon can live with."""
    if not DIRECTORY.fullmatch(str(top.absolute())):
        raise ConfigError(
            f"the test bed can't live in {top.absolute()}",
            why="sockets and Slurm's settings allow 60 characters: letters, digits, `_`, `.`, `-` and `/`",
            then="name a directory such as /tmp/bed",
        )
    return Place(top.absolute())


@contextmanager
def _locked() -> Iterator[None]:
    """One `up` or `down` at a time."""
    with open(f"{CURRENT}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _current() -> Path | None:
    """Where a bed runs on this machine."""
    top = Path(CURRENT.read_text().strip()) if CURRENT.exists() else None
    return top if top and any(daemon.pid for daemon in daemons(Place(top)).values()) else None


def _refuse_another(place: Place) -> None:
    if (other := _current()) not in (None, place.top):
        raise GpuciError(
            f"a test bed runs in {other}",
            why="a machine can have one: they share ports and the user",
            then=f"use that one, or take it down: tests/cluster/down {other}",
        )


def _make_top(top: Path) -> None:
    """Our own directory: in one of another user's, root would follow that user's links."""
    top.mkdir(parents=True, exist_ok=True)
    if top.is_symlink() or top.lstat().st_uid != 0:
        raise GpuciError(f"{top} does not belong to root", then="name another directory")


def _folders(place: Place) -> None:
    for name in FOLDERS:
        (place / name).mkdir(parents=True, exist_ok=True)
    for name, owner in OWNERS.items():
        run(["chown", owner, str(place / name)], f"{place / name} can't be given to {owner}")
    (place / "scratch").chmod(0o1777)
    for node in NODES:
        (place / f"spool/{node}").mkdir(exist_ok=True)
        (place / f"faults/{node}").mkdir(exist_ok=True)
    for device in (*place.devices(), place / "dev/nvidiactl"):
        if not device.exists():
            os.mknod(device, stat.S_IFCHR | 0o666, NULL_DEVICE)
            device.chmod(0o666)
    _node_programs(place)


def _node_programs(place: Place) -> None:
    """nvidia-smi on the PATH of a GPU node's jobs only, by Slurm's TaskProlog."""
    program = place / "nodes/nvidia-smi"
    program.write_text(NVIDIA_SMI.read_text().replace("@TOP@", str(place.top)))
    prolog = place / "nodes/prolog"
    prolog.write_text(f'#!/bin/sh\necho "export PATH={place / "nodes"}/$SLURMD_NODENAME/bin:$PATH"\n')
    for path in (program, prolog):
        path.chmod(0o755)
    for node in GPU_NODES:
        (place / f"nodes/{node}/bin").mkdir(parents=True, exist_ok=True)
        link = place / f"nodes/{node}/bin/nvidia-smi"
        if not link.is_symlink():
            link.symlink_to(program)


def _reachable(place: Place) -> None:
    done = subprocess.run(
        ["runuser", "-u", USER, "--", "test", "-r", str(place / "etc")], cwd="/", check=False
    )
    if done.returncode:
        raise GpuciError(
            f"the user {USER} can't reach {place.top}",
            why="a directory above it is closed to other users",
            then="open it (chmod 755), or use a directory such as /tmp/bed",
        )


def _configure(place: Place, changes: Mapping[str, str]) -> bool:
    """Write the configuration; whether what Slurm has read is another one."""
    key = place / "etc/munge.key"
    if not key.exists():
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        run(["chown", "munge", str(key)], "munge's key can't be given to it")
    for number in range(1, len(LOGIN_HOSTS) + 1):
        (place / f"sshd/sshd_config{number}").write_text(ssh.sshd_config(place, number))
    database = place / "etc/slurmdbd.conf"
    database.write_text(slurm_conf.slurmdbd_conf(place))
    database.chmod(0o600)
    run(["chown", "slurm", str(database)], "slurmdbd.conf can't be given to slurm")
    (place / "etc/cgroup.conf").write_text("CgroupAutomount=no\nCgroupPlugin=cgroup/v1\n")
    (place / "etc/registry.yml").write_text(registry.config(place))
    (place / "etc/registry.htpasswd").write_text(registry.HTPASSWD)
    (place / "etc/gres.conf").write_text(slurm_conf.gres_conf(place))
    text = slurm_conf.slurm_conf(place, changes)
    old = place.slurm_conf.read_text() if place.slurm_conf.exists() else ""
    place.slurm_conf.write_text(text)
    return old not in ("", text)


def _start(place: Place, changed: bool) -> None:
    known = daemons(place)
    if not (place / "mysql/mysql").is_dir():
        _install_database(place)
    for name in READERS if changed else ():
        known[name].stop()
    Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own, wired into Debian's
    for name in ("munged", "mariadbd", "sshd", "sshd2"):
        known[name].launch()
    image.make_python(place)
    for name in ("munged", "mariadbd"):
        known[name].await_ready()
    accounts.prepare_database(place)
    known["slurmdbd"].start()
    accounts.register_cluster(place)
    known["slurmctld"].start()
    accounts.make_accounts(place)
    for name, daemon in known.items():
        if name not in ON_DEMAND:
            daemon.launch()
    await_nodes(place, known)


def _install_database(place: Place) -> None:
    command = ["mariadb-install-db", "--user=mysql", f"--datadir={place / 'mysql'}", "--skip-test-db"]
    run([*command, "--auth-root-authentication-method=socket"], "MariaDB's files can't be made")


def await_nodes(place: Place, known: Mapping[str, Daemon]) -> None:
    """Wait until all nodes answer. Raises GpuciError with the log of one that does not."""
    environ = {"SLURM_CONF": str(place.slurm_conf)}
    good = {"idle", "mixed", "allocated", "completing"}
    command = ["sinfo", "-h", "-N", "-p", "gpu,cpu", "-o", "%N %T"]

    def silent() -> list[str]:
        rows = [line.split() for line in run(command, "sinfo fails", environ=environ).splitlines()]
        return [node for node, state in rows if state not in good]

    if not wait_for(lambda: not silent(), 40):
        say(f"not ready: {' '.join(silent())}")
        for node in silent():
            known[node].await_ready(0)
        raise GpuciError("nodes are drained or down", then="scontrol update NodeName=… State=RESUME")


def _give_out(place: Place) -> None:
    found = image.make_image(place)
    (place / "gpuci.yml").write_text(overlays.overlay(place, overlays.podman(place, found)))
    (place / "gpuci-plain.yml").write_text(overlays.overlay(place, overlays.plain(place)))
    (place / "env").write_text(f"export SLURM_CONF={place.slurm_conf}\n")


def _cancel_all(place: Place) -> None:
    environ = {**os.environ, "SLURM_CONF": str(place.slurm_conf)}
    for command in (["scancel", "--state=PENDING", "-u", USER], ["scancel", "-u", USER]):
        try:
            subprocess.run(command, env=environ, stdin=-3, stdout=-3, stderr=-3, timeout=15, check=False)
        except subprocess.TimeoutExpired:
            say("slurmctld does not answer: its jobs end with the daemons")


def _end_steps(place: Place) -> None:
    """slurmstepds outlive their slurmd, which would take them up again. The bed's name its configuration."""
    mark = f"SLURM_CONF={place.slurm_conf}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            stepd = (process / "comm").read_text() == "slurmstepd\n"
            if stepd and mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass  # it has ended
