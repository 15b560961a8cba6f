"""The tests that modes.yml brings back are GPU tests like all others."""

from typing import Iterator

import gpu_proof
import pytest


@pytest.fixture(autouse=True)
def _own_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    with gpu_proof.own_devices(request.node):
        yield
