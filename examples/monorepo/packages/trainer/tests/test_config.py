"""Needs no GPU: the mark sends the file to the cpu pool. packages/serving has a file of the same name."""

import pytest
import torch
from trainer.config import TrainConfig, read

pytestmark = pytest.mark.cpu


def test_defaults() -> None:
    assert read({}) == TrainConfig()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("steps", "3", 3), ("batch", "64", 64), ("rate", "1e-3", 0.001)],
    ids=["steps", "batch", "rate"],
)
def test_reads_text(name: str, text: str, value: float) -> None:
    assert getattr(read({name: text}), name) == value


def test_unknown_setting() -> None:
    with pytest.raises(ValueError, match="unknown settings: stesp"):
        read({"stesp": "3"})


def test_reading_does_not_touch_a_device() -> None:
    before = torch.cuda.is_initialized()
    read({"steps": "1"})
    assert torch.cuda.is_initialized() == before
