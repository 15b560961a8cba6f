"""Layers: a forward pass on a vector of floats."""

from __future__ import annotations

from typing import Sequence

Vector = Sequence[float]


class Linear:
    """y = W x with W[i][j] = scale, for vectors of `inputs` and `outputs` numbers."""

    def __init__(self, inputs: int, outputs: int, scale: float = 1.0) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.scale = scale

    def forward(self, x: Vector) -> list[float]:
        """Return `outputs` numbers; raises ValueError unless x has `inputs` numbers."""
        if len(x) != self.inputs:
            raise ValueError(f"expected {self.inputs} numbers, got {len(x)}")
        return [self.scale * sum(x)] * self.outputs

    def parameters(self) -> int:
        return self.inputs * self.outputs


class Mlp:
    """Linear layers with a ReLU between them."""

    def __init__(self, *sizes: int) -> None:
        self.layers = [Linear(a, b, scale=0.5) for a, b in zip(sizes, sizes[1:])]
        self.inputs = sizes[0]
        self.outputs = sizes[-1]

    def forward(self, x: Vector) -> list[float]:
        """Return `outputs` numbers; raises ValueError unless x has `inputs` numbers."""
        values = list(x)
        for layer in self.layers[:-1]:
            values = [max(0.0, value) for value in layer.forward(values)]
        return self.layers[-1].forward(values)

    def parameters(self) -> int:
        return sum(layer.parameters() for layer in self.layers)
