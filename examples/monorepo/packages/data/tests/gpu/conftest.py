"""The tests of this folder copy to a device, and prove that it is their own."""

from typing import Iterator

import gpu_proof
import pytest


@pytest.fixture(autouse=True)
def _own_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    with gpu_proof.own_devices(request.node):
        yield
