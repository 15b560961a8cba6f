"""What a person is told about the tree."""

from __future__ import annotations

import pytest

from gpuci.execution.delivery import notes
from gpuci.execution.delivery.notes import Dirty


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        (Dirty(), ()),
        (Dirty(changed=("a",)), ("1 changed file (a)",)),
        (Dirty(new=("b", "a")), ("2 new files (a, b)",)),
        (Dirty(("c",), ("b",), ("a",)), ("1 changed, 1 new and 1 removed files (a, b, c)",)),
        (Dirty(new=tuple("gfedcba")), ("7 new files (a, b, c, d, e and 2 more)",)),
        (Dirty(new=("\x1b[2J\n::error::x",)), (r"1 new file ('\x1b[2J\n::error::x')",)),
    ],
    ids=["clean", "one", "sorted", "all kinds", "many", "hostile"],
)
def test_dirty_note(dirty: Dirty, expected: tuple[str, ...]) -> None:
    assert notes.dirty_note(dirty) == tuple(
        f"delivered as here, not as committed: {text}" for text in expected
    )
    assert bool(dirty) is bool(expected)


def test_nothing_to_tell() -> None:
    assert notes.nested_note(()) + notes.sparse_note(0) + notes.contents_note(0) == ()
    assert notes.missing_warnings((), ()) + notes.undelivered({"a"}, ["a"]) == ()


def test_planned_files_that_are_not_delivered() -> None:
    (warning,) = notes.undelivered({"a", "b"}, ["b", "z", "c"])
    assert warning.endswith(": c, z")
