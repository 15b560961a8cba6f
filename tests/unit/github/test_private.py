"""Where the private environment goes, and what set_up.py tells actions/cache of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runner_log import read_values

from gpuci import environment
from gpuci.github import private

CLONE = Path(__file__).resolve().parents[3]


def test_the_tool_cache_goes_first_then_the_jobs_directory_then_the_clone(tmp_path: Path) -> None:
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    cache.mkdir()
    temporary.mkdir()
    both = {"RUNNER_TOOL_CACHE": str(cache), "RUNNER_TEMP": str(temporary)}
    assert private.place(both) == (cache / "gpuci", private.key())
    assert private.place({**both, "RUNNER_TOOL_CACHE": "/nowhere"}) == (temporary / "gpuci", private.key())
    assert private.place({}) == (CLONE, ".venv")


SPOILED: list[Callable[[Path], object]] = [
    lambda base: base.write_text(""),
    lambda base: base.symlink_to(base / "nowhere"),
]


@pytest.mark.parametrize("spoil", SPOILED, ids=["a file", "a link to nothing"])
def test_what_is_no_directory_is_no_place(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    for name in ("shared", "temporary"):
        (tmp_path / name).mkdir()
    spoil(tmp_path / "shared/gpuci")
    environ = {"RUNNER_TOOL_CACHE": str(tmp_path / "shared"), "RUNNER_TEMP": str(tmp_path / "temporary")}
    assert private.place(environ) == (tmp_path / "temporary/gpuci", private.key())


def test_what_another_user_made_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runners of several users may share a tool cache, and what lies there is run with our token."""
    (tmp_path / "gpuci").mkdir(mode=0o777)
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "gpuci").stat().st_uid + 1)
    assert private.place({"RUNNER_TOOL_CACHE": str(tmp_path)}) == (CLONE, ".venv")


def test_the_key_changes_with_the_requirements_and_the_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [private.key()]
    assert private.key() == keys[0]
    monkeypatch.setattr(sys, "version", "3.99.0")
    keys.append(private.key())
    (tmp_path / "requirements.txt").write_text("other==1\n")
    monkeypatch.setattr(private, "REQUIREMENTS", tmp_path / "requirements.txt")
    keys.append(private.key())
    assert len(set(keys)) == 3


def test_set_up_tells_the_cache_where_and_whether_it_is_there_already(tmp_path: Path) -> None:
    def told() -> dict[str, str]:
        output = tmp_path / "output"
        output.unlink(missing_ok=True)
        subprocess.run(
            [sys.executable, "-I", CLONE / "scripts/set_up.py"],
            env={"PATH": "/usr/bin:/bin", "RUNNER_TOOL_CACHE": str(tmp_path), "GITHUB_OUTPUT": str(output)},
            check=True,
        )
        return read_values(output.read_text())

    first = told()
    assert first == {"path": str(tmp_path / "gpuci" / first["key"]), "key": first["key"], "ready": "false"}
    made = Path(first["path"])
    (made / "bin").mkdir(parents=True)
    (made / "bin/python").symlink_to(sys.executable)
    (made / "package.py").write_text("")
    environment.mark(made, environment.stamp_of(private.REQUIREMENTS))
    assert told() == {**first, "ready": "true"}
    (made / "package.py").unlink()  # the restoring was cancelled half-way
    assert told() == {**first, "ready": "false"}
