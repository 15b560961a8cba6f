"""Chooses the device by worker number, as conftests written for pytest-xdist do.

gpuci sees that and leaves all devices visible here (`gpu-isolation: worker-index`).
"""

import os
from typing import Iterator

import gpu_proof
import pytest
import torch
from trainer.loop import active_runs


@pytest.fixture(autouse=True)
def own_device(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("cpu"):
        return
    gpu_proof.own_worker()
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[len("gw") :])
    if torch.cuda.device_count() <= number:
        pytest.skip(f"worker {number} has no GPU of its own")
    torch.cuda.set_device(number)


@pytest.fixture(autouse=True)
def _proof(request: pytest.FixtureRequest, own_device: None) -> Iterator[None]:
    with gpu_proof.own_devices(request.node, by_worker=True):
        yield


@pytest.fixture(autouse=True)
def _no_run_is_left() -> Iterator[None]:
    yield
    left = len(active_runs)
    active_runs.clear()
    assert not left, f"the test left {left} run(s) behind"
