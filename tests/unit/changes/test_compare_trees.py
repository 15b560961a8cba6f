"""What a selection reads of two listings."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gpuci.changes import read, toml
from gpuci.changes.read import Source, compare_trees
from gpuci.errors import ConfigError

LOCK = "version = 1\n"


class Texts(Source):
    """Objects whose ids are what they hold."""

    def contents(self, object_ids: Iterable[str]) -> dict[str, bytes]:
        return {text: text.encode() for text in object_ids}


@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        (("100644", LOCK), ("100644", LOCK + "#"), toml.READABLE),
        (None, ("100644", LOCK), False),
        (("100644", LOCK), None, False),
        (("100644", LOCK), ("120000", LOCK), False),
        (("120000", LOCK), ("100644", LOCK), False),
        (("100644", LOCK), ("160000", "a" * 40), False),
    ],
    ids=["changed", "new", "deleted", "became a link", "was a link", "became a submodule"],
)
def test_lock_files_are_compared_where_both_are_files(
    base: tuple[str, str] | None, head: tuple[str, str] | None, told: bool
) -> None:
    before, after = ({"a/uv.lock": one} if one else {} for one in (base, head))
    found = compare_trees(Texts(None), before, after)  # type: ignore[arg-type]
    assert list(found.locks) == ["a/uv.lock"]
    assert (found.locks["a/uv.lock"] is not None) == told


def test_one_text_in_many_places_counts_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one object, and would be read a million times."""
    monkeypatch.setattr(read, "MOST_BYTES", 1000)
    text = ("100644", "#" * 99)
    few = {f"p{number}/setup.py": text for number in range(10)}
    assert len(compare_trees(Texts(None), few, few).head.projects) == 10  # type: ignore[arg-type]
    for name in ("setup.py", "pyproject.toml", "pytest.ini"):
        with pytest.raises(ConfigError, match="more than 1,000 bytes"):
            compare_trees(Texts(None), {}, {f"p{number}/{name}": text for number in range(11)})  # type: ignore[arg-type]
