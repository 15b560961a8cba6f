"""What the conftest relies on: the worker's number is its device, and below the number of workers."""

import os

import pytest
import torch
from gpu_work import run_kernel


@pytest.fixture
def worker() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[len("gw") :])


def test_number_is_the_device(worker: int) -> None:
    run_kernel(0.2)
    assert torch.cuda.current_device() == worker


def test_number_is_below_the_count(worker: int) -> None:
    assert worker < int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def test_other_devices_stay_visible(worker: int) -> None:
    assert torch.cuda.device_count() > worker
