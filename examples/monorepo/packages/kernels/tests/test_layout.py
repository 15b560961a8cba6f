import pytest
from kernels.layout import offset, strides


@pytest.mark.parametrize("last", [1, 3, 8])
@pytest.mark.parametrize("first", [1, 2, 5])
def test_strides(first: int, last: int) -> None:
    assert strides((first, 4, last)) == (4 * last, last, 1)


def test_last_element() -> None:
    assert offset((2, 3, 4), (1, 2, 3)) == 23


def test_outside() -> None:
    with pytest.raises(IndexError, match="outside"):
        offset((2, 3), (1, 3))
