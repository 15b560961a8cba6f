"""The cache of facts: it answers by content, and nothing that is wrong with it is an error."""

import marshal
from pathlib import Path

import pytest

from gpuci.source.cache import FactsCache, digest, pack, unpack
from gpuci.source.parse import parse_source

SOURCE = b"import pytest\n@pytest.mark.gpu\ndef test_a(): ...\n"


def test_what_was_used_is_there_the_next_time(tmp_path: Path) -> None:
    """And what was not is gone: the file doesn't grow for ever."""
    facts = parse_source(SOURCE)
    cache = FactsCache(tmp_path / "new")
    cache.use(digest(SOURCE), pack(facts))
    cache.use(b"old", b"")
    cache.save()
    again = FactsCache(tmp_path / "new")
    again.use(digest(SOURCE), None)
    again.save()
    last = FactsCache(tmp_path / "new").known
    assert unpack(last[digest(SOURCE)]) == facts
    assert b"old" not in last


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\1\2 nonsense", marshal.dumps([1, 2]), marshal.dumps({b"k": b"v"})[:-3]],
    ids=["empty", "nonsense", "a list", "cut off"],
)
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    """Whatever it holds."""
    path = FactsCache(tmp_path).path
    path.write_bytes(content)
    assert FactsCache(tmp_path).known == {}


@pytest.mark.parametrize(
    "blob", [b"", b"x", marshal.dumps(5), marshal.dumps((1,)), marshal.dumps(((("a",),),))]
)
def test_damaged_facts_are_none(blob: bytes) -> None:
    """The file is parsed again then."""
    assert unpack(blob) is None


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """A cache is never a reason to fail."""
    (tmp_path / "file").touch()
    cache = FactsCache(tmp_path / "file")
    cache.use(b"key", b"blob")
    cache.save()
    assert (tmp_path / "file").read_bytes() == b""
