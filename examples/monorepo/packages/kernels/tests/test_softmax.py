import os
import signal

import faults
import pytest
from gpu_work import run_kernel
from kernels.reduce import online_softmax


class TestOnlineSoftmax:
    def test_sums_to_one(self) -> None:
        assert sum(online_softmax([1.0, 2.0, 3.0])) == pytest.approx(1.0)

    def test_keeps_the_order(self) -> None:
        weights = online_softmax([1.0, 3.0, 2.0])
        assert weights[0] < weights[2] < weights[1]

    def test_misaligned_rows(self) -> None:
        """The switch `crash` ends the process here."""
        run_kernel(0.1)
        if faults.planted("crash"):
            os.kill(os.getpid(), signal.SIGSEGV)
        assert len(online_softmax([1.0] * 7)) == 7

    def test_large_values(self) -> None:
        assert online_softmax([1e4, 0.0]) == [1.0, 0.0]

    def test_shift_changes_nothing(self) -> None:
        assert online_softmax([1.0, 2.0]) == pytest.approx(online_softmax([101.0, 102.0]))


@pytest.mark.parametrize("length", [1, 5, 64])
def test_equal_values(length: int) -> None:
    assert online_softmax([2.0] * length) == pytest.approx([1 / length] * length)
