from pathlib import Path

import pytest
from gpu_work import run_kernel
from trainer.config import TrainConfig
from trainer.loop import Run


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ten steps, made once for the file."""
    run_kernel(0.1)
    run = Run(TrainConfig(steps=10))
    run.train()
    path = tmp_path_factory.mktemp("runs") / "run.json"
    run.save(path)
    return path


class TestResume:
    def test_step_is_restored(self, checkpoint: Path) -> None:
        run = Run(TrainConfig(steps=10))
        run.load(checkpoint)
        assert run.step == 10

    def test_resumed_run_ends_like_an_unbroken_one(self, checkpoint: Path) -> None:
        run = Run(TrainConfig(steps=20))
        run.load(checkpoint)
        assert run.train() == Run(TrainConfig(steps=20)).train()

    def test_finished_run_makes_no_step(self, checkpoint: Path) -> None:
        run = Run(TrainConfig(steps=5))
        run.load(checkpoint)
        run.train()
        assert run.step == 10


def test_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"x": 1.0')
    with pytest.raises(ValueError, match="delimiter"):
        Run(TrainConfig()).load(path)


@pytest.mark.sequential
def test_whole_node_is_saved(checkpoint: Path) -> None:
    """A mark of the single test: it runs alone on its node, the rest of the file does not."""
    run_kernel(0.2)
    assert checkpoint.stat().st_size > 0
