"""The kernels of this process. Freezing can't be undone."""

from __future__ import annotations

from typing import Callable

_kernels: dict[str, Callable[..., object]] = {}
_frozen = False


def register(name: str, kernel: Callable[..., object]) -> None:
    """Add a kernel; raises RuntimeError once the registry is frozen."""
    if _frozen:
        raise RuntimeError(f"the registry is frozen, {name} comes too late")
    _kernels[name] = kernel


def lookup(name: str) -> Callable[..., object]:
    """Return a kernel; raises KeyError."""
    return _kernels[name]


def freeze() -> None:
    global _frozen
    _frozen = True


def is_frozen() -> bool:
    return _frozen
