import pytest
from gpu_work import run_kernel
from kernels.reduce import tree_sum


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 100])
def test_tree_sum(count: int) -> None:
    assert tree_sum(range(count)) == sum(range(count))


@pytest.mark.gpu
def test_order_is_fixed() -> None:
    run_kernel(0.3)
    values = [0.1 * number for number in range(50)]
    assert tree_sum(values) == tree_sum(tuple(values))


def test_small_values_survive() -> None:
    assert tree_sum([1e16, -1e16, 1.0, 1.0]) == 2.0
