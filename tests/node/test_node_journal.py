"""The journal, its frames and the verdict's file: what they hold, and what a full disk leaves of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuci.results import frames
from gpuci.results.journal import parse, problem
from gpuci_node.supervisor.journal import Journal, write_verdict

RECORD = {"kind": "note", "level": "info", "text": "ä\n\x1b", "t": 1.0}
LINES = 400


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Any]:
    with open(tmp_path / "log", "wb+") as stream:
        yield stream


def read(log: Any) -> str:
    log.seek(0)
    return str(log.read().decode("ascii"))


def test_both_channels_hold_each_record(tmp_path: Path, log: Any) -> None:
    journal = Journal(str(tmp_path / "journal.jsonl"), "nonce", log.fileno())
    for _ in range(3):
        journal.append(RECORD)
    journal.close()
    data = (tmp_path / "journal.jsonl").read_bytes()
    assert parse(data).records == (RECORD,) * 3 == frames.parse(read(log), "nonce").records
    assert (journal.error, journal.lines) == (None, 3)
    assert journal.digest == hashlib.sha256(data).hexdigest()


def test_a_journal_that_is_there_is_not_continued(tmp_path: Path, log: Any) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("another job's\n")
    journal = Journal(str(path), "nonce", log.fileno())
    journal.append(RECORD)
    assert journal.error is not None
    assert "File exists" in journal.error
    assert path.read_text() == "another job's\n"
    assert frames.parse(read(log), "nonce").records == (RECORD,)


# In a process of its own, since a limit on file sizes cannot be taken back.
FULL_DISK = """
import json, os, resource, sys
sys.path.insert(0, sys.argv[1])
from gpuci_node.supervisor.journal import Journal, write_verdict
out, limit = sys.argv[2], int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
journal = Journal(out + "/journal.jsonl", "nonce", 2)
for number in range(int(sys.argv[4])):
    journal.append({"kind": "note", "level": "info", "text": "x" * 1000, "t": float(number)})
journal.close()
verdict = {"verdict": "infra", "padding": "y" * 5000}
print(json.dumps([journal.error, write_verdict(out + "/verdict.json", verdict)]))
"""


def fill(out: Path, limit: int) -> tuple[list[str | None], str]:
    scripts = str(Path(__file__).parents[2] / "scripts")
    command = [sys.executable, "-c", FULL_DISK, scripts, str(out), str(limit), str(LINES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), done.stderr


def check_full(out: Path, limit: int) -> None:
    (journal_error, _verdict_error), log = fill(out, limit)
    assert journal_error is not None
    assert str(out / "journal.jsonl") in journal_error
    # The log has every record; the journal is whole lines and one torn one at most.
    assert len(frames.parse(log, "nonce").records) == LINES
    kept = parse((out / "journal.jsonl").read_bytes())
    assert 0 < len(kept.records) < LINES
    assert kept.damaged == 0


def test_a_limit_on_the_file_size_under_the_journal(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    check_full(out, limit=65_536)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_under_the_journal(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(out)], check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        check_full(out, limit=0)
        assert not (out / "verdict.json").exists(), "a verdict without room must not look like one"
    finally:
        subprocess.run(["umount", str(out)], check=True)


def test_a_verdict_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    assert write_verdict(str(path), {"verdict": "passed"}) is None
    assert json.loads(path.read_text()) == {"verdict": "passed"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["verdict.json"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("../theirs", path)])
def test_what_tests_put_where_the_verdict_is_written(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "theirs").write_text("theirs")
    out = tmp_path / "out"
    out.mkdir()
    for name in ("verdict.json", "verdict.json.tmp"):
        make(out / name)
    problem = write_verdict(str(out / "verdict.json"), {"verdict": "passed"})
    assert (problem is not None) == (make is os.mkdir)
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert {entry.name for entry in out.iterdir()} == {"verdict.json", "verdict.json.tmp"}


def test_a_verdict_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    error = write_verdict(str(tmp_path / "missing" / "verdict.json"), {})
    assert error is not None
    assert "missing/verdict.json" in error


def test_a_journal_of_another_run_does_not_fit_a_verdict(tmp_path: Path) -> None:
    assert problem(b'{"kind":"note"}\n', {"journal": {"lines": 1, "sha256": "0" * 64}})
