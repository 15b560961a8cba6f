"""The one file that the node's code is packed into."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpuci.errors import GpuciError
from gpuci.execution.node_package import build


def test_equal_sources_give_equal_bytes_and_a_program(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    done = subprocess.run(
        [sys.executable, "-I", str(tmp_path / "one"), "cook"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        "gpuci_node: unknown role 'cook' (keeper, slurm, starter, worker, health)\n",
    )


def test_no_place_for_it(tmp_path: Path) -> None:
    with pytest.raises(GpuciError, match=r"missing/node\.pyz can't be written: No such file"):
        build(tmp_path / "missing" / "node.pyz")
