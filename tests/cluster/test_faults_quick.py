"""Eight quick rows of the fault table, once each; `tests/cluster/faults` has them all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.bed.handle import Bed
from tests.cluster.faulting import main, mutants, table
from tests.cluster.faulting.rows import ROWS
from tests.cluster.faulting.runner import Product
from tests.cluster.faulting.session import Session, Task

QUICK = (
    ("master-killed", ""),
    ("session-killed", ""),
    ("cancel-in-delivery", ""),
    ("runner-killed", "takeover"),
    ("two-runners", "at once"),
    ("scancelled", ""),
    ("sigterm", ""),
    ("journal-torn", ""),
)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    return Product(mutants.copy(tmp_path_factory.mktemp("product")), sys.executable, "now")


@pytest.mark.parametrize(
    ("name", "variant"), QUICK, ids=[f"{name} {variant}".strip() for name, variant in QUICK]
)
def test_a_fault_ends_as_expected(
    running_bed: Bed, product: Product, tmp_path: Path, name: str, variant: str
) -> None:
    results: list[dict[str, Any]] = []
    session = Session(running_bed.place, product, tmp_path, lambda _result: True, results.append)
    session.run([Task(ROWS[name], 1, variant)], jobs=1)
    assert table.differences(results[0], main.expected()) == [], results[0]
