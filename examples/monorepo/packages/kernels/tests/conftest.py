"""Adds a mark that no reader of the source can see: a test of a whole ring needs all eight GPUs."""

from typing import Iterator

import gpu_proof
import pytest


def pytest_collection_modifyitems(items: "list[pytest.Item]") -> None:
    for item in items:
        if item.name.startswith("test_ring"):
            item.add_marker(pytest.mark.require_cuda_8gpu)


@pytest.fixture(autouse=True)
def _own_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    with gpu_proof.own_devices(request.node):
        yield
