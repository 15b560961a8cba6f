import pytest
from gpu_work import run_kernel
from kernels import registry


def test_registry_is_open() -> None:
    """Fails in a process in which test_registry_frozen.py ran before."""
    assert not registry.is_frozen()


def test_lookup() -> None:
    run_kernel(0.1)
    registry.register("add", sum)
    assert registry.lookup("add") is sum


def test_last_one_wins() -> None:
    registry.register("add", max)
    registry.register("add", min)
    assert registry.lookup("add") is min


def test_unknown_kernel() -> None:
    with pytest.raises(KeyError):
        registry.lookup("no such kernel")
