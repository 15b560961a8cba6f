"""A tar from a cluster, where tests wrote: only what we know, and only inside the folder."""

import gzip
import io
import lzma
import tarfile
from pathlib import Path

import pytest

from gpuci.execution.slurm import fetched
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


def header(kind: bytes, name: str, data: bytes, size: int | None = None) -> bytes:
    """One member, its header made by hand."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, len(data) if size is None else size
    return entry.tobuf(tarfile.USTAR_FORMAT) + data + b"\0" * (-len(data) % 512)


def pax(*records: bytes, name: str = "coverage/x/coverage.data") -> bytes:
    """A member with extended headers, whatever is in them (pax(1), "pax Header Block")."""
    lines = b""
    for record in records:
        length = next(
            n for n in range(len(record) + 2, len(record) + 9) if n == len(f"{n} ") + len(record) + 1
        )
        lines += b"%d %s\n" % (length, record)
    return header(b"x", "pax", lines) + header(b"0", name, b"abc")


@pytest.mark.parametrize(
    "data",
    [
        pax(b"path=coverage/\0/coverage.data"),
        pax(b"size=99999999999999999999999", name="log"),
        pax(b"GNU.sparse.map=x,y"),
        pax(b"GNU.sparse.major=1", b"GNU.sparse.minor=0"),
        pax(b"path=coverage/" + b"a" * 5000 + b"/coverage.data"),
        header(b"x", "pax", b"12 path=abc\n") * 5000,
        header(b"L", "long", b"", size=8_000_000_000),
        header(b"0", "coverage/a/coverage.data", b"")
        + header(b"0", "coverage/a/coverage.data/coverage.data", b""),
        gzip.compress(packed(("verdict.json", b"{}"))),
        lzma.compress(packed(("verdict.json", b"{}"))),
    ],
    ids=[
        *("NUL in a name", "size", "sparse map", "sparse", "long name", "headers about headers"),
        *("a name of 8 GB", "a file that is a directory", "gzip", "xz"),
    ],
)
def test_a_cluster_s_hostile_tar_is_a_problem_of_its_shard(tmp_path: Path, data: bytes) -> None:
    """Whatever tarfile raises: an exception would end the run, with the other shards on the cluster."""
    (problem,) = unpack(data, tmp_path)
    assert "can't be read" in problem
    assert len(problem) < 100


def test_a_member_without_a_name_is_left_out(tmp_path: Path) -> None:
    assert unpack(header(b"0", "", b"x") + packed(("verdict.json", b"{}")), tmp_path) == []
    assert written(tmp_path) == {"verdict.json": b"{}"}


def test_a_sparse_member_does_not_fill_the_disk(tmp_path: Path) -> None:
    assert unpack(pax(b"GNU.sparse.map=0,3", b"GNU.sparse.size=2000000000"), tmp_path) == []
    assert written(tmp_path) == {}


def test_more_files_than_processes_can_leave_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetched, "_MOST_FILES", 3)
    data = packed(*((f"coverage/{number}/coverage.data", b"x") for number in range(5)))
    assert unpack(data, tmp_path) == ["the job left more than 3 files: the rest stays on the cluster"]
    assert len(written(tmp_path)) == 3
