"""The bed does what the other tests in this folder build on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cluster.bed.handle import Bed, Done
from tests.cluster.bed.place import GPUS, LOGIN_HOSTS


@pytest.mark.parametrize("host", ["bed", "bed2"])
def test_both_login_hosts_let_the_user_in(bed: Bed, host: str) -> None:
    done = bed.ssh('id -un; command -v sbatch; echo "$SSH_CONNECTION"', host=host)
    assert done.stdout.split()[:2] == ["ci", "/usr/bin/sbatch"]
    assert done.stdout.split()[4] == LOGIN_HOSTS[host == "bed2"]


def test_a_stranger_is_refused(bed: Bed) -> None:
    done = connect(bed, bed.place / "keys/stranger", "known_hosts", LOGIN_HOSTS[0])
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr


def test_a_short_lived_certificate_opens_a_host_that_a_certificate_vouches_for(
    bed: Bed, tmp_path: Path
) -> None:
    assert bed.root(str(bed.place / "keys/issue"), str(tmp_path / "id"), "30").returncode == 0
    done = connect(bed, tmp_path / "id", "known_hosts_ca", LOGIN_HOSTS[1])
    assert (done.stdout, done.returncode) == ("ci\n", 0), done.stderr


def connect(bed: Bed, key: Path, known_hosts: str, host: str) -> Done:
    """`id -un` over ssh with this key alone."""
    known = f"UserKnownHostsFile={bed.place / 'sshd' / known_hosts}"
    options = ("-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", known)
    return bed.root("ssh", *options, "-i", str(key), "-p", str(bed.place.ssh_port), f"ci@{host}", "id -un")


def test_twelve_jobs_of_eight_gpus_run_at_once(bed: Bed) -> None:
    jobs = [bed.submit("sleep 60", f"--gres=gpu:{GPUS}") for _ in range(12)]
    nodes = {bed.await_state(job, "RUNNING")["NodeList"] for job in jobs}
    assert len(nodes) == 12


@pytest.mark.parametrize(
    ("script", "state", "code"),
    [("exit 0", "COMPLETED", "0:0"), ("exit 3", "FAILED", "3:0"), ("exit 128", "FAILED", "128:0")],
)
def test_a_job_ends_as_it_does(bed: Bed, script: str, state: str, code: str) -> None:
    assert bed.await_state(bed.submit(script), "COMPLETED", "FAILED")["ExitCode"] == code


def test_a_container_starts_in_a_job_and_sees_the_devices(bed: Bed) -> None:
    out = bed.place / "shared/container.out"
    devices = [f"--device={path}:/dev/{path.name}" for path in bed.place.devices()]
    nvidia_smi = f"-v {bed.place / 'nodes/nvidia-smi'}:/usr/bin/nvidia-smi:ro"
    python = "/opt/python/bin/python3 -m pytest --version; nvidia-smi -L"
    script = f"podman run --rm --network host {' '.join(devices)} {nvidia_smi} {bed.image} sh -c '{python}'"
    job = bed.submit(f"exec > {out} 2>&1; {script}", "--gres=gpu:8")
    assert bed.await_state(job, "COMPLETED", "FAILED")["JobState"] == "COMPLETED", out.read_text()
    lines = out.read_text().splitlines()
    assert lines[0].startswith("pytest ")
    assert len(lines) == 1 + GPUS


def test_a_node_that_is_called_down_fails_its_job(bed: Bed) -> None:
    job = bed.submit("sleep 60", "--gres=gpu:1", "--no-requeue")
    node = bed.await_state(job, "RUNNING")["NodeList"]
    bed.fail(node)
    facts = bed.await_state(job, "NODE_FAIL")
    assert (facts["Reason"], facts["ExitCode"]) == ("NodeDown", "0:0")


QUERY = (
    "nvidia-smi --query-gpu=index,uuid,name,memory.used,memory.total,ecc.errors.uncorrected.volatile.total"
)
STYLE = "--format=csv,noheader,nounits"
NAME = "NVIDIA H100 80GB HBM3"


def gpu(index: int, used: int = 0, ecc: int = 0) -> str:
    """A line of the answer."""
    return f"{index}, GPU-{index:08x}-0000-4000-8000-000000000000, {NAME}, {used}, 81559, {ecc}"


@pytest.mark.parametrize(
    ("fault", "text", "code", "lines"),
    [
        ("", "", "0:0", [gpu(index) for index in range(8)]),
        ("missing", "3 7", "0:0", [gpu(index) for index in (0, 1, 2, 4, 5, 6)]),
        ("memory", "1 512", "0:0", [gpu(index, used=512 * (index == 1)) for index in range(8)]),
        ("ecc", "7 2", "0:0", [gpu(index, ecc=2 * (index == 7)) for index in range(8)]),
        (
            "exit",
            "9",
            "9:0",
            ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."],
        ),
        ("rubbish", "\x1b[31m?\n", "0:0", ["\x1b[31m?"]),
    ],
    ids=["none", "missing", "memory", "ecc", "exit", "rubbish"],
)
def test_nvidia_smi_says_what_was_planted(
    bed: Bed, fault: str, text: str, code: str, lines: list[str]
) -> None:
    if fault:
        bed.plant("gpu014", fault, text)
    out = bed.place / "shared/nvidia-smi.out"
    job = bed.submit(f"exec > {out}; {QUERY} {STYLE}", "--nodelist=gpu014")
    assert bed.await_state(job, "COMPLETED", "FAILED")["ExitCode"] == code
    assert out.read_text().splitlines() == lines


def test_a_foreign_process_shows(bed: Bed) -> None:
    bed.plant("gpu014", "process", "2 4242 python 1024")
    out = bed.place / "shared/nvidia-smi.out"
    query = "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory"
    bed.await_state(bed.submit(f"{query} {STYLE} > {out}", "--nodelist=gpu014"), "COMPLETED")
    assert out.read_text() == "GPU-00000002-0000-4000-8000-000000000000, 4242, python, 1024\n"


def test_only_a_gpu_node_has_nvidia_smi(bed: Bed) -> None:
    job = bed.submit("command -v nvidia-smi", "--partition=cpu")
    assert bed.await_state(job, "COMPLETED", "FAILED")["ExitCode"] == "127:0"
    assert bed.ssh("command -v nvidia-smi").returncode == 1
