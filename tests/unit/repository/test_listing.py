"""What git prints, as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.repository import listing
from gpuci.repository.listing import Change, Entry

ID, OTHER = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"", ()),
        (f"100644 blob {ID}\ta b\tc\n\0".encode(), (Entry("100644", ID, "a b\tc\n"),)),
        (f"160000 commit {ID}\tsub\0".encode(), (Entry("160000", ID, "sub"),)),
        (
            f"100755 {ID} 0\tx\x00100644 {OTHER} 2\ty\0".encode(),
            (Entry("100755", ID, "x"), Entry("100644", OTHER, "y")),
        ),
        (f"100644 blob {ID}\t".encode() + b"\xe9\0", (Entry("100644", ID, "\udce9"),)),
    ],
    ids=["empty", "ls-tree", "gitlink", "ls-files", "latin-1"],
)
def test_entries(output: bytes, expected: tuple[Entry, ...]) -> None:
    assert listing.entries(output) == expected


def test_changes() -> None:
    output = f":100644 100755 {ID} {OTHER} M\0a\0:100644 000000 {ID} {OTHER} D\0b\nc\0".encode()
    assert listing.changes(output) == (Change("M", ID, "a"), Change("D", ID, "b\nc"))


@given(st.lists(st.binary(min_size=1).filter(lambda name: b"\0" not in name)))
def test_any_name_survives(names: list[bytes]) -> None:
    found = listing.parts(b"".join(name + b"\0" for name in names))
    assert [listing.encode(name) for name in found] == names


def test_index_lines_and_removals() -> None:
    assert listing.index_lines([Entry("100644", ID, "a\tb")]) == f"100644 {ID}\ta\tb\0".encode()
    assert listing.removals(["x"], 40) == f"0 {'0' * 40}\tx\0".encode()


def test_small_objects_are_blobs_of_a_pointers_size() -> None:
    smallest, largest = len(listing.POINTER), 1023
    rows = [
        f"{ID} blob {smallest}",
        f"{OTHER} blob {smallest - 1}",
        f"{'c' * 40} blob {largest}",
        f"{'d' * 40} blob {largest + 1}",
        f"{'e' * 40} tree 200",
        f"{'f' * 40} missing",
    ]
    assert listing.small_objects("\n".join(rows).encode()) == [ID, "c" * 40]


def test_pointers_are_told_by_their_content() -> None:
    pointer, other = listing.POINTER + b"oid sha256:1\n", b"# " + listing.POINTER
    output = b"".join(
        f"{object_id} blob {len(data)}\n".encode() + data + b"\n"
        for object_id, data in ((ID, pointer), (OTHER, other), ("c" * 40, pointer))
    )
    assert list(listing.pointer_objects(output)) == [ID, "c" * 40]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["a", "a.b", "a-b/c", "...", "..a/b", ".github/x", ".gitignore", "x/.git.py"], None),
        (["a/../b"], "a/../b"),
        ([".."], ".."),
        (["./a"], "./a"),
        (["a//b"], "a//b"),
        (["/etc/passwd"], "/etc/passwd"),
        ([".git/config"], ".git/config"),
        (["a/.GIT/config"], "a/.GIT/config"),
        (["a", "a"], "a"),
        (["link", "b", "link/c/d"], "link"),
    ],
)
def test_forbidden_path(paths: list[str], found: str | None) -> None:
    assert listing.forbidden_path(paths) == found
