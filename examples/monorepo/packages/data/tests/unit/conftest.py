"""modes.yml sends this folder to the cpu pool: its tests must not see a device."""

import gpu_proof
import pytest


@pytest.fixture(autouse=True)
def _no_devices() -> None:
    gpu_proof.no_devices()
