"""The switch `collection` makes this file fail while it is imported: none of its tests is seen."""

import faults
import pytest
from gpu_work import run_kernel
from serving.queue import micro_batches

if faults.planted("collection"):
    raise RuntimeError("planted collection error")


@pytest.mark.parametrize("limit", [4, 8, 16])
def test_no_batch_is_larger_than_the_limit(limit: int) -> None:
    assert all(sum(group) <= limit for group in micro_batches([1, 2, 3, 4] * 4, limit))


def test_order_is_kept() -> None:
    run_kernel(0.2)
    assert micro_batches([3, 1, 2], 4) == [[3, 1], [2]]


def test_no_requests() -> None:
    assert micro_batches([], 4) == []


def test_large_request() -> None:
    with pytest.raises(ValueError, match="larger than"):
        micro_batches([5], 4)
