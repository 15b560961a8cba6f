"""packages/models has a file of the same name: one session over both could not import them."""

import pytest
from kernels.layout import broadcast


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ((), (), ()),
        ((3,), (), (3,)),
        ((2, 3), (3,), (2, 3)),
        ((2, 1), (1, 3), (2, 3)),
        ((1, 1, 4), (5, 1), (1, 5, 4)),
    ],
    ids=["scalars", "scalar", "row", "both", "ranks"],
)
def test_broadcast(left: "tuple[int, ...]", right: "tuple[int, ...]", common: "tuple[int, ...]") -> None:
    assert broadcast(left, right) == common


def test_order_does_not_matter() -> None:
    assert broadcast((2, 1), (3,)) == broadcast((3,), (2, 1))


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        broadcast((2,), (3,))
