"""The daemons of a bed, in the order in which they start."""

from __future__ import annotations

from collections.abc import Iterable

from tests.cluster.bed.place import LOGIN_HOSTS, NODES, Place
from tests.cluster.bed.processes import Daemon

# Which only some tests start.
ON_DEMAND = ("registry",)


def daemons(place: Place) -> dict[str, Daemon]:
    """Name -> daemon: munged, mariadbd, slurmdbd, slurmctld, each node's slurmd by the node's name,
    sshd (127.0.0.1), sshd2 (127.0.0.2), registry."""
    known = (*_services(place), *_slurm(place), *_nodes(place), *_logins(place), _registry(place))
    return {daemon.name: daemon for daemon in known}


def _services(place: Place) -> Iterable[Daemon]:
    socket, database = str(place.munge_socket), str(place.database_socket)
    munged = [
        "/usr/sbin/munged",
        "--foreground",
        f"--socket={socket}",
        f"--key-file={place / 'etc/munge.key'}",
    ]
    munged += [f"--{name}-file={place / 'run/munge' / name}" for name in ("pid", "seed")]
    mariadbd = ["/usr/sbin/mariadbd", "--no-defaults", "--user=mysql", f"--datadir={place / 'mysql'}"]
    mariadbd += [f"--socket={database}", f"--port={place.database_port}", "--bind-address=127.0.0.1"]
    mariadbd += [f"--pid-file={place / 'run/mysql/pid'}", "--skip-name-resolve", "--skip-log-bin"]
    mariadbd += ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
    # Slurm refuses a database that gives up earlier (slurmdbd's start-up check).
    mariadbd += ["--innodb-lock-wait-timeout=900"]
    yield _daemon(place, munged, user="munge", ready=("munge", "-n", "-S", socket))
    yield _daemon(place, mariadbd, ready=("mariadb-admin", "-S", database, "ping"))


def _slurm(place: Place) -> Iterable[Daemon]:
    slurmdbd, slurmctld = ("/usr/sbin/slurmdbd", "-D"), ("/usr/sbin/slurmctld", "-D", "-i")
    yield _daemon(place, slurmdbd, user="slurm", ready=("sacctmgr", "-n", "list", "cluster"))
    yield _daemon(place, slurmctld, user="slurm", ready=("scontrol", "ping"))


def _nodes(place: Place) -> Iterable[Daemon]:
    for node in NODES:
        yield _daemon(place, ("/usr/sbin/slurmd", "-D", "-N", node), name=node)


def _logins(place: Place) -> Iterable[Daemon]:
    for number, host in enumerate(LOGIN_HOSTS, 1):
        name = "sshd" if number == 1 else f"sshd{number}"
        log, config = str(place / f"log/{name}.log"), str(place / f"sshd/sshd_config{number}")
        yield _daemon(
            place,
            ("/usr/sbin/sshd", "-D", "-f", config, "-E", log),
            name=name,
            ready=("bash", "-c", f"exec 3<>/dev/tcp/{host}/{place.ssh_port} && read -r -t 5 <&3"),
        )


def _registry(place: Place) -> Daemon:
    command = ("/usr/bin/docker-registry", "serve", str(place / "etc/registry.yml"))
    ready = ("bash", "-c", f": <>/dev/tcp/127.0.0.1/{place.registry_port}")
    return _daemon(place, command, name="registry", ready=ready)


def _daemon(
    place: Place, command: Iterable[str], *, name: str = "", user: str = "root", ready: tuple[str, ...] = ()
) -> Daemon:
    words = tuple(command)
    name = name or words[0].rpartition("/")[2]
    return Daemon(
        name,
        words,
        pid_file=place / f"run/{name}.pid",
        output=place / f"log/{name}.out",
        user=user,
        ready=ready,
        environ={"SLURM_CONF": str(place.slurm_conf)},
    )
