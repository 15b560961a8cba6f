"""Each test sees the devices of its slot only (`gpu-isolation: mask`), and proves it."""

from typing import Iterator

import gpu_proof
import pytest


@pytest.fixture(autouse=True)
def _own_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    with gpu_proof.own_devices(request.node):
        yield
