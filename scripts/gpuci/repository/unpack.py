"""A commit -> plain files in a directory, whatever is in the commit. I/O, standard library only.

No `git checkout`: nothing of the tree (attributes, filters) or of anybody's configuration takes effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuci.errors import GpuciError
from gpuci.repository.blobs import contents
from gpuci.repository.fetch import Repository
from gpuci.repository.links import destination as link_destination
from gpuci.repository.listing import FILES, GITLINK, LINK, Entry, decode, encode

_PATH_BYTES = 4096
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Unpacked:
    """What was written; `refused`: paths of links that lead out of the tree, which were left out.

    `submodules`: paths that are empty, since only their own repository has the content.
    """

    files: int
    refused: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()


def unpack(
    repository: Repository,
    sha: str,
    root: str,
    destination: Path,
    *,
    keep: Callable[[str], bool] = lambda path: True,
) -> Unpacked:
    """Write the tree of a commit at and below the directory `root` to `destination`, which is made.

    Files are 0644 or 0755 (less the umask), links are links if they stay inside. `keep` chooses by path,
    relative to `root`. Raises ConfigError for a directory that isn't there and for a tree that no checkout
    can have, GpuciError if the disk is full or an object is missing.
    """
    found = repository.entries(sha, root)
    links = _links(repository, found)
    inside = {path: text for path, text in links.items() if link_destination(path, links) is not None}
    chosen = [entry for entry in found if keep(entry.path)]
    files = [entry for entry in chosen if entry.mode in FILES]
    top = os.fsencode(destination)
    try:
        made = _write(repository, files, top)
        for entry in chosen:
            if entry.path in inside:
                os.symlink(encode(inside[entry.path]), _place(top, entry.path, made))
    except OSError as error:
        raise GpuciError(
            f"{destination} can't be written: {error.strerror}",
            why="the disk is full, or a name in the commit is longer than this file system takes",
        ) from error
    return Unpacked(
        files=len(files),
        refused=tuple(entry.path for entry in chosen if entry.mode == LINK and entry.path not in inside),
        submodules=tuple(entry.path for entry in chosen if entry.mode == GITLINK),
    )


def _links(repository: Repository, found: Sequence[Entry]) -> dict[str, str]:
    """Path -> text of each link; without those whose text is no path."""
    made = [entry for entry in found if entry.mode == LINK]
    texts = contents(repository.git, [entry.object_id for entry in made])
    return {
        entry.path: decode(text)
        for entry, text in zip(made, texts, strict=True)
        if 0 < len(text) < _PATH_BYTES and b"\0" not in text
    }


def _write(repository: Repository, files: Sequence[Entry], top: bytes) -> set[bytes]:
    """Write the files; returns the directories that are there now."""
    os.makedirs(top)
    made = {top}
    all_data = contents(repository.git, [entry.object_id for entry in files])
    for entry, data in zip(files, all_data, strict=True):
        mode = 0o755 if entry.mode == "100755" else 0o644
        descriptor = os.open(_place(top, entry.path, made), _NEW, mode)
        with open(descriptor, "wb") as file:
            file.write(data)
    return made


def _place(top: bytes, path: str, made: set[bytes]) -> bytes:
    """Where a path lies; the directories above it are there then.

    No recursion, as in `os.makedirs`: a path has room for more directories than Python has for calls.
    """
    place = os.path.join(top, encode(path))
    missing = []
    above = os.path.dirname(place)
    while above not in made:
        missing.append(above)
        above = os.path.dirname(above)
    for directory in reversed(missing):
        os.mkdir(directory)
    made.update(missing)
    return place
