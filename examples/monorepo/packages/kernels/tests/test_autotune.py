"""One test of this file asks for a process of its own, the others share theirs."""

import pytest
from gpu_work import run_kernel
from kernels import registry

m = pytest.mark
one_gpu = m.require_cuda_1gpu


def fastest(seconds: "dict[str, float]") -> str:
    return min(seconds, key=lambda name: (seconds[name], name))


def test_fastest_wins() -> None:
    assert fastest({"a": 2.0, "b": 1.0}) == "b"


def test_ties_go_by_name() -> None:
    assert fastest({"b": 1.0, "a": 1.0}) == "a"


@m.isolated
def test_tuning_starts_from_an_open_registry() -> None:
    run_kernel(0.1)
    assert not registry.is_frozen()


@one_gpu
def test_measure() -> None:
    run_kernel(0.2)
    assert fastest({"only": 0.2}) == "only"


@one_gpu
def test_no_candidates() -> None:
    with pytest.raises(ValueError, match="empty"):
        fastest({})
