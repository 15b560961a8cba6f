"""Which Python runs the tests: the order, and what is said of a bad choice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpuci import environment
from gpuci.errors import ConfigError
from gpuci.execution.local import python


def make_python(path: Path, *, has_pytest: bool) -> Path:
    """An interpreter that answers the probe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 9.2.0\nexit {0 if has_pytest else 1}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nothing_active(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setattr(environment, "own_pytest", lambda: Path("/own/python"))


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_the_active_environment_comes_before_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    make_python(tmp_path / "bin" / "python3", has_pytest=True)
    active = make_python(tmp_path / "env" / "bin" / "python", has_pytest=True)
    monkeypatch.setenv(variable, str(tmp_path / "env"))
    assert python.choose(None, tmp_path) == (str(active), f"the active environment ({variable})")


def test_an_environment_without_pytest_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_python(tmp_path / "env" / "bin" / "python", has_pytest=False)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    on_path = make_python(tmp_path / "bin" / "python3", has_pytest=True)
    assert python.choose(None, tmp_path) == (str(on_path), "python3 on PATH")


def test_without_any_gpuci_brings_its_own(tmp_path: Path) -> None:
    make_python(tmp_path / "bin" / "python3", has_pytest=False)
    chosen, because = python.choose(None, tmp_path)
    assert chosen == "/own/python"
    assert "no python3 in reach imports pytest" in because


def test_the_configured_python_is_taken_from_root_or_from_the_path(tmp_path: Path) -> None:
    below = make_python(tmp_path / "tools" / "python", has_pytest=True)
    named = make_python(tmp_path / "bin" / "python3.99", has_pytest=True)
    assert python.choose("tools/python", tmp_path) == (str(below), "node.python")
    assert python.choose("python3.99", tmp_path) == (str(named), "node.python")


@pytest.mark.parametrize("name", ["no-such-python", "tools/missing", "tools/bare"])
def test_a_configured_python_without_pytest_is_refused(tmp_path: Path, name: str) -> None:
    make_python(tmp_path / "tools" / "bare", has_pytest=False)
    with pytest.raises(ConfigError, match=f"node.python: {name} does not run pytest"):
        python.choose(name, tmp_path)


def test_a_module_of_the_tree_does_not_pose_as_pytest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pytest.py").write_text("__version__ = '1'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert python.choose(None, tmp_path)[0] == f"{sys.prefix}/bin/python"
