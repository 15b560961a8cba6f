"""What the keeper makes of a starter's first word."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpuci_node import probe
from gpuci_node.supervisor.preparation import Preparation
from gpuci_node.supervisor.verdicts import Judged


class Desk:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.ended: list[Judged] = []

    def end(self, judged: Judged) -> None:
        self.ended.append(judged)

    def __getattr__(self, name: str) -> Any:
        return lambda *words, **more: None


@pytest.mark.parametrize(
    ("root", "devices", "refused"),
    [
        pytest.param(probe.root_of_files(), 0, False, id="no container: nothing can be left out"),
        pytest.param("mnt:[1]", 2, False, id="a container with both"),
        pytest.param("mnt:[1]", 1, True, id="a container with one of two"),
    ],
)
def test_gpus_are_missed_only_in_a_container(root: str, devices: int, refused: bool) -> None:
    desk = Desk()
    link = SimpleNamespace(said=None, met=lambda: None)
    job: dict[str, Any] = {"health": None, "setup": None, "link": None}
    preparation = Preparation(desk, job, link)  # type: ignore[arg-type]
    preparation.on_hello({"root": root, "devices": devices})
    preparation._count_gpus("outside", 2)
    assert [judged.verdict for judged in desk.ended] == (["config_error"] if refused else [])
