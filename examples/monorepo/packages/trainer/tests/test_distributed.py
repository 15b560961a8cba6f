import pytest
import torch
from gpu_work import run_kernel
from trainer.schedule import rows_per_device


def test_one_device() -> None:
    assert rows_per_device(8, 1) == 8


@pytest.mark.require_cuda_2gpu
class TestTwoDevices:
    def test_share(self) -> None:
        run_kernel(0.4)
        assert rows_per_device(8, 2) == 4

    def test_odd_batch(self) -> None:
        run_kernel(0.4)
        with pytest.raises(ValueError, match="does not divide"):
            rows_per_device(7, 2)


@pytest.mark.require_cuda_4gpu
def test_four_devices() -> None:
    run_kernel(0.2)
    assert rows_per_device(8, 4) == 2


@pytest.mark.require_cuda_8gpu
def test_whole_node() -> None:
    run_kernel(0.3)
    assert torch.cuda.current_device() == 0


@pytest.mark.require_cuda_8gpu
def test_one_row_each() -> None:
    assert rows_per_device(8, torch.cuda.device_count()) == 1
