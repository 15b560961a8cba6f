"""Brings the archive and the node's code to the shared folder, once for each content. I/O.

SHARED/trees/<sha256>.tar and SHARED/nodes/<sha256>.pyz: what has such a name was checked before it got it,
so it is never written again, and two runners that bring the same at once don't disturb each other.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuci.errors import GpuciError
from gpuci.execution.delivery import packing
from gpuci.execution.delivery.archive import Archive
from gpuci.execution.delivery.link import Answer, Link, marked
from gpuci.execution.delivery.progress import Progress
from gpuci.execution.delivery.refusals import refused
from gpuci.execution.directories import cannot_write
from gpuci.execution.transport.connection import LinkLost

TRIES = 3
# A link slower than this is as good as none: 120 MB of source would take ten minutes.
SLOWEST = 50_000  # bytes a second
_TEXTS = Path(__file__).with_name("texts")
_MARK = "gpuci-delivery"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Delivered:
    """The sha256 of both files, which is their name; `sent`: bytes that travelled, 0 if all was there."""

    tree: str
    node: str
    sent: int = 0


@dataclass(frozen=True)
class _File:
    """A file that is to lie at `name` below SHARED."""

    path: Path
    name: str
    size: int
    sha256: str


def deliver(connection: Link, shared: str, archive: Archive, pyz: Path, say: Say = print) -> Delivered:
    """Make both files lie below `shared` of the login node; a lost link is tried again, twice.

    Raises GpuciError naming the folder if it is full or can't be written, LinkLost if the link stays away.
    """
    tree = _File(archive.path, f"trees/{archive.sha256}.tar", archive.size, archive.sha256)
    code = pyz.read_bytes()
    digest = hashlib.sha256(code).hexdigest()
    node = _File(pyz, f"nodes/{digest}.pyz", len(code), digest)
    sent = 0
    for left in reversed(range(TRIES)):
        try:
            for file in _needed(connection, shared, (tree, node)):
                sent += _store(connection, shared, file, say)
            break
        except (LinkLost, _Damaged) as error:
            if not left or (isinstance(error, LinkLost) and not error.retry):
                raise
            say(f"{error.what}; delivering again")
    return Delivered(tree.sha256, node.sha256, sent)


class _Damaged(GpuciError):
    """Not what was sent arrived."""


def _needed(connection: Link, shared: str, files: Sequence[_File]) -> list[_File]:
    """Those of the files that are not there yet. Makes the folders."""
    args = [word for file in files for word in (file.name, str(file.size))]
    answer = connection.run(_text("ask"), shared, *args)
    if answer.code != 0:
        raise refused(shared, answer.code, answer.err)
    there = {name for word, name in marked(answer.out, _MARK) if word == "have"}
    return [file for file in files if file.name not in there]


def _store(connection: Link, shared: str, file: _File, say: Say) -> int:
    """Upload a file; returns the bytes that travelled."""
    packed = file.path.with_name(file.path.name + ".gz")
    try:
        how, source = "plain", file.path
        if packing.pays(file.path, file.size):
            packing.pack(file.path, packed)
            how, source = "gzip", packed
        return _send(connection, shared, file, (how, source), say)
    except OSError as error:
        raise cannot_write(packed, error) from error
    finally:
        packed.unlink(missing_ok=True)


def _send(connection: Link, shared: str, file: _File, packed: tuple[str, Path], say: Say) -> int:
    how, source = packed
    folder, _, name = file.name.rpartition("/")
    partial = f"{folder}/.partial-{secrets.token_hex(8)}-{name[:16]}"
    args = (shared, file.name, str(file.size), file.sha256, partial, how)
    size = source.stat().st_size
    with source.open("rb", buffering=0) as stream, Progress(stream, size, file.size, say):
        answer = connection.run(_text("store"), *args, stdin=stream, timeout=120 + size / SLOWEST)
    _judge(answer, shared, file, say)
    return size


def _judge(answer: Answer, shared: str, file: _File, say: Say) -> None:
    told = dict(marked(answer.out, _MARK))
    if answer.code == 0 and "stored" in told:
        if told["stored"] != "yes":
            say(f"{file.name} could not be checked: the login node has no sha256sum, shasum or openssl")
        return
    if "short" in told or "damaged" in told:
        raise _Damaged(
            f"{file.name} did not arrive as it was sent",
            why="the link broke, or a file system between here and there changes data",
            then="run again; if it stays so, compare `sha256sum` of a file that was copied there",
        )
    raise refused(shared, answer.code, answer.err)


def _text(name: str) -> str:
    return (_TEXTS / f"{name}.sh").read_text("utf-8")
