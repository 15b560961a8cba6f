"""A job document made for any node, completed on one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpuci_node.supervisor.allocation import Here, complete, contained, devices, fault

HERE = Here("host7", "/inside/python", 1000.0)
JOB: dict[str, Any] = {
    "python": ["sh", "/jobs/x/job.sh", "enter"],
    "lifeline": True,
    "link": None,
    "deadline_seconds": None,
    "lease": {"path": "/jobs/x/lease", "seconds": 300.0},
    "paths": {"root": None, "out": "/jobs/x/out", "scratch": None},
    "node": {"name": None, "gpus": (), "workers_per_gpu": 1, "cpu_workers": 0, "expect_gpus": 2},
    "settings": {"pythonpath": ["src", "/opt/lib"]},
}
ENVIRON = {"GPUCI_SCRATCH": "/s", "SLURMD_NODENAME": "gpu001", "CUDA_VISIBLE_DEVICES": "0,1"}


def completed(**environ: str) -> dict[str, Any]:
    return complete(copy.deepcopy(JOB), {**ENVIRON, **environ}, HERE)


def test_what_only_the_node_knows_is_filled_in() -> None:
    before = copy.deepcopy(JOB)
    job = complete(JOB, ENVIRON, HERE)
    assert before == JOB
    assert job["node"] == {**JOB["node"], "name": "gpu001", "gpus": ["0", "1"]}
    assert job["paths"] == {"root": "/s/tree", "out": "/jobs/x/out", "scratch": "/s/tmp/processes"}
    assert job["settings"]["pythonpath"] == ["/s/tree/src", "/opt/lib"]
    assert job["link"] == "/s/tmp/link"
    assert (job["python"], job["lease"]) == (JOB["python"], JOB["lease"])


def test_a_tree_in_the_container_is_where_the_container_has_it() -> None:
    job = complete({**JOB, "paths": {**JOB["paths"], "root": "/workspace"}}, ENVIRON, HERE)
    assert job["paths"]["root"] == "/workspace"
    assert job["settings"]["pythonpath"][0] == "/workspace/src"


def test_inside_the_container_the_keeper_starts_its_own_python_and_sees_no_lease() -> None:
    job = completed(GPUCI_INSIDE="1")
    assert (job["python"], job["lease"]) == (["/inside/python"], None)


def test_without_slurm_the_host_is_the_node() -> None:
    assert completed(SLURMD_NODENAME="")["node"]["name"] == "host7"


def test_no_scratch_is_no_job() -> None:
    with pytest.raises(KeyError, match="GPUCI_SCRATCH"):
        complete(JOB, {}, HERE)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, ["0", "1"]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-a, GPU-b"}, ["GPU-a", "GPU-b"]),
        ({"CUDA_VISIBLE_DEVICES": "", "SLURM_JOB_GPUS": "4,5"}, ["4", "5"]),
        ({"SLURM_STEP_GPUS": "6,7"}, ["6", "7"]),
        ({"GPU_DEVICE_ORDINAL": "0"}, ["0"]),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "4,5"}, ["0", "1"]),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, []),
        ({"CUDA_VISIBLE_DEVICES": "3,3,"}, ["3"]),
        ({}, []),
    ],
    ids=str,
)
def test_the_devices_of_an_allocation(environ: dict[str, str], expected: list[str]) -> None:
    assert devices(environ) == expected


@pytest.mark.parametrize(
    ("gpus", "kept", "expected"),
    [
        ("0,1", ["0", "1"], ""),
        ("0,1,2", ["0", "1"], ""),
        ("0", ["0"], "Slurm gave this job 1 of 2 GPUs"),
        ("", [], "Slurm gave this job 0 of 2 GPUs"),
    ],
    ids=["as asked for", "a whole node for a part", "fewer", "none"],
)
def test_devices_are_counted(gpus: str, kept: list[str], expected: str) -> None:
    job = completed(CUDA_VISIBLE_DEVICES=gpus)
    assert job["node"]["gpus"] == kept
    assert fault(job) == expected


@pytest.mark.parametrize(
    ("own", "end", "expected"),
    [
        (None, "", None),
        (50.0, "", 50.0),
        (None, "1600", 570.0),
        (50.0, "1600", 50.0),
        (900.0, "1600", 570.0),
        (None, "900", 1.0),
        (None, "UNLIMITED", None),
    ],
    ids=["none", "its own", "Slurm's", "its own first", "Slurm's first", "over already", "no number"],
)
def test_the_deadline_is_the_earlier_of_two(own: float | None, end: str, expected: float | None) -> None:
    job = complete({**JOB, "deadline_seconds": own}, {**ENVIRON, "SLURM_JOB_END_TIME": end}, HERE)
    assert job["deadline_seconds"] == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"GPUCI_RUNTIME": "podman"}, True),
        ({"GPUCI_RUNTIME": "podman", "GPUCI_INSIDE": "1"}, False),
        ({"GPUCI_RUNTIME": "none"}, False),
        ({}, False),
    ],
    ids=["below the keeper", "around it", "none", "no Slurm job"],
)
def test_where_the_containers_runtime_is(environ: dict[str, str], expected: bool) -> None:
    assert contained(environ) is expected
