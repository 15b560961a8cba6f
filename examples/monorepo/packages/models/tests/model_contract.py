"""What every network keeps. Not collected itself: test classes inherit from it."""

from typing import Any

import pytest
import torch


class ModelContract:
    """Subclasses say how to make the model; `make` returns one with inputs, outputs, forward, parameters."""

    def make(self) -> Any:
        raise NotImplementedError

    def test_output_size(self) -> None:
        model = self.make()
        assert len(model.forward([1.0] * model.inputs)) == model.outputs

    def test_zero_stays_zero(self) -> None:
        model = self.make()
        assert set(model.forward([0.0] * model.inputs)) == {0.0}

    def test_wrong_size_is_refused(self) -> None:
        model = self.make()
        with pytest.raises(ValueError, match="expected"):
            model.forward([1.0] * (model.inputs + 1))

    def test_fits_on_one_device(self) -> None:
        assert torch.cuda.is_available()
        assert self.make().parameters() < 1000
