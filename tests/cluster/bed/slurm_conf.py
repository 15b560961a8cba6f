"""The text of Slurm's configuration files. Values in, text out."""

from __future__ import annotations

from collections.abc import Mapping

from tests.cluster.bed.place import CPU_NODES, GPU_NODES, GPUS, LOGIN_HOSTS, Place

CLUSTER = "bed"
_GPU = f"gpu[001-{len(GPU_NODES):03d}]"
_CPU = f"cpu[001-{len(CPU_NODES):03d}]"
# One of each policy that a job can meet: REQUEUE and CANCEL preemption, a short limit, shut, not for us.
PARTITIONS = f"""\
PartitionName=gpu Nodes={_GPU} Default=YES MaxTime=24:00:00 DefaultTime=01:00:00 PriorityTier=10
PartitionName=cpu Nodes={_CPU} MaxTime=24:00:00 DefaultTime=01:00:00 PriorityTier=10
PartitionName=low Nodes={_GPU} MaxTime=24:00:00 DefaultTime=01:00:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=lowkill Nodes={_GPU} MaxTime=24:00:00 DefaultTime=01:00:00 PriorityTier=1 PreemptMode=CANCEL \
GraceTime=3
PartitionName=high Nodes={_GPU} MaxTime=24:00:00 DefaultTime=01:00:00 PriorityTier=100 PreemptMode=OFF
PartitionName=short Nodes={_GPU} MaxTime=00:05:00 DefaultTime=00:01:00 PriorityTier=10
PartitionName=closed Nodes={_CPU} MaxTime=01:00:00 State=DOWN
PartitionName=admin Nodes={_CPU} MaxTime=01:00:00 AllowGroups=root
"""


def settings(place: Place) -> dict[str, str]:
    """slurm.conf's settings but for nodes and partitions; `up --set` replaces or adds to them.

    Timeouts are shorter than Slurm's own, so that a lost node shows in seconds. KillWait is Slurm's.
    """
    return {
        "ClusterName": CLUSTER,
        "SlurmctldHost": f"localhost({LOGIN_HOSTS[0]})",
        "SlurmctldPort": str(place.controller_port),
        "SlurmUser": "slurm",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={place.munge_socket}",
        "CredType": "cred/munge",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "TaskProlog": str(place / "nodes/prolog"),
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "task=5",
        "SwitchType": "switch/none",
        "MpiDefault": "none",
        "GresTypes": "gpu",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": "1000",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "batch_sched_delay=0,sched_interval=2,bf_interval=1,preempt_youngest_first",
        "PriorityType": "priority/basic",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
        "MinJobAge": "900",
        "MaxJobCount": "20000",
        "KillWait": "30",
        "CompleteWait": "0",
        "EpilogMsgTime": "0",
        "SlurmctldTimeout": "10",
        "SlurmdTimeout": "20",
        "BatchStartTimeout": "10",
        "MessageTimeout": "10",
        "ReturnToService": "2",
        "SlurmdParameters": "config_overrides",
        "StateSaveLocation": str(place / "state"),
        "SlurmdSpoolDir": str(place / "spool/%n"),
        "SlurmctldPidFile": str(place / "run/slurm/slurmctld.pid"),
        "SlurmdPidFile": str(place / "run/slurmd-%n.own.pid"),
        "SlurmctldLogFile": str(place / "log/slurm/slurmctld.log"),
        "SlurmdLogFile": str(place / "log/slurmd-%n.log"),
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": LOGIN_HOSTS[0],
        "AccountingStoragePort": str(place.accounting_port),
        "AccountingStoreFlags": "job_comment",
        # With munge this is its socket (slurm.conf(5)); AuthInfo is not asked on this way.
        "AccountingStoragePass": str(place.munge_socket),
        "AccountingStorageTRES": "gres/gpu",
        "AccountingStorageEnforce": "associations,limits,qos",
    }


def slurm_conf(place: Place, changes: Mapping[str, str]) -> str:
    """slurm.conf with `changes` to its settings."""
    lines = [f"{key}={value}" for key, value in {**settings(place), **changes}.items()]
    nodes = [
        _node(place, node, f"RealMemory=1000000 Gres=gpu:h100:{GPUS} Feature=h100") for node in GPU_NODES
    ]
    nodes += [_node(place, node, "RealMemory=500000 Feature=cpu") for node in CPU_NODES]
    return "\n".join([*lines, *nodes, PARTITIONS])


def _node(place: Place, node: str, resources: str) -> str:
    cores = "CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=1 TmpDisk=100000"
    where = f"NodeHostname=localhost NodeAddr={LOGIN_HOSTS[0]} Port={place.node_port(node)}"
    return f"NodeName={node} {where} {cores} {resources}"


def gres_conf(place: Place) -> str:
    """gres.conf: the same pretended devices on every GPU node."""
    return f"NodeName={_GPU} Name=gpu Type=h100 File={place / 'dev'}/nvidia[0-{GPUS - 1}]\n"


def slurmdbd_conf(place: Place) -> str:
    """slurmdbd.conf; the password guards a database that listens on loopback only."""
    lines = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={place.munge_socket}",
        "DbdHost": "localhost",
        "DbdAddr": LOGIN_HOSTS[0],
        "DbdPort": str(place.accounting_port),
        "SlurmUser": "slurm",
        "LogFile": str(place / "log/slurm/slurmdbd.log"),
        "PidFile": str(place / "run/slurm/slurmdbd.pid"),
        "StorageType": "accounting_storage/mysql",
        "StorageHost": LOGIN_HOSTS[0],
        "StoragePort": str(place.database_port),
        "StorageUser": "slurm",
        "StoragePass": "slurm",
        "StorageLoc": "slurm_acct_db",
        "CommitDelay": "0",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())
