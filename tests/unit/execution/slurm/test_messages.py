"""Texts of Slurm's programs, word for word (22.05; 26.11 where it says it otherwise) -> what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.execution.slurm.messages import KINDS, TABLE, clean, explain

FAILED = "sbatch: error: Batch job submission failed: "
POLICY = f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
CASES = [
    # The controller.
    (f"{FAILED}Unable to contact slurm controller (connect failure)", 1, "down", "can't be reached"),
    ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1, "down", "can't be"),
    (
        "scancel: error: Kill job error on job id 127: Unable to contact slurm controller (connect failure)",
        8, "down", "can't be reached",
    ),
    ("slurm_load_partitions: Unable to contact slurm controller (connect failure)", 1, "down", "can't be"),
    ("Slurmctld(primary) at vm is DOWN", 1, "down", "can't be reached"),
    (f"{FAILED}Slurm backup controller in standby mode", 1, "down", "can't be reached"),
    ("sbatch: error: Slurm controller not responding, sleeping and retrying.", 1, "down", "can't be reached"),
    (f"{FAILED}Socket timed out on send/recv operation", 1, "ambiguous", "did not answer in time"),
    ("slurm_load_jobs error: Socket timed out on send/recv operation", 1, "ambiguous", "did not answer"),
    (f"{FAILED}Zero Bytes were transmitted or received", 1, "ambiguous", "did not answer in time"),
    (f"{FAILED}Unable to contact slurm controller (receive failure)", 1, "ambiguous", "did not answer"),
    (f"{FAILED}Unable to contact slurm controller (send failure)", 1, "ambiguous", "did not answer in time"),
    (f"{FAILED}Connection timed out reading", 1, "ambiguous", "did not answer in time"),
    (f"{FAILED}Connection timed out establishing", 1, "down", "can't be reached"),
    # munge.
    (
        "sbatch: error: If munged is up, restart with --num-threads=10\n"
        'sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or '
        f"directory (Did you start munged?)\n{FAILED}Protocol authentication error",
        1, "down", "prove who we are",
    ),
    (f"{FAILED}Protocol authentication error", 1, "down", "prove who we are"),
    # Accounting.
    (
        "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to "
        "host:127.0.0.1:16819: Connection refused\n"
        "sacct: error: Sending PersistInit msg: Connection refused\n"
        "sacct: error: Problem talking to the database: Connection refused",
        1, "down", "accounting does not answer",
    ),
    ("Slurm accounting storage is disabled", 1, "down", "accounting does not answer"),
    # What a job asks for.
    (
        f"sbatch: error: invalid partition specified: nosuch\n{FAILED}Invalid partition name specified",
        1, "refused", "partition does not exist",
    ),
    (f"{FAILED}Requested node configuration is not available", 1, "refused", "no node of the partition"),
    ("sbatch: error: Invalid generic resource (gres) specification", 1, "refused", "no such resource"),
    (f"{FAILED}User's group not permitted to use this partition", 1, "refused", "may not use the partition"),
    ("sbatch: error: Invalid --time specification", 255, "refused", "does not understand an option"),
    (
        "sbatch: error: Memory specification can not be satisfied\n"
        f"{FAILED}Requested node configuration is not available",
        1, "refused", "no node has the memory",
    ),
    (f"{FAILED}Invalid node name specified", 1, "refused", "no such node"),
    (
        f"{FAILED}Invalid account or account/partition combination specified",
        1, "refused", "account is not valid",
    ),
    (f"{FAILED}Invalid qos specification", 1, "refused", "quality of service is not valid"),
    (f"sbatch: error: QOSMaxGRESPerJob\n{POLICY}", 1, "refused", "above a limit"),
    (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}", 1, "later", "as many jobs as it may submit"),
    (f"sbatch: error: AssocGrpSubmitJobsLimit\n{POLICY}", 1, "later", "as many jobs as it may submit"),
    (POLICY, 1, "refused", "above a limit"),
    (f"{FAILED}Invalid feature specification", 1, "refused", "no node has the feature"),
    (f"{FAILED}Requested reservation is invalid", 1, "refused", "reservation can't be used"),
    (f"{FAILED}Access denied to requested reservation", 1, "refused", "reservation can't be used"),
    (
        f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)",
        1, "refused", "time limit is not allowed",
    ),
    (f"{FAILED}More processors requested than permitted", 1, "refused", "more than one job may have"),
    (f"{FAILED}Node count specification invalid", 1, "refused", "more than one job may have"),
    (f"{FAILED}Invalid job array specification", 1, "refused", "does not understand an option"),
    (f"{FAILED}Required partition not available (inactive or drain)", 1, "later", "not available now"),
    # How it was handed over.
    ("sbatch: error: Unable to open file /nonexistent.sh", 1, "refused", "could not read the job's script"),
    (
        "sbatch: error: This does not look like a batch script.  The first\n"
        "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
        "sbatch: error: For instance: #!/bin/sh",
        1, "refused", "could not read the job's script",
    ),
    ("sbatch: error: Batch script is empty!", 1, "refused", "could not read the job's script"),
    (
        "sbatch: unrecognized option '--nosuchoption'\nTry \"sbatch --help\" for more information",
        255, "refused", "does not understand an option",
    ),
    ("sbatch: unrecognized option '--container-image=foo'", 255, "refused", "does not understand an option"),
    (
        "sbatch: option '--exp=NIL' is ambiguous; possibilities: '--export' '--export-file'",
        255, "refused", "does not understand an option",
    ),
    (
        "sbatch: error: Script arguments not permitted with --wrap option",
        1, "refused", "does not understand an option",
    ),
    ("sbatch: error: Invalid --container-mounts argument: badmount", 255, "refused", "Slurm says: "),
    # Rates and numbers.
    (
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying.\n"
        f"{FAILED}Resource temporarily unavailable",
        1, "later", "takes no more jobs for now",
    ),
    ("sbatch: error: Slurm job queue full, sleeping and retrying", 1, "later", "takes no more jobs for now"),
    (f"{FAILED}Rate limit exceeded, please retry momentarily", 1, "later", "takes no more jobs for now"),
    # Jobs that were asked about.
    ("slurm_load_jobs error: Invalid job id specified", 1, "gone", "knows no such job"),
    ("scancel: error: Kill job error on job id 9: Invalid job id specified", 1, "gone", "knows no such job"),
    (
        "scancel: error: Kill job error on job id 9: Job/step already completing or completed",
        1, "later", "is ending",
    ),
    ("scancel: error: Kill job error on job id 9: Access/permission denied", 1, "refused", "that to the job"),
    ("slurm_update error: Invalid user id", 1, "refused", "that to the job"),
    # The login node.
    ("sh: 1: sbatch: not found", 127, "refused", "missing on the login node"),
    ("bash: line 1: squeue: command not found", 127, "refused", "missing on the login node"),
    ("gate: refused: rm -rf X", 126, "refused", "does not let this key run"),
    ("sbatch: fatal: Could not establish a configuration source", 1, "refused", "not set up"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "kind", "what"), CASES, ids=[case[0][-70:] for case in CASES])
def test_what_a_text_means(text: str, code: int, kind: str, what: str) -> None:
    message = explain(text, code)
    assert message.kind == kind
    assert what in message.what


@pytest.mark.parametrize(
    ("text", "code", "kind", "what"),
    [
        ("sbatch: a new text", 1, "ambiguous", "Slurm says: sbatch: a new text (exit code 1)"),
        ("sbatch: a new text", 255, "refused", "Slurm says: sbatch: a new text (exit code 255)"),
        ("", 1, "ambiguous", "Slurm said nothing (exit code 1)"),
        ("", 127, "refused", "Slurm said nothing (exit code 127)"),
        ("", 126, "refused", "Slurm said nothing (exit code 126)"),
        ("a\x1b[2J\r\n\tb\u202e::error::c", 1, "ambiguous", "Slurm says: a [2J b ::error::c (exit code 1)"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_known_is_quoted(text: str, code: int, kind: str, what: str) -> None:
    message = explain(text, code)
    assert (message.kind, message.what) == (kind, what)


@pytest.mark.parametrize(("part", "message"), TABLE, ids=[part for part, _ in TABLE])
def test_each_row_helps_and_is_reached(part: str, message: object) -> None:
    """A row is in vain if an earlier one takes its text."""
    found = explain(f"sbatch: error: {part}", 1)
    assert found == message
    assert found.kind in KINDS
    assert found.what
    assert found.why
    assert found.then or found.kind == "gone"


@given(st.text(), st.integers(0, 255))
def test_any_text_has_a_meaning_on_one_line(text: str, code: int) -> None:
    message = explain(text, code)
    assert message.kind in KINDS
    assert message.what.isprintable()
    assert len(message.what) < 500


@given(st.text())
def test_what_is_quoted_is_one_line(text: str) -> None:
    assert clean(text) == "" or clean(text).isprintable()
    assert len(clean(text)) <= 400
