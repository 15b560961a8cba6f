"""Functions as they are before any test: a test may have put others in their place while we need them.

Runs in the test process, inside the container (Python >= 3.8, standard library only). They are held in a
tuple, for tools that fake the file system also replace the functions that they find in modules.
"""

import json
import os
from typing import Any, Callable, List, NamedTuple


class Originals(NamedTuple):
    """What talking with the supervisor takes."""

    getpid: Callable[[], int]
    open: Callable[[str, int], int]
    read: Callable[[int, int], bytes]
    write: Callable[[int, Any], int]
    close: Callable[[int], None]
    encode: Callable[[Any], str]
    decode: Callable[[str], Any]

    def load(self, path: str) -> Any:
        """The JSON of a file."""
        fd = self.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts: List[bytes] = []
            while True:
                part = self.read(fd, 1 << 20)
                if not part:
                    return self.decode(b"".join(parts).decode("utf-8"))
                parts.append(part)
        finally:
            self.close(fd)


ORIGINALS = Originals(
    getpid=os.getpid,
    open=os.open,
    read=os.read,
    write=os.write,
    close=os.close,
    encode=json.JSONEncoder(separators=(",", ":")).encode,
    decode=json.JSONDecoder().decode,
)
