"""What sbatch, squeue, scontrol, scancel and sacct say when they fail, in words that help. Pure.

Texts are those of Slurm 22.05 to 26.11. A text is looked for anywhere in what a program said, the rows in
their order, so what is special comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

# refused: asking again gives the same answer, and nothing was done. ambiguous: the request may have been
# carried out, look. down: the controller did not get it, ask again. later: it does not take it now, ask
# again. gone: it knows no such job.
KINDS = ("refused", "ambiguous", "down", "later", "gone")
_SHOWN = 400


@dataclass(frozen=True)
class Message:
    """What happened, the usual reason, what to do; `kind` is one of KINDS."""

    what: str
    why: str
    then: str
    kind: str


def explain(text: str, code: int) -> Message:
    """Say what a failed program means by its output and exit code.

    A text that is not known is quoted. It may hide that the request was carried out, so it is `ambiguous`;
    except that sbatch ends with 255 when it can't read its options, and a shell with 126 or 127 when it
    can't start a program.
    """
    lowered = text.lower()
    for part, message in TABLE:
        if part.lower() in lowered:
            return message
    return _unknown(text, code)


def clean(text: str) -> str:
    """One line without control characters, cut: what others wrote, to be quoted."""
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    line = " ".join(words)
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def _unknown(text: str, code: int) -> Message:
    said = f"Slurm says: {clean(text)}" if text.strip() else "Slurm said nothing"
    what = f"{said} (exit code {code})"
    if code in (126, 127):
        return Message(
            what,
            "the program is not there, or may not be run",
            "check `slurm.login`, and PATH there in a shell that is not interactive",
            "refused",
        )
    if code == 255:
        return Message(what, "sbatch could not read its options", "check `slurm.extra-options`", "refused")
    return Message(what, "", "ask the cluster's administrators what it means", "ambiguous")


def _refused(what: str, why: str, then: str) -> Message:
    return Message(what, why, then, "refused")


_AWAY = "it is restarted or down, or the network to it is"
_ADMINISTRATORS = "if it stays so, tell the cluster's administrators"
_TAKEN = Message(
    "the controller did not answer in time",
    "it is busy or hung; it may have taken the request",
    "look for the job before asking again",
    "ambiguous",
)
_DOWN = Message("the Slurm controller can't be reached", _AWAY, _ADMINISTRATORS, "down")
_MUNGE = Message(
    "the login node can't prove who we are to Slurm",
    "munged is down on the login node, or its key or clock is not the controller's",
    "tell the cluster's administrators, or name another host in `slurm.login`",
    "down",
)
_ACCOUNTING = Message(
    "Slurm's accounting does not answer",
    "slurmdbd is down, or accounting is off",
    "jobs still run; only the past of jobs that the controller has forgotten is not known",
    "down",
)
_BUSY = Message(
    "Slurm takes no more jobs for now",
    "the cluster has as many jobs as it may have, or it limits the rate of requests",
    _ADMINISTRATORS,
    "later",
)
_FULL = Message(
    "the user or account has as many jobs as it may submit",
    "jobs of other runs, or of other people with the same account, are waiting or running",
    "wait for them, lower `shards.max`, or ask for a higher MaxSubmitJobs",
    "later",
)
_LIMIT = _refused(
    "the job is above a limit of its account or quality of service",
    "it asks for more GPUs, CPUs, memory or time than one job may have",
    "see `sacctmgr show qos` and `sacctmgr show assoc`, and lower the profile's `gpus` or `slurm.time-limit`",
)
_NODES = _refused(
    "no node of the partition has what the job asks for",
    "too many GPUs, a GPU of another name, or a partition without GPUs",
    "compare `gpu` and `gpus` of the profile, `slurm.gres` and `slurm.partition` with `sinfo -o '%P %N %G'`",
)
_TIME = _refused(
    "the time limit is not allowed",
    "it is above the partition's MaxTime or a limit of the account",
    "set `slurm.time-limit` below what `scontrol show partition` says",
)
_MEMORY = _refused(
    "no node has the memory that the job asks for",
    "`--mem` in `slurm.extra-options` is above what a node has",
    "lower it; `--mem=0` asks for all memory of a node",
)
_PARTITION = _refused(
    "the partition does not exist",
    "`slurm.partition` is misspelt, hidden from this user, or of another cluster",
    "choose one that `sinfo -s` lists",
)
_PERMITTED = _refused(
    "this user may not use the partition",
    "it is open to some groups, accounts or qualities of service only",
    "choose another `slurm.partition`, or ask for access",
)
_ACCOUNT = _refused(
    "the account is not valid here",
    "`slurm.account` is misspelt, this user does not belong to it, or it may not use the partition",
    "choose one that `sacctmgr show assoc user=$USER` lists",
)
_QOS = _refused(
    "the quality of service is not valid here",
    "`slurm.qos` is misspelt, or the account or partition does not allow it",
    "choose one that `sacctmgr show assoc user=$USER format=account,qos` lists",
)
_FEATURE = _refused(
    "no node has the feature that the job wants",
    "`slurm.constraint` is misspelt",
    "choose one that `sinfo -o '%N %f'` lists",
)
_RESERVATION = _refused(
    "the reservation can't be used",
    "`slurm.reservation` is misspelt, over, or not for this user",
    "choose one that `scontrol show reservation` lists",
)
_GRES = _refused(
    "the cluster has no such resource",
    "`slurm.gres` names something that GresTypes of the cluster lacks",
    "compare it with `sinfo -o '%N %G'`",
)
_NODE_NAME = _refused(
    "the cluster has no such node",
    "`slurm.exclude` or `--nodelist` names a node that is gone or misspelt",
    "compare it with `sinfo -N`",
)
_SIZE = _refused(
    "the job asks for more than one job may have",
    "an option in `slurm.extra-options` asks for too many CPUs or nodes",
    "compare it with `scontrol show partition`",
)
_OPTION = _refused(
    "sbatch does not understand an option",
    "`slurm.extra-options` holds one that this version or site does not know, or a value of the wrong form",
    "compare it with `sbatch --help` on the login node",
)
_SCRIPT = _refused(
    "sbatch could not read the job's script",
    "it was removed or cut on the shared folder: the disk is full, or somebody cleaned up",
    "check free space in `slurm.shared-dir`, and run again",
)
_UNAVAILABLE = Message(
    "the partition, or a node that the job names, is not available now",
    "it is drained, inactive or down",
    "wait, or choose another `slurm.partition`",
    "later",
)
_NOT_OURS = _refused(
    "Slurm does not let this user do that to the job",
    "the job belongs to somebody else",
    "check that all runs use the same `slurm.user`",
)
_NO_JOB = Message("Slurm knows no such job", "it ended some time ago, or its id was never given", "", "gone")
_ENDING = Message("the job is ending", "it was cancelled or ended just now", "look again", "later")
_CONFIGURED = _refused(
    "Slurm is not set up on the login node",
    "its programs find no slurm.conf",
    "check `slurm.login`, and SLURM_CONF there in a shell that is not interactive",
)
_NOT_FOUND = _refused(
    "a program of Slurm is missing on the login node",
    "it is not in PATH in a shell that is not interactive, or this is no login node",
    "check `slurm.login`, and what ~/.bashrc there does to PATH",
)

# A part of the text, upper or lower case -> what it means.
TABLE: tuple[tuple[str, Message], ...] = (
    # An answer that did not come: the request may have been taken.
    ("Socket timed out on send/recv operation", _TAKEN),
    ("Zero Bytes were transmitted or received", _TAKEN),
    ("Connection timed out reading", _TAKEN),
    ("Connection timed out writing", _TAKEN),
    ("Unable to contact slurm controller (receive failure)", _TAKEN),
    ("Unable to contact slurm controller (send failure)", _TAKEN),
    ("Unable to contact slurm controller (shutdown failure)", _TAKEN),
    ("Message receive failure", _TAKEN),
    ("Message send failure", _TAKEN),
    # munge before the controller: its text ends in "Protocol authentication error".
    ("Munge encode failed", _MUNGE),
    ("Munge decode failed", _MUNGE),
    ("If munged is up", _MUNGE),
    ("Protocol authentication error", _MUNGE),
    ("Invalid authentication credential", _MUNGE),
    # Accounting before the controller: it says "Connection refused" too.
    ("slurm_persist_conn_open", _ACCOUNTING),
    ("Sending PersistInit msg", _ACCOUNTING),
    ("Problem talking to the database", _ACCOUNTING),
    ("Unable to connect to database", _ACCOUNTING),
    ("Slurm accounting storage is disabled", _ACCOUNTING),
    ("Unable to contact slurm controller", _DOWN),
    ("Slurmctld(primary)", _DOWN),
    ("Communication connection failure", _DOWN),
    ("Connection timed out establishing", _DOWN),
    ("in standby mode", _DOWN),
    ("Slurm controller not responding", _DOWN),
    ("Connection refused", _DOWN),
    ("fetch_config: DNS SRV lookup failed", _CONFIGURED),
    ("Could not establish a configuration source", _CONFIGURED),
    # Rates and numbers of jobs.
    ("Rate limit exceeded", _BUSY),
    ("MaxJobCount limit reached", _BUSY),
    ("sleeping and retrying", _BUSY),
    ("Job creation temporarily disabled", _BUSY),
    ("Resource temporarily unavailable", _BUSY),
    ("MaxSubmitJob", _FULL),
    ("GrpSubmitJobs", _FULL),
    ("MaxMemPerLimit", _MEMORY),
    ("Job violates accounting/QOS policy", _LIMIT),
    # What the job asks for.
    ("Memory specification can not be satisfied", _MEMORY),
    ("Memory required by task is not available", _MEMORY),
    ("invalid partition specified", _PARTITION),
    ("Invalid partition name specified", _PARTITION),
    ("No partition specified or system default partition", _PARTITION),
    ("User's group not permitted to use this partition", _PERMITTED),
    ("Requested node configuration is not available", _NODES),
    ("Invalid generic resource (gres) specification", _GRES),
    ("Invalid GRES specification", _GRES),
    ("Invalid --time specification", _OPTION),
    ("Requested time limit is invalid", _TIME),
    ("Time limit specification required", _TIME),
    ("Invalid node name specified", _NODE_NAME),
    ("Requested nodes not in this partition", _NODE_NAME),
    ("Invalid account", _ACCOUNT),
    ("Invalid qos", _QOS),
    ("breached requested QOS usage threshold", _QOS),
    ("Invalid feature specification", _FEATURE),
    ("Invalid preferred feature specification", _FEATURE),
    ("Requested reservation", _RESERVATION),
    ("Access denied to requested reservation", _RESERVATION),
    ("Invalid job array specification", _OPTION),
    ("More processors requested than permitted", _SIZE),
    ("Node count specification invalid", _SIZE),
    ("CPU count specification invalid", _SIZE),
    ("Required partition not available", _UNAVAILABLE),
    ("Requested partition configuration not available now", _UNAVAILABLE),
    ("Required node not available", _UNAVAILABLE),
    ("Partition in DOWN state", _UNAVAILABLE),
    # How the job was handed over.
    ("unrecognized option", _OPTION),
    ("is ambiguous; possibilities", _OPTION),
    ("requires an argument", _OPTION),
    ("invalid option --", _OPTION),
    ("Invalid directive found in batch script", _OPTION),
    ("Script arguments not permitted with --wrap option", _OPTION),
    (" specification", _OPTION),
    ("Unable to open file", _SCRIPT),
    ("This does not look like a batch script", _SCRIPT),
    ("Batch script is empty", _SCRIPT),
    ("Batch script contains only whitespace", _SCRIPT),
    ("Batch script contains DOS line breaks", _SCRIPT),
    ("Pathname of a file, directory or other parameter too long", _SCRIPT),
    ("I/O error writing script/environment to file", Message(
        "the controller could not keep the job",
        "its own disk is full",
        _ADMINISTRATORS,
        "later",
    )),
    # Jobs that were asked about.
    ("Invalid job id specified", _NO_JOB),
    ("Job/step already completing", _ENDING),
    ("Job can not be altered now", _ENDING),
    ("Access/permission denied", _NOT_OURS),
    ("Invalid user id", _NOT_OURS),
    # Shells.
    ("command not found", _NOT_FOUND),
    (": not found", _NOT_FOUND),
    ("gate: refused", _refused(
        "the login node does not let this key run that program",
        "its authorized_keys has a forced command",
        "allow sh and Slurm's programs for this key, or use another",
    )),
)  # fmt: skip
