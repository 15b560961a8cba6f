"""The content of many objects of a repository, by one process of git. I/O."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence

from gpuci.errors import GpuciError
from gpuci.repository.git import Git


def contents(git: Git, object_ids: Sequence[str]) -> Iterator[bytes]:
    """The content of each object, in order; raises GpuciError for one that isn't there.

    The ids wait in a file: a pipe could fill up while git's output does.
    """
    with tempfile.TemporaryFile() as ids:
        ids.write("".join(f"{object_id}\n" for object_id in object_ids).encode())
        ids.seek(0)
        with git.start("cat-file", "--batch", "--buffer", stdin=ids) as process:
            assert process.stdout is not None
            try:
                for object_id in object_ids:
                    words = process.stdout.readline().split()
                    if len(words) != 3:
                        raise _missing(object_id)
                    data = process.stdout.read(int(words[2]) + 1)
                    if len(data) != int(words[2]) + 1:
                        raise _missing(object_id)
                    yield data[:-1]
            finally:
                process.kill()


def _missing(object_id: str) -> GpuciError:
    return GpuciError(
        f"git can't read the object {object_id}",
        why="the commit was fetched in part, or the disk is full",
        then="run the job again",
    )
