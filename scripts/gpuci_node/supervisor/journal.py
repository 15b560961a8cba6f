"""The journal, its second channel (frames in the log) and the verdict's file.

Runs on the compute node (Python >= 3.8, standard library only). One writer per job: the keeper.
"""

import contextlib
import hashlib
import json
import os
import stat
import time
from typing import Any, Dict, Optional

_SYNC_SECONDS = 1.0


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

    `lines` and `digest` describe exactly the bytes that the file holds. Both are to be synced when
    `next_sync` says so: at most once a second, and a second after a write at the latest.
    """

    def __init__(self, path: str, nonce: str, log_fd: int) -> None:
        self.error: Optional[str] = None
        self.lines = 0
        self._hash = hashlib.sha256()
        self._prefix = b"gpuci-frame " + nonce.encode("ascii") + b" "
        self._log_fd = log_fd
        self.written = time.monotonic()  # when something was written last
        self._synced = self.written
        self._log_is_file = stat.S_ISREG(os.fstat(log_fd).st_mode)
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
            except OSError as error:
                self._fail(error)

    def frame(self, record: Dict[str, Any]) -> None:
        """Write one record to the log only."""
        self.written = time.monotonic()
        try:
            write_all(self._log_fd, self._prefix + encode(record))
        except OSError:
            # Nobody reads the log any more: the journal is the record, the lifeline decides on the end.
            self._log_fd, self._log_is_file = os.open(os.devnull, os.O_WRONLY), False

    @property
    def next_sync(self) -> Optional[float]:
        """When `sync` is due (monotonic seconds), None if all is on the disk."""
        return self._synced + _SYNC_SECONDS if self.written > self._synced else None

    def sync(self) -> None:
        """Bring what was written to the disk."""
        self._synced = time.monotonic()
        self.sync_log()
        if self.error is None:
            try:
                os.fsync(self._fd)
            except OSError as error:
                self._fail(error)

    def sync_log(self) -> None:
        """Bring the log to the disk, if it is a file."""
        if self._log_is_file:
            with contextlib.suppress(OSError):
                os.fsync(self._log_fd)

    def _fail(self, error: OSError) -> None:
        self.error = "the journal %s can't be written: %s" % (self._path, error.strerror or error)

    @property
    def digest(self) -> str:
        """sha256 of the bytes written, in hexadecimal."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Bring the file to the disk."""
        self.sync()
        if self.error is None:
            try:
                os.close(self._fd)
            except OSError as error:
                self._fail(error)


def write_verdict(path: str, verdict: Dict[str, Any]) -> Optional[str]:
    """Write the verdict so that it is whole or absent; return what went wrong, or None.

    Tried on a full disk: write-then-rename leaves an empty file, so the size is checked before the rename.
    Tests can write to the folder too: the file's name is none that they could put a link or a pipe at.
    """
    data = encode(verdict)
    temporary = "%s.%s" % (path, os.urandom(8).hex())
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            write_all(fd, data)
            os.fsync(fd)
            if os.fstat(fd).st_size != len(data):
                raise OSError(0, "it holds fewer bytes than were written")
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return "the verdict %s can't be written: %s" % (path, error.strerror or error)
    return None
