"""Why a job waits: Slurm's reason codes (22.05 to 26.11, `job_state_reason.c`) in words. Pure tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

# These don't pass: the job would wait for ever. Reason -> (verdict, words).
FOR_EVER: Mapping[str, tuple[str, str]] = {
    "PartitionTimeLimit": (
        "config_error",
        "its time limit is above the partition's; set `slurm.time-limit`, or another `slurm.partition`",
    ),
    "PartitionNodeLimit": (
        "config_error",
        "the partition does not give a job one node, or the nodes it names are down",
    ),
    "PartitionConfig": (
        "config_error",
        "it asks for more than the partition gives a job: CPUs, memory, GPUs or time",
    ),
    "PartitionDown": ("infra", "the partition is down; an administrator brings it up"),
    "PartitionInactive": ("infra", "the partition is inactive; an administrator makes it active"),
    "DependencyNeverSatisfied": ("config_error", "it depends on a job that failed"),
    "BadConstraints": ("config_error", "no node can ever satisfy what it asks for"),
    "AccountNotAllowed": ("config_error", "its account may not use the partition; see `slurm.account`"),
    "InvalidAccount": ("config_error", "its account does not exist or was removed; see `slurm.account`"),
    "InvalidQOS": ("config_error", "its quality of service does not exist; see `slurm.qos`"),
    "QOSNotAllowed": (
        "config_error",
        "its account or the partition does not allow its quality of service; see `slurm.qos`",
    ),
    "ReservationDeleted": ("config_error", "its reservation was deleted; see `slurm.reservation`"),
    "ReservationInvalid": ("config_error", "it may not use its reservation; see `slurm.reservation`"),
    "MaxMemPerLimit": ("config_error", "it asks for more memory than a node or CPU may give"),
    "JobHoldMaxRequeue": ("infra", "it failed to start so often that Slurm holds it"),
    "BurstBufferOperation": ("infra", "its burst buffer failed"),
}
# Slurm holds a job that it could not launch, and writes a sentence in place of a code.
HELD_AFTER_FAILURE = re.compile(r"requeued[_ ](in[_ ])?held", re.IGNORECASE)

WAITING: Mapping[str, str] = {
    "None": "the scheduler has not looked at it yet",
    "Priority": "jobs with a higher priority are before it",
    "Resources": "it is next; other jobs have what it needs",
    "BeginTime": "it may not start yet",
    "JobHeldUser": "its user holds it; `scontrol release` lets it go",
    "JobHeldAdmin": "an administrator holds it; only they can let it go",
    "ReqNodeNotAvail": "nodes that it could use are down, drained or reserved",
    "NodeDown": "a node that it needs is down",
    "Reservation": "its reservation has not begun",
    "Constraints": "no node satisfies its constraints at this time",
    "Dependency": "it waits for another job to end",
    "Licenses": "it waits for a licence",
    "Prolog": "the node is being prepared",
    "Cleaning": "it starts again, and its last start is still being cleaned up",
    "JobArrayTaskLimit": "enough tasks of its array run",
    "BurstBufferResources": "it waits for room in the burst buffer",
    "BurstBufferStageIn": "its burst buffer is being filled",
    "FrontEndDown": "no front end node is up",
    "FedJobLock": "the clusters of the federation agree who runs it",
    "SchedDefer": "the scheduler defers it",
    "MaxPoweredUpNodes": "as many nodes are powered up as may be",
    "MpiPortsBusy": "it waits for network ports",
    "AccountingPolicy": "a limit of its account or quality of service holds it back",
    "QOSUsageThreshold": "its account has used too much for its quality of service",
    "QOSJobLimit": "its quality of service runs as many jobs as it may",
    "QOSResourceLimit": "its quality of service uses as much as it may",
    "QOSTimeLimit": "its quality of service has used its time",
    "AssociationJobLimit": "its account runs as many jobs as it may",
    "AssociationResourceLimit": "its account uses as much as it may",
    "AssociationTimeLimit": "its account has used its time",
}

_OWNERS = {"QOS": "quality of service", "Assoc": "account", "": "quality of service"}
_RESOURCES = (
    ("GRES", "GPUs"),
    ("Cpu", "CPUs"),
    ("Mem", "memory"),
    ("Node", "nodes"),
    ("Job", "jobs"),
    ("Wall", "time"),
    ("License", "licences"),
    ("Billing", "billing units"),
    ("Energy", "energy"),
    ("BB", "burst buffer"),
)
_GROUP = re.compile(r"(?P<owner>QOS|Assoc)Grp(?P<what>\w+)")
_MINIMUM = re.compile(r"(?P<owner>QOS)Min(?P<what>\w+)")
_PER_JOB = re.compile(r"(?P<owner>QOS|Assoc)Max(?P<what>\w+)Per(Job|Node)(Limit)?")
_MOST = re.compile(r"(?P<owner>QOS|Assoc|)Max(?P<what>\w+)")
# Limits have nearly 200 codes, made of an owner, a scope and a resource. The first that fits counts.
FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (_GROUP, "all jobs of its {owner} together are at their limit of {what}; it waits for them"),
    (_MINIMUM, "it is below the least {what} of its {owner}; it waits until that limit changes"),
    (_PER_JOB, "it asks for more {what} than its {owner} allows one job; it waits until that limit changes"),
    (_MOST, "jobs of the same user or account are at the limit of {what} of its {owner}; it waits for them"),
)


def limit_text(code: str) -> str | None:
    """Words for a code of a limit; None if it is none."""
    for pattern, words in FAMILIES:
        found = pattern.fullmatch(code)
        if found:
            return words.format(owner=_OWNERS[found["owner"]], what=_resource(found["what"]))
    return None


def _resource(code: str) -> str:
    lowered = code.lower()
    name = next((words for part, words in _RESOURCES if part.lower() in lowered), "resources")
    return f"{name} x time" if "minutes" in lowered or "mins" in lowered else name
