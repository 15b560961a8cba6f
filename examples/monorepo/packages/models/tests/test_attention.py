import pytest
from gpu_work import run_kernel
from nets.attention import attention, softmax, split_heads


@pytest.mark.parametrize("length", [1, 3, 8])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_equal_scores_give_the_mean(heads: int, length: int) -> None:
    for columns in split_heads(8, heads):
        values = [float(column) for column in columns] * length
        assert attention([0.0] * len(values), values) == pytest.approx(sum(columns) / len(columns))


def test_large_scores_do_not_overflow() -> None:
    run_kernel(0.3)
    assert softmax([1e4, 0.0]) == [1.0, 0.0]


@pytest.mark.xfail(raises=ValueError, reason="an empty row has no softmax")
def test_empty_row() -> None:
    softmax([])


@pytest.mark.xfail(reason="odd widths were not supported once")
def test_odd_width() -> None:
    assert len(split_heads(9, 3)) == 3
