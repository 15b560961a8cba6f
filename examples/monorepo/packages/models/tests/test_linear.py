from gpu_work import run_kernel
from model_contract import ModelContract
from nets.layers import Linear


class TestLinear(ModelContract):
    def make(self) -> Linear:
        return Linear(3, 2)

    def test_sum(self) -> None:
        run_kernel(0.2)
        assert Linear(3, 1).forward([1, 2, 3]) == [6]

    def test_scale(self) -> None:
        assert Linear(2, 2, scale=0.5).forward([2, 4]) == [3, 3]
