"""modes.yml brings the whole file back."""

import pytest
from gpu_work import run_kernel
from oldapi import read_header, upgrade


def test_header() -> None:
    assert read_header("oldapi 1.4") == (1, 4)


def test_other_header() -> None:
    with pytest.raises(ValueError, match="not a checkpoint"):
        read_header("newapi 1.4")


def test_step_is_renamed() -> None:
    run_kernel(0.1)
    assert upgrade({"itr": 3}) == {"step": 3}


def test_other_keys_stay() -> None:
    assert upgrade({"seed": 3}) == {"seed": 3}
