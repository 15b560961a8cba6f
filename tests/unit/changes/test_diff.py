"""Two listings -> changed paths."""

from __future__ import annotations

import pytest

from gpuci.changes.diff import differing
from gpuci.changes.model import FileChange

FILE, PROGRAM, LINK, MODULE = ("100644", "1"), ("100755", "1"), ("120000", "1"), ("160000", "1")


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, FILE, "added"),
        (FILE, None, "deleted"),
        (FILE, ("100644", "2"), "modified"),
        (FILE, PROGRAM, "modified"),
        (FILE, LINK, "type"),
        (LINK, ("120000", "2"), "modified"),
        (MODULE, ("160000", "2"), "modified"),
        (FILE, MODULE, "type"),
        (FILE, FILE, None),
    ],
)
def test_a_path(before: tuple[str, str] | None, after: tuple[str, str] | None, kind: str | None) -> None:
    base = {"same": FILE} | ({"x": before} if before else {})
    head = {"same": FILE} | ({"x": after} if after else {})
    assert differing(base, head) == ((FileChange("x", kind),) if kind else ())
