"""Where the private environment goes, and what set_up.py tells actions/cache of it."""

from __future__ import annotations

import subprocess
import sys
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
    stamp = environment.stamp_of(private.REQUIREMENTS)
    (made / environment.STAMP).write_text(f"{stamp}\n{sys.version_info[0]}.{sys.version_info[1]}\n")
    assert told() == {**first, "ready": "true"}
