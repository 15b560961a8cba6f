import pytest
from gpu_work import run_kernel
from trainer.config import TrainConfig
from trainer.loop import Run
from trainer.schedule import warmup


@pytest.mark.parametrize(("step", "rate"), [(0, 0.25), (1, 0.5), (3, 1.0), (4, 1.0), (100, 1.0)])
def test_warmup(step: int, rate: float) -> None:
    assert warmup(step, peak=1.0, steps=4) == rate


@pytest.mark.slow_nightly
def test_full_run() -> None:
    run_kernel(0.3)
    assert Run(TrainConfig(steps=10_000)).train() == pytest.approx(0.0)


@pytest.mark.slow_nightly
@pytest.mark.require_cuda_2gpu
def test_full_run_on_two_devices() -> None:
    run_kernel(0.3)
    assert Run(TrainConfig(steps=10_000, rate=0.01)).train() == pytest.approx(0.0)
