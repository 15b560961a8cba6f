"""Needs a library that nobody has: the module is skipped as a whole, and counts once."""

import pytest

fused = pytest.importorskip("gpuci_example_fused_kernels")


@pytest.mark.parametrize("width", [8, 16])
def test_fused_linear(width: int) -> None:
    assert fused.linear(width)


def test_fused_attention() -> None:
    assert fused.attention()
