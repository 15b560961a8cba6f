"""YAML as this project reads it: YAML 1.2's scalars, merge keys, places."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpuci.config.parse import parse
from gpuci.config.tree import Branch, Place, Scalar, Tree, key_place, place_of


def plain(tree: Tree) -> Any:
    """The values of a tree without places."""
    if isinstance(tree, Scalar):
        return tree.value
    if isinstance(tree, Branch):
        return {key: plain(value) for key, value in tree.entries.items()}
    return [plain(item) for item in tree.items]


def read(text: str) -> Any:
    """Parse without problems."""
    tree, problems = parse(text.encode(), "f.yml")
    assert problems == []
    return plain(tree)


SCALARS = [
    ("true", True),
    ("False", False),
    ("~", None),
    ("null", None),
    ("", None),
    ("0", 0),
    ("-12", -12),
    ("+7", 7),
    ("1.50", 1.5),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("2.5E-1", 0.25),
    ("'8'", "8"),
    ('"true"', "true"),
    ("!!str 8", "8"),
    ("!!int 8", 8),
    ("'<<'", "<<"),
]
STAYS_TEXT = [
    *("on", "off", "yes", "no", "y", "n", "tRue"),
    *("012", "0x1f", "0o17", "1_000", "9999999999999999999"),
    *(".inf", "-.inf", ".nan", ".", "+", "e3", "1e", "1e400", "1e3x", "3.10.1"),
    *("1:30", "12:30:45", "2020-01-01", "2001-12-14t21:59:43.10-05:00"),
    *("--", "=", "<"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text or "empty" for text, _ in SCALARS])
def test_scalars(text: str, value: object) -> None:
    found = read(f"key: {text}\n")["key"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", STAYS_TEXT)
def test_what_people_mean_as_text_stays_text(text: str) -> None:
    assert read(f"key: {text}\n")["key"] == text


@pytest.mark.parametrize("text", ["012", "3.10", "1e3", "true", "1:30", "0.0"])
def test_the_written_form_is_kept(text: str) -> None:
    tree, _ = parse(f"key: {text}".encode(), "f.yml")
    assert isinstance(tree, Branch)
    value = tree.entries["key"]
    assert isinstance(value, Scalar)
    assert value.text == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: &x {b: 1}\nc: &y {b: 2, d: 3}\ne: {<<: [*x, *y]}\n", {"b": 1, "d": 3}),
        ("a: &x {b: 1}\nc: &y {<<: *x, d: 3}\ne: {<<: *y}\n", {"b": 1, "d": 3}),
        ("a: 1\ne: {<<: {b: 1}}\n", {"b": 1}),
        ("a: &x [1, 2]\ne: *x\n", [1, 2]),
        ("a: &x text\ne: *x\n", "text"),
    ],
    ids=["own-key-wins", "first-source-wins", "chain", "inline", "list-alias", "scalar-alias"],
)
def test_anchors_and_merge_keys(text: str, value: Any) -> None:
    found = read(text)
    assert found == value or found["e"] == value


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# nothing\n", "---\n", "~", "null", "\ufeff", "{}", "%YAML 1.2\n---\n"]
)
def test_an_empty_file_is_an_empty_mapping(text: str) -> None:
    assert read(text) == {}


def test_places_count_from_one_and_skip_the_byte_order_mark() -> None:
    tree, _ = parse("\ufeffa: 1\nb:\n  - é: x\n    c: 2\n".encode(), "f.yml")
    assert place_of(tree, ("a",)) == Place("f.yml", 1, 4)
    assert place_of(tree, ("b", 0, "c")) == Place("f.yml", 4, 8)
    assert key_place(tree, ("b",)) == Place("f.yml", 2, 1)
    assert place_of(tree, ("b", 7, "nowhere")) == place_of(tree, ("b",))


def test_a_merged_value_keeps_the_place_where_it_is_written() -> None:
    tree, _ = parse(b"a: &x {b: 1}\nc: {<<: *x}\n", "f.yml")
    assert place_of(tree, ("c", "b")) == Place("f.yml", 1, 11)


SAFE = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], max_codepoint=0xFFFD), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | SAFE
VALUES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=3) | st.dictionaries(SAFE.filter(bool), below)
)


@given(st.dictionaries(SAFE.filter(bool), VALUES, max_size=5))
def test_what_a_yaml_writer_writes_is_read_back(value: dict[str, Any]) -> None:
    tree, problems = parse(yaml.safe_dump(value, allow_unicode=True).encode(), "f.yml")
    assert (plain(tree), problems) == (value, [])
    assert isinstance(tree, Branch)
    assert set(tree.keys) == set(value)
