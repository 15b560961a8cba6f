"""A stand-in for PyTorch, so that the example runs where there is no GPU: device numbers, nothing else."""

from torch import cuda

__all__ = ["cuda"]
