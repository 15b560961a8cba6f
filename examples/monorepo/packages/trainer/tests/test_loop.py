import faults
import pytest
from gpu_work import run_kernel
from trainer.config import TrainConfig
from trainer.loop import Run, active_runs


def test_loss_falls() -> None:
    run_kernel(0.2)
    assert Run(TrainConfig(steps=20)).train() < Run(TrainConfig(steps=2)).train()


def test_no_steps_change_nothing() -> None:
    assert Run(TrainConfig(steps=0)).train() == 9.0


def test_run_is_active_while_it_lasts() -> None:
    with Run(TrainConfig()) as run:
        assert active_runs == [run]


def test_interrupted_run() -> None:
    """The switch `teardown` leaves the run behind: the test passes, its teardown fails."""
    run = Run(TrainConfig())
    run.__enter__()
    if not faults.planted("teardown"):
        run.__exit__()
    assert run.step == 0


def test_starts_without_other_runs() -> None:
    assert active_runs == []


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_converges(rate: float) -> None:
    assert Run(TrainConfig(steps=100, rate=rate)).train() == pytest.approx(0.0, abs=1e-9)
