"""A tar from a job's folder -> files here. What tests wrote there is hostile."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path, PurePosixPath

_DOCUMENTS = frozenset({"journal.jsonl", "verdict.json"})
_MOST_BYTES = 2 * 1024 * 1024 * 1024


def unpack(data: bytes, folder: Path) -> list[str]:
    """Write the documents and coverage data of a job below `folder`; return what is wrong, for people.

    Only regular files under the names that we know: no link, no device, no path that leaves the folder.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            left = _MOST_BYTES
            for member in archive:
                path = PurePosixPath(member.name)
                if not member.isreg() or not _known(path):
                    continue
                left -= member.size
                if left < 0:
                    return [f"the job left more than {_MOST_BYTES >> 30} GB: the rest stays on the cluster"]
                _write(archive, member, folder / path)
    except (tarfile.TarError, OSError, EOFError) as error:
        return [f"what the job left can't be read: {error}"]
    return []


def _known(path: PurePosixPath) -> bool:
    if path.is_absolute() or ".." in path.parts:
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
