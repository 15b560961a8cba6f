"""The server's port is fixed, so only one of these tests may run on a node at a time."""

import pytest
import torch
from gpu_work import run_kernel
from serving.queue import Server


@pytest.mark.sequential
def test_fixed_port() -> None:
    run_kernel(0.2)
    assert torch.cuda.device_count() == 8


@pytest.mark.sequential
def test_port_is_free_again() -> None:
    assert Server().open


def test_free_port() -> None:
    assert Server().answer(1) == 2
