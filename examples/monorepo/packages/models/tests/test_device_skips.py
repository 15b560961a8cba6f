"""Tests that say what they need by skipping. On a node with enough GPUs none of them may stay skipped."""

import pytest
import torch
from gpu_work import run_kernel

two_devices = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs 2 GPUs")


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs 2 GPUs")
def test_condition_in_place() -> None:
    run_kernel(0.4)
    assert torch.cuda.device_count() >= 2


@two_devices
def test_condition_behind_a_name() -> None:
    run_kernel(0.4)
    assert torch.cuda.device_count() >= 2


def test_decides_in_its_body() -> None:
    if torch.cuda.device_count() < 4:
        pytest.skip("needs 4 GPUs")
    run_kernel(0.2)
    assert torch.cuda.device_count() >= 4


@pytest.mark.skip(reason="the driver of this device is not supported any more")
def test_old_device() -> None:
    raise AssertionError("never runs")


def test_one_device_is_enough() -> None:
    assert torch.cuda.device_count() >= 1
