"""Reading: files on demand inside the root, and many over worker processes."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from gpuci.errors import GpuciError
from gpuci.source.parse import MAX_BYTES
from gpuci.source.read import MIN_FILES_FOR_WORKERS, SourceTree, facts_of, read_file, spread, workers_for


def _double(task: int) -> tuple[int, int]:
    return task * 2, os.getpid()


def _nothing() -> None:
    """No preparation."""


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_come_in_the_order_of_the_tasks(workers: int) -> None:
    """From this process alone, or from others."""
    answers = list(spread(_double, range(50), workers, partial(_nothing)))
    assert [answer for answer, _ in answers] == [task * 2 for task in range(50)]
    assert (os.getpid() in {pid for _, pid in answers}) == (workers == 1)


def _die(task: int) -> int:
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def test_a_killed_worker_is_an_error() -> None:
    """As when memory runs out: said at once, never waited for."""
    with pytest.raises(GpuciError, match="has died"):
        list(spread(_die, range(50), 2, partial(_nothing)))


@pytest.mark.parametrize(
    ("files", "jobs", "expected"),
    [(MIN_FILES_FOR_WORKERS - 1, 8, 1), (MIN_FILES_FOR_WORKERS, 3, 3), (10_000, 0, 1)],
    ids=["few files", "as asked", "at least one"],
)
def test_number_of_workers(files: int, jobs: int, expected: int) -> None:
    """Workers only where they pay."""
    assert workers_for(files, jobs) == expected


def test_read_file_reads_all_of_it(tmp_path: Path) -> None:
    """Over several blocks, and not much more than the limit."""
    content = os.urandom(200_000)
    (tmp_path / "a").write_bytes(content)
    assert read_file(str(tmp_path / "a")) == content
    with (tmp_path / "b").open("wb") as stream:
        stream.truncate(10 * MAX_BYTES)
    assert MAX_BYTES < len(read_file(str(tmp_path / "b"))) < 2 * MAX_BYTES


def test_a_file_that_cannot_be_read_has_an_error(tmp_path: Path) -> None:
    """Gone, or a directory."""
    assert facts_of(str(tmp_path / "gone.py")).error == (1, "No such file or directory")
    assert facts_of(str(tmp_path)).error == (1, "Is a directory")


def test_the_tree_reads_only_what_lies_inside(tmp_path: Path) -> None:
    """Links out of it, directories, files that are no Python: None."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("a = 1\n")
    (root / "bad.py").write_text("a = (\n")
    (root / "d.py").mkdir()
    (tmp_path / "secret.py").write_text("b = 1\n")
    (root / "out.py").symlink_to(tmp_path / "secret.py")
    (root / "in.py").symlink_to(root / "a.py")
    tree = SourceTree(root)
    readable = {name for name in ["a.py", "bad.py", "d.py", "out.py", "in.py", "gone.py"] if tree.facts(name)}
    assert readable == {"a.py", "in.py"}
    assert tree.names("") == {"a.py", "bad.py", "d.py", "out.py", "in.py"}
    assert [tree.names(name) for name in ["nowhere", "a\0b", "x" * 5000]] == [frozenset()] * 3
