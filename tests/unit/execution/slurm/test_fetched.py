"""A tar from a cluster, where tests wrote: only what we know, and only inside the folder."""

import io
import tarfile
from pathlib import Path

import pytest

from gpuci.execution.slurm.fetched import unpack


def packed(*members: tuple[str, bytes | str]) -> bytes:
    """Files, or links for a text."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_documents_and_coverage_are_written(tmp_path: Path) -> None:
    data = packed(
        ("./journal.jsonl", b"{}\n"), ("./verdict.json", b"{}"), ("./coverage/a/coverage.data", b"data")
    )
    assert unpack(data, tmp_path) == []
    assert written(tmp_path) == {
        "journal.jsonl": b"{}\n",
        "verdict.json": b"{}",
        "coverage/a/coverage.data": b"data",
    }


@pytest.mark.parametrize(
    "member",
    [
        ("../verdict.json", b"x"),
        ("/tmp/verdict.json", b"x"),
        ("coverage/../../coverage.data", b"x"),
        ("verdict.json", "/etc/passwd"),
        ("journal.jsonl", "../../log"),
        ("log", b"x"),
        ("job.json", b"x"),
        ("coverage/coverage.data.sh", b"x"),
    ],
    ids=[
        "above",
        "absolute",
        "above by coverage",
        "link",
        "relative link",
        "our log",
        "a name of ours",
        "unknown",
    ],
)
def test_everything_else_is_left_out(tmp_path: Path, member: tuple[str, bytes | str]) -> None:
    folder = tmp_path / "shard-1"
    folder.mkdir()
    assert unpack(packed(member), folder) == []
    assert written(tmp_path) == {}


def test_a_link_that_is_followed_by_a_file_of_its_name_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"old")
    folder = tmp_path / "shard-1"
    folder.mkdir()
    data = packed(("coverage", "../"), ("coverage/coverage.data", b"new"))
    assert unpack(data, folder) == []
    assert written(tmp_path) == {"secret": b"old", "shard-1/coverage/coverage.data": b"new"}


@pytest.mark.parametrize("data", [b"", b"rubbish", packed(("verdict.json", b"x" * 5000))[:1024]])
def test_what_is_no_tar_is_said(tmp_path: Path, data: bytes) -> None:
    (problem,) = unpack(data, tmp_path)
    assert "can't be read" in problem
