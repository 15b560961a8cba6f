"""Reads objects of a repository. I/O."""

from __future__ import annotations

from collections.abc import Sequence

from gpuci.repository import listing
from gpuci.repository.git import Git


def pointer_ids(git: Git, object_ids: Sequence[str]) -> frozenset[str]:
    """Those of the objects that are pointers of Git LFS: by their content, attributes can say anything.

    The content is read of objects that are as small as a pointer; an object that isn't there is none.
    """
    small = listing.small_objects(git.run("cat-file", "--batch-check", "--buffer", stdin=_lines(object_ids)))
    return frozenset(listing.pointer_objects(git.run("cat-file", "--batch", "--buffer", stdin=_lines(small))))


def _lines(object_ids: Sequence[str]) -> bytes:
    return "".join(f"{object_id}\n" for object_id in dict.fromkeys(object_ids)).encode()
