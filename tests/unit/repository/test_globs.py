"""Globs, held against what pathlib finds in a real tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.repository.globs import first_match, matches, names

CASES = [
    # pattern, path, names the path, names it or a directory above
    ("a", "a", True, True),
    ("a", "a/b", False, True),
    ("a/", "a/b", False, True),
    ("./a", "a", True, True),
    ("a", "ab", False, False),
    ("*.md", "README.md", True, True),
    ("*.md", "docs/a.md", False, False),
    ("**/*.md", "README.md", True, True),
    ("**/*.md", "docs/a/b.md", True, True),
    ("docs/**", "docs", True, True),
    ("docs/**", "docs/a/b.md", True, True),
    ("docs/**", "docsx/a", False, False),
    ("docs/**/x", "docs/x", True, True),
    ("docs/**/x", "docs/a/b/x", True, True),
    ("docs/**/x", "docs/a/b/xy", False, False),
    ("docs/*", "docs/a/b", False, True),
    ("a?c", "abc", True, True),
    ("a?c", "a/c", False, False),
    ("[ab]", "b", True, True),
    ("[!ab]", "b", False, False),
    ("[!ab]", "c", True, True),
    ("[]]", "]", True, True),
    ("[^a]", "a", True, True),
    ("[^a]", "b", False, False),
    ("[a-c]x", "bx", True, True),
    ("[", "[", True, True),
    ("a.b", "axb", False, False),
    ("a+(b)", "a+(b)", True, True),
    ("**", "a/b", True, True),
    (".", "a/b", False, True),
    (".", ".", True, True),
    ("a\nb", "a\nb", True, True),
    ("*", "a\nb", True, True),
    (".github", ".github/x.yml", False, True),
    ("*", ".hidden", True, True),
]


@pytest.mark.parametrize(
    ("pattern", "path", "exactly", "above"), CASES, ids=[f"{c[0]!r}-{c[1]!r}" for c in CASES]
)
def test_what_a_glob_names(pattern: str, path: str, exactly: bool, above: bool) -> None:
    assert (names(pattern, path), matches(pattern, path)) == (exactly, above)


@pytest.mark.parametrize("pattern", ["*", "**", "a/*", "a/**", "**/b", "a/**/c", "*/b*", "[ab]/?", "**/**"])
def test_directories_are_those_that_pathlib_finds(tmp_path: Path, pattern: str) -> None:
    for path in ("a/b/c/d", "b/a", "bb/b", "a/c", "x/b/bc"):
        (tmp_path / path).mkdir(parents=True)
    every = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob(pattern)} - {"."}
    assert {path for path in every if names(pattern, path)} == found


@given(st.text("ab*?[]!^-/.\\&~|\n", max_size=8), st.text("ab/]^-", max_size=6))
def test_any_text_is_a_glob_or_no_match(pattern: str, path: str) -> None:
    try:
        found = names(pattern, path)
    except re.error:
        pytest.fail("a pattern that can't be compiled")
    assert not found or matches(pattern, path)


def test_the_first_of_several_is_told() -> None:
    assert first_match(["x", "a*", "ab"], "ab/c") == "a*"
    assert first_match([], "ab") is None
