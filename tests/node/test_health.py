"""The look at a node: what condemns it, and what does not; with tools as they answer, lie and hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuci_node import probe
from gpuci_node.health import Answer, Report, after, before, own_gpus, xids

SCRIPTS = str(Path(__file__).parents[2] / "scripts")
ENDLESS = 60

MEMORY = "0, GPU-a, 00000000:3B:00.0, 4\n1, GPU-b, 00000000:AF:00.0, 9\n"
GOOD = {
    "memory": Answer(MEMORY),
    "processes": Answer(""),
    "ECC": Answer("0, GPU-a, 0\n1, GPU-b, 0\n"),
    "retired pages": Answer("0, GPU-a, [N/A]\n1, GPU-b, No\n"),
    "remapped rows": Answer("0, GPU-a, 0\n1, GPU-b, No\n"),
}
JOB = {"gpus": ["0", "1"], "expect_gpus": 2, "memory_mib": 1024}
LOG = [
    "4,1000,900000000,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python, Ch 00000008",
    "4,1001,950000000,-;NVRM: Xid (PCI:0000:af:00): 79, pid='<unknown>', GPU has fallen off the bus.",
    "6,1002,950000001,-;something else",
]


def look(answers: Mapping[str, str | Answer] | None = None, **job: Any) -> Report:
    """The report on a good node with these answers in place of its own."""
    given = {
        name: answer if isinstance(answer, Answer) else Answer(answer)
        for name, answer in (answers or {}).items()
    }
    return before({**JOB, **job}, {**GOOD, **given}, 0, [], 1000.0)


def test_a_good_node_is_fit() -> None:
    assert look() == Report([], [], 2)


@pytest.mark.parametrize(
    ("answers", "faults"),
    [
        ({"memory": MEMORY.splitlines()[0]}, ["nvidia-smi knows 1 of the 2 GPUs of this job"]),
        ({"memory": "No devices were found\n"}, ["nvidia-smi knows 0 of the 2 GPUs of this job"]),
        (
            {"memory": Answer("No devices were found\n", "nvidia-smi left with exit code 6", 6)},
            ["nvidia-smi knows 0 of the 2 GPUs of this job"],
        ),
        (
            {"memory": Answer("Unable to determine the device handle\n", "exit code 15", 15)},
            ["nvidia-smi: a GPU has fallen off the bus, or can't be reached"],
        ),
        ({"memory": MEMORY.replace(", 9", ", 20480")}, ["GPU 1: 20480 MiB of memory are in use"]),
        (
            {"processes": "GPU-b, 4242, 300, /usr/bin/python3, worker\n"},
            ["GPU 1 is in use by another process, 4242 (/usr/bin/python3, worker)"],
        ),
        ({"ECC": "0, GPU-a, 3\n1, GPU-b, [N/A]\n"}, ["GPU 0: 3 uncorrected memory errors"]),
        (
            {"retired pages": "0, GPU-a, Yes\n1, GPU-b, No\n"},
            ["GPU 0: pages of memory wait to be retired (1)"],
        ),
        ({"remapped rows": "0, GPU-a, 0\n1, GPU-b, 1\n"}, ["GPU 1: remapping of memory rows failed (1)"]),
    ],
    ids=[
        "a GPU is lost",
        "all are",
        "all are, by code",
        "off the bus",
        "memory",
        "a process",
        "ECC",
        "retired pages",
        "remapped rows",
    ],
)
def test_what_condemns_a_node(answers: dict[str, str | Answer], faults: list[str]) -> None:
    assert look(answers).faults == faults


@pytest.mark.parametrize(
    ("job", "answers"),
    [
        ({}, {"memory": MEMORY.replace(", 9", ", 1024")}),
        ({}, {"memory": MEMORY.replace(", 9", ", [N/A]")}),
        ({}, {"memory": MEMORY + "2, GPU-c, 00000000:D8:00.0, 70000\n"}),
        ({}, {"processes": "GPU-c, 4242, 300, python3\n"}),
        ({}, {"processes": "GPU-a, 99, 30, /usr/bin/nvidia-cuda-mps-server\n"}),
        ({}, {"ECC": "0, GPU-a, 0\n1, GPU-b, 0\n2, GPU-c, 8\n"}),
        ({"gpus": ["GPU-b", "GPU-a"]}, {}),
        ({"gpus": ["6", "7"]}, {}),
        ({"gpus": [], "expect_gpus": 0}, {"memory": ""}),
    ],
    ids=[
        "memory at the limit",
        "memory unknown",
        "memory on another job's GPU",
        "a process on another job's GPU",
        "MPS",
        "errors on another job's GPU",
        "ids of NVIDIA's",
        "in a cgroup all that are seen are the job's",
        "a job without GPUs",
    ],
)
def test_what_does_not(job: dict[str, Any], answers: dict[str, str]) -> None:
    assert look(answers, **job).faults == []


@pytest.mark.parametrize("part", list(GOOD))
@pytest.mark.parametrize(
    "answer",
    [
        Answer("", "nvidia-smi left with exit code 9"),
        Answer("", "nvidia-smi did not end in time"),
        Answer("Failed to initialize NVML: Driver/library version mismatch\n"),
        Answer("x, y, z, w\n"),
        Answer("\x00\xff"),
    ],
    ids=["it fails", "it hangs", "an error in its words", "rubbish", "bytes"],
)
def test_a_tool_that_breaks_condemns_no_node(part: str, answer: Answer) -> None:
    report = look({part: answer})
    assert report.faults == []
    assert part == "processes" or len(report.unchecked) == 1


def test_parts_of_gpus_are_not_judged_by_the_counts_of_whole_ones() -> None:
    report = look(gpus=["MIG-1", "MIG-2", "MIG-3"], expect_gpus=3)
    assert report == Report([], ["parts of GPUs (MIG)"])


@pytest.mark.parametrize(
    ("files", "faults", "gpus"),
    [
        (0, [], None),
        (8, [], 2),
        (1, ["the node has 1 NVIDIA device files, this job was to get 2 GPUs"], None),
    ],
    ids=["no NVIDIA", "enough", "too few"],
)
def test_without_nvidia_smi_device_files_are_counted(files: int, faults: list[str], gpus: int | None) -> None:
    report = before(JOB, {}, files, [], 1000.0)
    assert (report.faults, report.gpus) == (faults, gpus)
    assert bool(report.unchecked) != bool(faults)


def test_xids_of_devices_condemn_a_node_if_they_are_recent() -> None:
    assert before(JOB, GOOD, 0, LOG, 1000.0).faults == ["GPU 1: Xid 79"]
    assert before(JOB, GOOD, 0, LOG, 9000.0).faults == []


def test_xids_during_the_tests_are_told_all() -> None:
    gpus = own_gpus(MEMORY, ["0", "1"])
    assert xids(LOG, gpus, 0.0, devices_only=False) == ["GPU 0: Xid 31", "GPU 1: Xid 79"]
    assert (
        xids(["rubbish", "4,1,x,-;NVRM: Xid (PCI:0000:3b:00): 79", ""], gpus, 0.0, devices_only=False) == []
    )


def test_what_is_left_after_the_tests() -> None:
    answers = {
        "memory": Answer(MEMORY.replace(", 9", ", 2048")),
        "processes": Answer("GPU-b, 4242, 300, python3\nGPU-b, 7, 300, other\n"),
    }
    rest = after(JOB, answers, lambda pid: pid == 4242, LOG, 940.0)
    assert rest.left == [
        "GPU 1: process 4242 (python3) of this user",
        "GPU 1: process 7 (other) of another user",
        "GPU 1: 2048 MiB of memory are in use",
    ]
    assert rest.xids == ["GPU 1: Xid 79"]


# -- the tools themselves ----------------------------------------------------------------------------


def nvidia_smi(folder: Path, text: str) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "nvidia-smi").chmod(0o755)


ANSWERS = """case $1 in
*memory.used) printf '0, GPU-a, 00000000:3B:00.0, 4\\n1, GPU-b, 00000000:AF:00.0, 9\\n' ;;
*query-gpu*) printf '0, GPU-a, 0\\n1, GPU-b, [N/A]\\n' ;;
esac"""


def ask(tmp_path: Path, when: str = "before", seconds: float = 20.0, **directories: str) -> dict[str, Any]:
    asked = {**JOB, "when": when, "seconds": seconds, "since": 0.0, "free_mib": 1, "directories": directories}
    code = "import sys; sys.path.insert(0, sys.argv[1]); from gpuci_node import probe; probe.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, SCRIPTS],
        input=json.dumps(asked).encode(),
        stdout=subprocess.PIPE,
        env={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"},
        timeout=ENDLESS,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_nvidia_smi_is_asked(tmp_path: Path) -> None:
    nvidia_smi(tmp_path, ANSWERS)
    found = ask(tmp_path, scratch=str(tmp_path))
    assert (found["faults"], found["unchecked"], found["gpus"]) == ([], [], 2)
    assert ask(tmp_path, "after") == {"left": [], "xids": []}


def test_one_that_hangs_is_left_behind(tmp_path: Path) -> None:
    nvidia_smi(tmp_path, "exec sleep 600")
    found = ask(tmp_path, seconds=0.3)
    assert found["faults"] == []
    assert found["unchecked"] == ["memory (nvidia-smi did not end in time)"]


def test_a_disk_that_is_fit_keeps_nothing(tmp_path: Path) -> None:
    assert probe.disk_fault("scratch", str(tmp_path), 1) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "path", "free", "expected"),
    [
        ("scratch", "{}/gone", 1, "scratch {}/gone can't be written: No such file or directory"),
        ("shared folder", "/proc", 1, "shared folder /proc can't be written: No such file or directory"),
        ("scratch", "{}", 1 << 40, "scratch {} has "),
        ("shared folder", "{}", 1 << 40, ""),
    ],
    ids=["gone", "not to be written", "too little room", "room matters on scratch only"],
)
def test_disks(tmp_path: Path, name: str, path: str, free: int, expected: str) -> None:
    found = probe.disk_fault(name, path.format(tmp_path), free)
    assert found.startswith(expected.format(tmp_path))
    assert bool(found) == bool(expected)
