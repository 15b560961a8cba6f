"""REST and RPC tests can't share a session: both servers want the one event loop of a process."""

from typing import Iterator

import gpu_proof
import pytest


def pytest_collection_modifyitems(items: "list[pytest.Item]") -> None:
    folders = {item.path.parent.name for item in items}
    if {"rest", "rpc"} <= folders:
        pytest.exit("run tests/rest and tests/rpc in two sessions", returncode=3)


@pytest.fixture(autouse=True)
def _own_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    with gpu_proof.own_devices(request.node):
        yield
