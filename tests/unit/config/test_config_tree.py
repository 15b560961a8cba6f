"""Overlays, and how values look in messages."""

from __future__ import annotations

import pytest

from gpuci.config.parse import parse
from gpuci.config.tree import Place, Problem, Tree, error_of, overlay, printable, quoted
from gpuci.config.validate import validate

ANY = {"type": "object", "additionalProperties": {}}


def tree(text: str) -> Tree:
    """The tree of a text."""
    return parse(text.encode(), "f.yml")[0]


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ("{a: {b: 1, c: 2}}", "{a: {c: 3, d: 4}}", {"a": {"b": 1, "c": 3, "d": 4}}),
        ("{a: [1, 2]}", "{a: [3]}", {"a": [3]}),
        ("{a: 1, b: 2}", "{a: null}", {"a": None, "b": 2}),
        ("{a: {b: 1}}", "{a: text}", {"a": "text"}),
        ("{a: text}", "{a: {b: 1}}", {"a": {"b": 1}}),
        ("{a: 1}", "{}", {"a": 1}),
        ("{}", "{a: 1}", {"a": 1}),
        ("{a: {b: {c: 1, d: 2}}}", "{a: {b: {c: null}}}", {"a": {"b": {"c": None, "d": 2}}}),
    ],
    ids=["merge", "list", "null", "scalar-over", "mapping-over", "nothing-over", "over-nothing", "deep-null"],
)
def test_overlay(base: str, over: str, expected: dict[str, object]) -> None:
    data, problems = validate(overlay(tree(base), tree(over)), ANY)
    assert (data, problems) == (expected, [])


def test_overlay_keeps_the_order_of_the_base() -> None:
    data, _ = validate(overlay(tree("{b: 1, a: 1}"), tree("{c: 1, a: 2}")), ANY)
    assert list(data) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\u202etxt", "\\u202etxt"),
        ("\ud800", "\\ud800"),
        ("\x9b1m", "\\u009b1m"),
    ],
    ids=["plain", "lines", "escape", "bidi", "surrogate", "c1"],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown
    printable(text).encode()


def test_quoted_cuts_and_escapes() -> None:
    assert quoted('say "hi"') == '"say \\"hi\\""'
    assert quoted("x" * 100, limit=5) == '"xxxxx…"'


def test_error_of_sorts_by_place_and_names_a_problem_once() -> None:
    late, early = Problem(Place("b", 2, 1), "two"), Problem(Place("a\n", 10, 1), "one")
    page = error_of([late, early, late]).page()
    assert page.splitlines()[:3] == [
        "error: 2 problems in the configuration",
        "  a\\n:10:1: one",
        "  b:2:1: two",
    ]
