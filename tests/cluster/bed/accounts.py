"""Slurm's accounts: the user `ci`, and QOS whose limits a test can meet."""

from __future__ import annotations

from tests.cluster.bed.place import USER, Place
from tests.cluster.bed.processes import run, wait_for
from tests.cluster.bed.slurm_conf import CLUSTER

ACCOUNT = "ciacct"
QOS = {
    "ci": ("MaxSubmitJobsPerUser=2",),
    "onegpu": ("MaxTRESPerJob=gres/gpu=1", "flags=DenyOnLimit"),
    "maxgpu": ("MaxTRESPerUser=gres/gpu=8",),
}


def prepare_database(place: Place) -> None:
    """The database that slurmdbd fills."""
    sql = (
        "create database if not exists slurm_acct_db;"
        "create user if not exists slurm@'127.0.0.1' identified by 'slurm';"
        "grant all on slurm_acct_db.* to slurm@'127.0.0.1'"
    )
    run(["mariadb", "-S", str(place.database_socket), "-e", sql], "the accounting database can't be made")


def register_cluster(place: Place) -> None:
    """Needs slurmdbd; slurmctld won't start without."""
    if CLUSTER not in _sacctmgr(place, "list", "cluster", "format=cluster").split():
        _sacctmgr(place, "add", "cluster", CLUSTER)


def make_accounts(place: Place) -> None:
    """Account, user and QOS. The database knows GPUs once slurmctld has registered."""
    known = wait_for(lambda: "gpu" in _sacctmgr(place, "list", "tres", "format=name").split(), 20)
    if known and "maxgpu" in _sacctmgr(place, "list", "user", USER, "withassoc", "format=qos%60"):
        return
    _sacctmgr(place, "add", "account", ACCOUNT, "Description=ci", "Organization=ci", f"cluster={CLUSTER}")
    _sacctmgr(place, "add", "user", USER, f"account={ACCOUNT}", f"defaultaccount={ACCOUNT}")
    for name, limits in QOS.items():
        _sacctmgr(place, "add", "qos", name)
        _sacctmgr(place, "modify", "qos", name, "set", *limits)
    _sacctmgr(place, "modify", "user", USER, "set", f"qos+={','.join(QOS)}")


def _sacctmgr(place: Place, *arguments: str) -> str:
    command = ["sacctmgr", "-n", "-i", "-Q", *arguments]
    return run(command, "Slurm's accounting can't be set up", environ={"SLURM_CONF": str(place.slurm_conf)})
