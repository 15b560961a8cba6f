"""packages/kernels has a file of the same name: one session over both could not import them."""

import pytest
from nets.layers import Linear, Mlp


@pytest.mark.parametrize("inputs", [1, 2, 16])
@pytest.mark.parametrize("outputs", [1, 8])
def test_linear(inputs: int, outputs: int) -> None:
    assert len(Linear(inputs, outputs).forward([1.0] * inputs)) == outputs


def test_mlp_without_hidden_layer() -> None:
    assert Mlp(3, 2).parameters() == 6


def test_parameters_add_up() -> None:
    assert Mlp(3, 4, 2).parameters() == 20
