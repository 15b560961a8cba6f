"""The journal, its second channel (frames in the log) and the verdict's file.

Runs on the compute node (Python >= 3.8, standard library only). One writer per job: the keeper.
"""

import hashlib
import json
import os
import time
from typing import Any, Dict, Optional


def encode(record: Dict[str, Any]) -> bytes:
    """One record as one line of ASCII JSON."""
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; raises OSError (a full disk may take a part first)."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Journal:
    """Appends records to `path` and to the log; a failing file is remembered in `error`, not raised.

    fsync at most once a second. `lines` and `digest` describe exactly the bytes that the file holds.
    """

    def __init__(self, path: str, nonce: str, log_fd: int) -> None:
        self.error: Optional[str] = None
        self.lines = 0
        self._hash = hashlib.sha256()
        self._prefix = b"gpuci-frame " + nonce.encode("ascii") + b" "
        self._log_fd = log_fd
        self._synced = time.monotonic()
        self._path = path
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as error:
            self._fail(error)

    def append(self, record: Dict[str, Any]) -> None:
        """Write one record to both channels."""
        line = encode(record)
        self.frame(record)
        if self.error is None:
            try:
                write_all(self._fd, line)
                self.lines += 1
                self._hash.update(line)
                self._sync(every=1.0)
            except OSError as error:
                self._fail(error)

    def frame(self, record: Dict[str, Any]) -> None:
        """Write one record to the log only."""
        try:
            write_all(self._log_fd, self._prefix + encode(record))
        except OSError:
            # Nobody reads the log any more: the journal is the record, the lifeline decides on the end.
            self._log_fd = os.open(os.devnull, os.O_WRONLY)

    def _sync(self, every: float) -> None:
        if time.monotonic() - self._synced >= every:
            os.fsync(self._fd)
            self._synced = time.monotonic()

    def _fail(self, error: OSError) -> None:
        self.error = "the journal %s can't be written: %s" % (self._path, error.strerror or error)

    @property
    def digest(self) -> str:
        """sha256 of the bytes written, in hexadecimal."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Bring the file to the disk."""
        if self.error is None:
            try:
                self._sync(every=0.0)
                os.close(self._fd)
            except OSError as error:
                self._fail(error)


def write_verdict(path: str, verdict: Dict[str, Any]) -> Optional[str]:
    """Write the verdict so that it is whole or absent; return what went wrong, or None.

    Tried on a full disk: write-then-rename leaves an empty file, so the size is checked before the rename.
    """
    data = encode(verdict)
    temporary = path + ".tmp"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            write_all(fd, data)
            os.fsync(fd)
            if os.fstat(fd).st_size != len(data):
                raise OSError(0, "it holds fewer bytes than were written")
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except OSError as error:
        return "the verdict %s can't be written: %s" % (path, error.strerror or error)
    return None
