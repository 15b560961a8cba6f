"""Links are followed as Linux would, held against Linux itself."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.repository.links import destination


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ({"a": "b"}, "b"),
        ({"d/a": "../b"}, "b"),
        ({"d/a": "./b/"}, "d/b"),
        ({"d/a": ".."}, "."),
        ({"a": "/etc/passwd"}, None),
        ({"a": "../x"}, None),
        ({"d/a": "../../x"}, None),
        ({"a": "a"}, None),
        ({"a": "b", "b": "a"}, None),
        ({"a": "b/c", "b": "d"}, "d/c"),
        ({"a": "b/../x", "b": "d/e"}, "d/x"),
        # By its text alone the first stays inside; by way of the second it leaves.
        ({"d/a": "b/../x", "d/b": ".."}, None),
        ({"a": "b/x", "b": "/tmp"}, None),
        ({"a": "b/x", "b": ".."}, None),
        ({"a": "x//y/./z"}, "x/y/z"),
    ],
    ids=str,
)
def test_where_the_first_link_leads(links: dict[str, str], expected: str | None) -> None:
    assert destination(next(iter(links)), links) == expected


PARTS = st.sampled_from(["a", "b", "c", "d", "..", "."])
TEXTS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)


@given(st.dictionaries(st.sampled_from(["l", "m", "d/l", "d/e/m", "d/e/n"]), TEXTS, min_size=1))
@settings(max_examples=200)
def test_the_kernel_goes_the_same_way(links: dict[str, str]) -> None:
    """Every path exists, so that the kernel follows each link to its end."""
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory).resolve() / "x" / "y" / "z" / "top"
        (top / "d/e").mkdir(parents=True)
        for path, text in links.items():
            (top / path).symlink_to(text)
        for path in links:
            ours = destination(path, links)
            if ours is not None:
                real = os.path.realpath(top / path)
                assert real == os.path.normpath(top / ours)
                assert real == str(top) or real.startswith(f"{top}/")
