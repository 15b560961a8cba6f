from gpu_work import run_kernel
from model_contract import ModelContract
from nets.layers import Mlp


class TestMlp(ModelContract):
    def make(self) -> Mlp:
        return Mlp(4, 3, 2)


class TestDeepMlp(TestMlp):
    def make(self) -> Mlp:
        run_kernel(0.05)
        return Mlp(4, 4, 4, 4, 1)


def test_relu_stops_negative_values() -> None:
    assert Mlp(1, 2, 1).forward([-1.0]) == [0.0]
