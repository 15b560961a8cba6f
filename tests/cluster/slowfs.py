#!/usr/bin/python3
"""A shared folder as a busy NFS shows it: `slowfs.py DIR [--delay S] [--stale S] [--writeback S]`, as root.

Lies over DIR (FUSE) and passes through to what is below it, which the login node and the compute nodes of the
bed then see like two clients: a process that descends from sshd is on the login node, any other on a compute
node. Runs until it is unmounted (`umount DIR`).

    --delay      each look at attributes and each read takes so long
    --stale      the login node sees attributes that it saw before, also that there is no such file, for so
                 long; an open of a file that it knows asks again (close-to-open consistency, nfs(5))
    --writeback  what a compute node writes reaches the login node when the file is closed or synced, or so
                 much later
"""

from __future__ import annotations

import argparse
import errno
import os
import threading
import time
from pathlib import Path
from typing import Any

import fusepy as fuse  # type: ignore[import-untyped,import-not-found,unused-ignore]

ATTRIBUTES: tuple[str, ...] = (
    "st_mode",
    "st_ino",
    "st_nlink",
    "st_uid",
    "st_gid",
    "st_size",
    "st_blocks",
    "st_blksize",
)
ATTRIBUTES += ("st_atime", "st_mtime", "st_ctime")
STATISTICS: tuple[str, ...] = (
    "f_bavail",
    "f_bfree",
    "f_blocks",
    "f_bsize",
    "f_frsize",
    "f_favail",
    "f_ffree",
    "f_files",
)
STATISTICS += ("f_flag", "f_namemax")


def on_login_node(pid: int) -> bool:
    """Whether a process descends from sshd."""
    while pid > 1:
        try:
            name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        except OSError:
            return False
        if name.endswith("(sshd"):
            return True
        pid = int(rest.split()[1])
    return False


class Memory:
    """What the login node saw, and which sizes it can't know yet."""

    def __init__(self, stale: float, writeback: float) -> None:
        self.stale, self.writeback = stale, writeback
        self.lock = threading.Lock()
        self.seen: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self.unsent: dict[int, tuple[float, int]] = {}

    def recall(self, path: str) -> tuple[dict[str, Any] | None] | None:
        """What the login node believes of a path: (attributes,), (None,) for no such file, None: nothing."""
        with self.lock:
            since, attributes = self.seen.get(path, (-self.stale, None))
            return (attributes,) if time.monotonic() - since < self.stale else None

    def saw(self, path: str, attributes: dict[str, Any] | None) -> None:
        """The login node looked."""
        with self.lock:
            self.seen[path] = (time.monotonic(), attributes)

    def forget(self, *paths: str) -> None:
        """The login node changed them itself."""
        with self.lock:
            for path in paths:
                for name in (path, os.path.dirname(path)):
                    self.seen.pop(name, None)

    def wrote(self, inode: int, size: int) -> None:
        """A compute node writes to a file that has `size` bytes so far."""
        with self.lock:
            self.unsent.setdefault(inode, (time.monotonic(), size))

    def sent(self, inode: int) -> None:
        """A compute node closed or synced it."""
        with self.lock:
            self.unsent.pop(inode, None)

    def arrived(self, inode: int, size: int) -> int:
        """How many of `size` bytes the login node can know of."""
        with self.lock:
            since, before = self.unsent.get(inode, (0.0, size))
            return min(before, size) if time.monotonic() - since < self.writeback else size


class SlowFolder(fuse.Operations):  # type: ignore[misc,unused-ignore]
    """The operations of fusepy with `raw_fi`; a path starts with `/`."""

    def __init__(self, below: str, delay: float, memory: Memory) -> None:
        self.below, self.delay, self.memory = below, delay, memory
        self.writers: set[int] = set()

    def _real(self, path: str) -> str:
        return self.below + path

    def _login(self) -> bool:
        return on_login_node(fuse.fuse_get_context()[2])

    def _changed(self, *paths: str) -> None:
        if self._login():
            self.memory.forget(*paths)

    def _given(self, path: str) -> None:
        """A new file belongs to who made it, not to us."""
        uid, gid, _ = fuse.fuse_get_context()
        os.chown(self._real(path), uid, gid, follow_symlinks=False)
        self._changed(path)

    def getattr(self, path: str, info: Any = None) -> dict[str, Any]:
        login = self._login()
        known = self.memory.recall(path) if login else None
        if known is None:
            time.sleep(self.delay)
            known = (self._look(path, login),)
            if login:
                self.memory.saw(path, known[0])
        if known[0] is None:
            raise fuse.FuseOSError(errno.ENOENT)
        return known[0]

    def _look(self, path: str, login: bool) -> dict[str, Any] | None:
        try:
            found = os.lstat(self._real(path))
        except FileNotFoundError:
            return None
        attributes = {name: getattr(found, name) for name in ATTRIBUTES}
        if login:
            attributes["st_size"] = self.memory.arrived(found.st_ino, found.st_size)
        return attributes

    def _open(self, path: str, flags: int, mode: int = 0) -> int:
        handle = os.open(self._real(path), flags, mode)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            self.writers.add(handle)
        return handle

    def open(self, path: str, info: Any) -> int:
        if self._login():
            self.memory.forget(path)
        info.fh = self._open(path, info.flags & ~(os.O_CREAT | os.O_EXCL | os.O_DIRECT | os.O_NOFOLLOW))
        return 0

    def create(self, path: str, mode: int, info: Any) -> int:
        info.fh = self._open(path, (info.flags | os.O_CREAT) & ~os.O_DIRECT, mode)
        self._given(path)
        return 0

    def read(self, path: str, size: int, offset: int, info: Any) -> bytes:
        time.sleep(self.delay)
        if self._login():
            found = os.fstat(info.fh)
            size = max(0, min(size, self.memory.arrived(found.st_ino, found.st_size) - offset))
        return os.pread(info.fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, info: Any) -> int:
        if self._login():
            self.memory.forget(path)
        else:
            found = os.fstat(info.fh)
            self.memory.wrote(found.st_ino, found.st_size)
        return os.pwrite(info.fh, data, offset)  # Linux appends where the file was opened to append

    def flush(self, path: str, info: Any) -> int:
        if info.fh in self.writers:
            self.memory.sent(os.fstat(info.fh).st_ino)
        return 0

    def fsync(self, path: str, data_only: int, info: Any) -> int:
        os.fsync(info.fh)
        self.memory.sent(os.fstat(info.fh).st_ino)
        return 0

    def release(self, path: str, info: Any) -> int:
        self.writers.discard(info.fh)
        os.close(info.fh)
        return 0

    def readdir(self, path: str, info: Any) -> list[str]:
        time.sleep(self.delay)
        return [".", "..", *os.listdir(self._real(path))]

    def truncate(self, path: str, length: int, info: Any = None) -> None:
        os.truncate(self._real(path), length)
        self._changed(path)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self._real(path), mode)
        self._given(path)

    def mknod(self, path: str, mode: int, device: int) -> None:
        os.mknod(self._real(path), mode, device)
        self._given(path)

    def symlink(self, path: str, target: str) -> None:
        os.symlink(target, self._real(path))
        self._given(path)

    def link(self, path: str, source: str) -> None:
        os.link(self._real(source), self._real(path), follow_symlinks=False)
        self._changed(path, source)

    def rename(self, old: str, new: str) -> None:
        os.rename(self._real(old), self._real(new))
        self._changed(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(self._real(path))
        self._changed(path)

    def rmdir(self, path: str) -> None:
        os.rmdir(self._real(path))
        self._changed(path)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self._real(path), mode)
        self._changed(path)

    def chown(self, path: str, uid: int, gid: int) -> None:
        os.chown(self._real(path), uid, gid, follow_symlinks=False)
        self._changed(path)

    def utimens(self, path: str, times: tuple[float, float] | None = None) -> None:
        os.utime(self._real(path), times, follow_symlinks=False)
        self._changed(path)

    def readlink(self, path: str) -> str:
        return os.readlink(self._real(path))

    def access(self, path: str, mode: int) -> int:
        return 0  # the kernel has looked (default_permissions)

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._real(path))
        return {name: getattr(found, name) for name in STATISTICS}


def main() -> None:
    """Mount, and serve until it is unmounted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", metavar="DIR")
    for name, default in (("delay", 0.0), ("stale", 0.0), ("writeback", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=default, metavar="SECONDS")
    options = parser.parse_args()
    os.umask(0)
    below = f"/proc/self/fd/{os.open(options.directory, os.O_RDONLY | os.O_DIRECTORY)}"
    fuse.FUSE(
        SlowFolder(below, options.delay, Memory(options.stale, options.writeback)),
        options.directory,
        raw_fi=True,
        foreground=True,
        nothreads=False,
        allow_other=True,
        default_permissions=True,
        nonempty=True,
        direct_io=True,
        use_ino=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
        fsname="slowfs",
    )


if __name__ == "__main__":
    main()
