"""A tar from a job's folder -> files here. What tests wrote there is hostile."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path, PurePosixPath

_DOCUMENTS = frozenset({"journal.jsonl", "verdict.json"})
_MOST_BYTES = 2 * 1024 * 1024 * 1024
_MOST_FILES = 10_000
# tarfile raises the last five for numbers and names in headers, and for headers about headers.
_UNREADABLE = (
    *(tarfile.TarError, OSError, EOFError),
    *(ValueError, OverflowError, RecursionError, IndexError, MemoryError),
)


def unpack(data: bytes, folder: Path) -> list[str]:
    """Write the documents and coverage data of a job below `folder`; return what is wrong, for people.

    Only regular files under the names that we know: no link, no device, no path that leaves the folder.
    """
    try:
        # No decompression: what is read is as long as what was brought.
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            return _written(archive, folder)
    except _UNREADABLE as error:
        cause = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return [f"what the job left can't be read: {cause}"]


def _written(archive: tarfile.TarFile, folder: Path) -> list[str]:
    bytes_left, files_left = _MOST_BYTES, _MOST_FILES
    for member in archive:
        path = PurePosixPath(member.name)
        # A sparse member is longer than the archive.
        if not member.isreg() or member.issparse() or not _known(path):
            continue
        bytes_left, files_left = bytes_left - member.size, files_left - 1
        if bytes_left < 0 or files_left < 0:
            most = f"{_MOST_BYTES >> 30} GB" if bytes_left < 0 else f"{_MOST_FILES:,} files"
            return [f"the job left more than {most}: the rest stays on the cluster"]
        _write(archive, member, folder / path)
    return []


def _known(path: PurePosixPath) -> bool:
    if path.is_absolute() or ".." in path.parts or not path.parts:
        return False
    return str(path) in _DOCUMENTS or (path.parts[0] == "coverage" and path.name == "coverage.data")


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = archive.extractfile(member)
    if source is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        while chunk := source.read(1 << 20):
            stream.write(chunk)
