import pytest
from dataloading.batching import batches, pad

ROWS = list(range(8))


@pytest.mark.parametrize("drop_last", [False, True], ids=["keep", "drop"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_batches(size: int, drop_last: bool) -> None:
    seen = [row for batch in batches(ROWS, size, drop_last=drop_last) for row in batch]
    kept = len(ROWS) - len(ROWS) % size if drop_last else len(ROWS)
    assert seen == ROWS[:kept]


def test_batch_size_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        list(batches(ROWS, 0))


@pytest.mark.parametrize("length", [3, 4, 7, 16])
def test_pad(length: int) -> None:
    row = pad([7, 8, 9], length)
    assert (len(row), row[:3], sum(row)) == (length, [7, 8, 9], 24)


def test_pad_with_another_value() -> None:
    assert pad([1], 3, value=-1) == [1, -1, -1]


def test_pad_does_not_cut() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        pad([1, 2, 3], 2)
