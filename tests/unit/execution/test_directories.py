"""Where a run leaves its files, and what is never touched."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpuci.errors import ConfigError, GpuciError
from gpuci.execution.directories import (
    keep_newest,
    new_directory,
    read_document,
    write_document,
)


def test_by_default_below_root_and_hidden_from_git(tmp_path: Path) -> None:
    out = new_directory(tmp_path, "run-1", None)
    assert out == tmp_path / ".gpuci" / "runs" / "run-1"
    assert (tmp_path / ".gpuci" / ".gitignore").read_text() == "*\n"


def test_a_tree_that_cannot_be_written_gets_a_temporary_directory(tmp_path: Path) -> None:
    (tmp_path / ".gpuci").write_text("a file in the way")
    out = new_directory(tmp_path, "run-1", None)
    assert out.is_dir()
    assert tmp_path not in out.parents
    out.rmdir()


def test_an_asked_directory_is_made(tmp_path: Path) -> None:
    assert new_directory(tmp_path, "run-1", str(tmp_path / "a" / "b")).is_dir()


def test_results_of_another_run_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not empty"):
        new_directory(tmp_path, "run-1", str(tmp_path))


def test_an_asked_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file/out"):
        new_directory(tmp_path, "run-1", str(tmp_path / "file" / "out"))


def finished(runs: Path, name: str, age: int) -> None:
    (runs / name).mkdir(parents=True)
    report = runs / name / "report.json"
    report.write_text("{}")
    os.utime(report, (1_000_000 - age, 1_000_000 - age))


def test_only_old_finished_runs_are_cleaned(tmp_path: Path) -> None:
    for age in range(5):
        finished(tmp_path, f"run-{age}", age)
    (tmp_path / "running").mkdir()
    keep_newest(tmp_path, count=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-0", "run-1", "running"]
    keep_newest(tmp_path / "missing")


@pytest.mark.parametrize(
    ("holds", "age", "stays"),
    [
        (["plan.json"], 7200, False),
        ([], 7200, False),
        (["plan.json"], 60, True),
        (["plan.json", "shard-1/"], 7200, True),
        (["plan.json", "report.json"], 7200, True),
    ],
    ids=["only a plan", "empty", "young", "a shard", "finished"],
)
def test_what_never_began_is_cleaned(tmp_path: Path, holds: list[str], age: int, stays: bool) -> None:
    path = tmp_path / "run"
    path.mkdir()
    for name in holds:
        (path / name).mkdir() if name.endswith("/") else (path / name).touch()
    os.utime(path, (time.time() - age, time.time() - age))
    keep_newest(tmp_path)
    assert path.exists() == stays


def test_documents_round_trip_and_leave_no_half(tmp_path: Path) -> None:
    write_document(tmp_path / "a.json", {"x": 1})
    assert read_document(tmp_path / "a.json", then="") == {"x": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_document_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(GpuciError, match="can't be written") as caught:
        write_document(tmp_path / "missing" / "a.json", {})
    assert caught.value.exit_code == 4
    assert "--out" in caught.value.then


@pytest.mark.parametrize(("content", "says"), [(None, "can't be read"), ("{", "no JSON document")])
def test_a_document_that_is_none(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=says) as caught:
        read_document(path, then="make one")
    assert caught.value.then == "make one"
