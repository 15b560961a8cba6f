"""One file, three needs: it becomes a unit for one, for two and for four GPUs."""

import pytest
import torch
from gpu_work import run_kernel
from nets.parallel import gather, scatter

ROWS = list(range(10))


def test_one_device_gets_everything() -> None:
    run_kernel(0.2)
    assert scatter(ROWS, 1) == [ROWS]


def test_first_parts_are_longer() -> None:
    assert [len(part) for part in scatter(ROWS, 3)] == [4, 3, 3]


@pytest.mark.gpus_2
def test_two_devices() -> None:
    run_kernel(0.4)
    assert gather(scatter(ROWS, torch.cuda.device_count())) == ROWS


@pytest.mark.gpus_2
def test_peer_copy() -> None:
    run_kernel(0.2)
    assert torch.cuda.device_count() >= 2


@pytest.mark.require_cuda_2gpu
def test_half_each() -> None:
    run_kernel(0.4)
    assert [len(part) for part in scatter(ROWS, 2)] == [5, 5]


@pytest.mark.require_cuda_4gpu
class TestFourDevices:
    def test_all_parts(self) -> None:
        run_kernel(0.2)
        assert len(scatter(ROWS, 4)) == 4

    def test_devices_are_there(self) -> None:
        assert torch.cuda.device_count() >= 4
