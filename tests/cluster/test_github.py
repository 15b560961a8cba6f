"""gpu.yml and the root action on the bed: a scenario of tests/e2e/run each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bed.handle import Bed
from tests.e2e.harness import requests, several
from tests.e2e.harness.all_scenarios import SCENARIOS
from tests.e2e.harness.scenario import act_out
from tests.e2e.harness.stage import prepare


@pytest.fixture(scope="module")
def outcomes(running_bed: Bed, request: pytest.FixtureRequest) -> Iterator[several.Outcomes]:
    """All that are to be tested, under way. One copy of the product for all."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    wanted = [str(item.callspec.params["name"]) for item in items if item.path == request.path]
    with tempfile.TemporaryDirectory(prefix="g-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)  # the steps are the bed's user's
        product = prepare(Path(directory))
        begun = several.begin(
            wanted, lambda one: act_out(one, Bed(running_bed.place), product, Path(directory) / one.name)
        )
        yield begun
        several.end(begun)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_comes_out_as_it_should_and_asks_github_what_it_may(
    outcomes: several.Outcomes, name: str
) -> None:
    assert outcomes[name].result() == requests.expected()[name]
