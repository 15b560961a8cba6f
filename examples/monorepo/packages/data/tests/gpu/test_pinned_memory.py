import faults
import pytest
import torch
from dataloading.batching import batches, pad
from gpu_work import run_kernel


def test_a_device_is_there() -> None:
    assert torch.cuda.is_available()


@pytest.mark.parametrize("size", [2, 4])
def test_copy(size: int) -> None:
    run_kernel(0.05)
    assert [row for batch in batches([1, 2, 3], size) for row in batch] == [1, 2, 3]


def test_copy_overlaps_with_compute() -> None:
    """The switch `fail` breaks this one; `-x` of pytest.ini must not cost the tests below."""
    run_kernel(0.2)
    assert not faults.planted("fail"), "planted failure"


def test_padding_reaches_the_device() -> None:
    assert pad([1], 4) == [1, 0, 0, 0]


def test_copy_of_nothing() -> None:
    assert list(batches([], 4)) == []


class TestRing:
    def test_wraps_around(self) -> None:
        run_kernel(0.05)
        assert [position % 3 for position in range(5)] == [0, 1, 2, 0, 1]
