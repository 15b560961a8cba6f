"""What this process holds that its forked copies would share: pipes, positions in files, shared memory.

Runs in the process that collects the tests (Linux, Python >= 3.8, standard library only).
"""

import contextlib
import os
import re
import stat
import sys
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

# proc(5), /proc/PID/maps: "address perms offset dev inode pathname"; these may be written, and are shared.
_SHARED = re.compile(rb"^(\S+) .w.s \S+ \S+ (\d+) +(/.*)$", re.MULTILINE)
_TOUCHED = re.compile(rb"^RssShmem:\s+(\d+)", re.MULTILINE)
_DELETED = " (deleted)"
# No place in a file that somebody reads or writes on from, or no file at all; their mappings are looked at.
_NO_FILES = ("/dev/", "/proc/", "/sys/", "/memfd:")
_SOMEBODY = ""


class Held:
    """Looks again and again; what is new since the last look was made by the file that is named then."""

    def __init__(self) -> None:
        # What is there, and the file of the tree that was named when it appeared.
        self._pipes: Dict[str, Optional[str]] = {}  # pytest's capture copies descriptors of them
        self._files: Dict[Tuple[int, str], Optional[str]] = {}  # descriptors
        self._mappings: Dict[Tuple[bytes, ...], Optional[str]] = {}  # shared ones that may be written
        self._opened: Dict[str, Set[Optional[str]]] = {}  # paths that Python opened: who did; None: a library
        self._hints: Any = None
        self._mapped = True

    def look(self, links: List[Tuple[int, str]], file: Optional[str], thorough: bool = False) -> None:
        """Blame `file` for what is new; mappings are read when something hints at them, or if `thorough`.

        `links`: the descriptors, with what they lead to (`runtimes.descriptors`).
        """
        self._pipes = {link: self._pipes.get(link, file) for _, link in links if link.startswith("pipe:")}
        self._files = {each: self._files.get(each, file) for each in links if _is_file(each[1])}
        hints = _hints()
        hinted = self._mapped or hints != self._hints
        if hinted or thorough:
            blamed = file if hinted else _SOMEBODY
            self._mappings = {key: self._mappings.get(key, blamed) for key in _shared_mappings()}
        self._mapped, self._hints = False, hints

    def opens(self, path: Any, file: Optional[str]) -> None:
        """A file is about to be opened (the audit event), by a file of the tree or by somebody else."""
        if isinstance(path, (str, bytes, os.PathLike)):
            with contextlib.suppress(OSError):  # the working directory is gone
                self._opened.setdefault(os.path.abspath(os.fsdecode(path)), set()).add(file)

    def maps(self) -> None:
        """Memory is about to be mapped (the audit event)."""
        self._mapped = True

    def found(self) -> List[Tuple[str, Optional[str]]]:
        """What is new and is there still: (what it is, whom to blame; None: nobody knows)."""
        made = [("keeps a pipe open that was made", file) for file in self._pipes.values()]
        files = (file for each in self._files if _has_position(each[0]) for file in self._who_opened(each))
        made += [("keeps a file open that was opened", file) for file in files]
        made += [("keeps shared memory that was made", file) for file in self._mappings.values()]
        return [(what, file or None) for what, file in made if file is not None]

    def _who_opened(self, descriptor: Tuple[int, str]) -> Set[Optional[str]]:
        path = descriptor[1]
        if path.endswith(_DELETED):
            path = path[: -len(_DELETED)]
            if os.path.basename(path).startswith("#"):
                path = os.path.dirname(path)  # O_TMPFILE: a directory is opened
        names = [name for name in self._opened if os.path.basename(name) == os.path.basename(path)]
        who = {file for name in names if os.path.realpath(name) == path for file in self._opened[name]}
        looked = {self._files[descriptor]}
        return who & looked or who or looked  # C code tells nobody what it opens


def _is_file(link: str) -> bool:
    return link.startswith("/") and not link.startswith(_NO_FILES)


def _has_position(fd: int) -> bool:
    """Whether it is a regular file; one that appends (a log) goes on at its end, wherever that is."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.fstat(fd).st_mode) and not _flags(fd) & (os.O_APPEND | os.O_PATH)
    return False


def _flags(fd: int) -> int:
    """As open(2) got them; proc(5), /proc/PID/fdinfo."""
    with open("/proc/self/fdinfo/%d" % fd, "rb") as stream:
        return int(stream.read().partition(b"flags:")[2].split()[0], 8)


def _shared_mappings() -> Iterator[Tuple[bytes, ...]]:
    """(address, inode, path) of each; those of devices say that a runtime is in use, not more."""
    with open("/proc/self/maps", "rb") as stream:
        for match in _SHARED.finditer(stream.read()):
            if not match[3].startswith(b"/dev/") or match[3].startswith((b"/dev/shm/", b"/dev/zero")):
                yield match.groups()


def _hints() -> Tuple[object, int]:
    """Changes when shared memory is first touched, and when a lock of `multiprocessing` is made.

    The mappings of a process that has loaded torch take a millisecond to read, this 20 µs.
    """
    with open("/proc/self/status", "rb") as stream:
        touched = _TOUCHED.search(stream.read())
    registry = getattr(sys.modules.get("multiprocessing.util"), "_afterfork_registry", ())
    return touched and touched[1], len(registry)
