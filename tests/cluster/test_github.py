"""gpu.yml and the root action on the bed: a scenario of tests/e2e/run each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bed.handle import Bed
from tests.e2e.harness import requests, scenarios, scenarios_doors, scenarios_image
from tests.e2e.harness.product import Product, copy_product
from tests.e2e.harness.scenario import SCENARIOS, act_out

assert all((scenarios, scenarios_doors, scenarios_image))  # they fill SCENARIOS


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    """One copy for all, and one HOME beside it: gpuci's own environment is made once."""
    with tempfile.TemporaryDirectory(prefix="g-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)  # the steps are the bed's user's
        yield copy_product(Path(directory) / "product")


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_comes_out_as_it_should_and_asks_github_what_it_may(
    bed: Bed, product: Product, name: str
) -> None:
    asked = act_out(SCENARIOS[name], bed, product, product.directory.parent / name)
    assert asked == requests.expected()[name]
