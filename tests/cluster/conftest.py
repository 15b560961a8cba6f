"""The bed that `scripts/test --cluster` brings up, or one that runs already (GPUCI_CLUSTER)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bed.handle import Bed
from tests.cluster.bed.place import Place


@pytest.fixture(scope="session")
def running_bed() -> Bed:
    """The bed, or a skip that says why there is none."""
    directory = os.environ.get("GPUCI_CLUSTER")
    if not directory:
        pytest.skip(os.environ.get("GPUCI_NO_CLUSTER", "needs --cluster"))
    return Bed(Place(Path(directory)))


@pytest.fixture
def bed(running_bed: Bed) -> Iterator[Bed]:
    """The bed; what the test changed through it is put right afterwards."""
    yield running_bed
    running_bed.heal()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short one: ssh has its sockets below it, and pytest-xdist makes paths too long (unix(7))."""
    with tempfile.TemporaryDirectory(prefix="g-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
