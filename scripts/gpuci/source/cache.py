"""Facts cached by content: one file in a directory that the caller owns (never inside a tree under test).

The file is a `marshal` of {digest of the source: marshalled facts}. Whatever is wrong with it, it counts
as empty: a cache is never a reason to fail.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
from pathlib import Path

from gpuci.source.facts import FACTS_VERSION, FileFacts, from_plain, to_plain


def digest(data: bytes) -> bytes:
    """The key of a file's content."""
    return hashlib.blake2b(data, digest_size=16).digest()


def pack(facts: FileFacts) -> bytes:
    """Facts as bytes."""
    return marshal.dumps(to_plain(facts))


def unpack(blob: bytes) -> FileFacts | None:
    """The inverse of `pack`; None for anything else."""
    try:
        return from_plain(marshal.loads(blob))
    except (ValueError, TypeError, EOFError, IndexError):
        return None


class FactsCache:
    """Packed facts by digest; `save` keeps what this run used, and nothing of fewer files than `least`."""

    def __init__(self, directory: Path, least: int = 0) -> None:
        self._least = least
        python = f"{sys.implementation.cache_tag}-{marshal.version}"
        self.path = directory / f"facts-{FACTS_VERSION}-{python}.bin"
        self._known = self._load()
        self._used: dict[bytes, bytes] = {}

    @property
    def known(self) -> dict[bytes, bytes]:
        """Packed facts by digest, as the last run left them."""
        return self._known

    def use(self, key: bytes, blob: bytes | None) -> None:
        """Keep a content's facts: `blob`, or the known ones for None."""
        if blob is None:
            blob = self._known.get(key)
        if blob is not None:
            self._used[key] = blob

    def save(self) -> None:
        """Write the entries of this run, at once or not at all; an unwritable directory is no error."""
        if self._used == self._known or len(self._used) < self._least:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
            with os.fdopen(handle, "wb") as stream:
                stream.write(marshal.dumps(self._used))
            os.replace(temporary, self.path)
        except OSError:
            return

    def _load(self) -> dict[bytes, bytes]:
        try:
            known = marshal.loads(self.path.read_bytes())
        except (OSError, ValueError, TypeError, EOFError):
            return {}
        return known if isinstance(known, dict) else {}
