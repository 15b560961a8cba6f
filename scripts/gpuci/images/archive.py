"""An archive in OCI image layout -> its parts, checked. I/O: reads one tar file, extracts nothing.

Members are read where they stand in the file: a name that leaves the directory, a link or a device is only a
name that nothing asks for.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO

from gpuci.images.manifest import (
    DOCUMENT_BYTES,
    Blob,
    BrokenImage,
    Manifest,
    document_of,
    manifest_of,
    only_manifest,
    platform_fault,
)

_MEMBERS = 5_000
_CHUNK = 1024 * 1024
# tarfile raises the next two for numbers in headers, and calls itself for headers about headers.
_UNREADABLE = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError)


class _InPieces(io.FileIO):
    """A file of which nobody reads much at once: tarfile takes the length of a long name from the file."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= DOCUMENT_BYTES:
            raise OSError(f"{size} bytes at once")
        return super().read(size) or b""


class Archive:
    """An image in a file; what `manifest` and `parts` say is right once `check` returned."""

    def __init__(self, path: Path) -> None:
        """Open the file, or the only one of a directory; raises BrokenImage."""
        with ExitStack() as stack:
            try:
                file = stack.enter_context(_InPieces(_file(path)))
                # No decompression: what is read is as long as the file is.
                self._tar = stack.enter_context(tarfile.open(fileobj=file, mode="r:"))
                self._members = _members(self._tar)
            except _UNREADABLE as error:
                raise BrokenImage(f"it can't be read ({type(error).__name__})") from error
            self.described = only_manifest(document_of(self._small("index.json"), "index.json"))
            self.manifest = self._small(_path(self.described.digest))
            self.parts: Manifest = manifest_of(document_of(self.manifest, "the manifest"))
            self._opened = stack.pop_all()

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    @property
    def digest(self) -> str:
        """The image's digest: that of its manifest."""
        return self.described.digest

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """What a registry has to have before it takes the manifest, each once."""
        return tuple(dict.fromkeys([*self.parts.layers, self.parts.config]))

    def check(self, platform: str = "") -> None:
        """Read everything once and compare it with what it is called; raises BrokenImage."""
        layout = document_of(self._small("oci-layout"), "oci-layout")
        if layout.get("imageLayoutVersion") != "1.0.0":
            raise BrokenImage("it is no OCI image layout 1.0.0")
        for blob in (self.described, *self.blobs):
            self._compare(blob)
        text = self._small(_path(self.parts.config.digest))
        config = document_of(text, "the configuration", exact=False)
        fault = platform_fault(config, platform) if platform else None
        if fault:
            raise BrokenImage(fault)

    def open(self, blob: Blob) -> IO[bytes]:
        """A part as a stream; raises BrokenImage if it is not there."""
        member = self._members.get(_path(blob.digest))
        stream = self._tar.extractfile(member) if member is not None else None
        if stream is None:
            raise BrokenImage(f"{blob.digest} is missing")
        return stream

    def _small(self, name: str) -> bytes:
        member = self._members.get(name)
        stream = self._tar.extractfile(member) if member is not None else None
        if stream is None or member is None or member.size > DOCUMENT_BYTES:
            raise BrokenImage(f"{name} is missing or too big")
        try:
            return stream.read()
        except _UNREADABLE as error:
            raise BrokenImage(f"{name} can't be read ({type(error).__name__})") from error

    def _compare(self, blob: Blob) -> None:
        digest, size = hashlib.sha256(), 0
        try:
            with self.open(blob) as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
        except _UNREADABLE as error:
            raise BrokenImage(f"{blob.digest} can't be read ({type(error).__name__})") from error
        if (f"sha256:{digest.hexdigest()}", size) != (blob.digest, blob.size):
            raise BrokenImage(f"what it calls {blob.digest} ({blob.size:,} bytes) is something else")


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = sorted(path.iterdir())
    if len(files) != 1 or files[0].is_symlink() or not files[0].is_file():
        raise BrokenImage(f"the directory {path.name} holds {len(files)} entries instead of one file")
    return files[0]


def _members(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    """Regular files by name; of a name that stands twice the first counts, and is checked like any other."""
    found: dict[str, tarfile.TarInfo] = {}
    for count, member in enumerate(tar):
        if count >= _MEMBERS:
            raise BrokenImage(f"it has more than {_MEMBERS:,} members")
        # A sparse member is longer than the file.
        if member.isreg() and not member.issparse():
            found.setdefault(member.name.removeprefix("./"), member)
    return found


def _path(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")
