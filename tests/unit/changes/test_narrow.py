"""The part of a manifest that is due."""

from __future__ import annotations

import pytest

from gpuci.changes.narrow import narrowed
from gpuci.model import Manifest, Root, SourceError, TestTarget

PATHS = ("a/test_x.py", "a/b/test_y.py", "ab/test_z.py")
MANIFEST = Manifest(
    tuple(TestTarget(f"{path}::test", path, None, "test", None, path.partition("/")[0]) for path in PATHS),
    (Root("a", files=PATHS[:2], opaque={PATHS[0]: "x", PATHS[1]: "y"}), Root("ab", files=PATHS[2:])),
    tuple(SourceError(path, 1, "x") for path in PATHS),
)


@pytest.mark.parametrize(
    ("packages", "kept"),
    [
        (["."], PATHS),
        (["a"], PATHS[:2]),
        (["a/b", "ab"], PATHS[1:]),
        (["a/test_x.py"], PATHS[:1]),
        (["b", "test_x.py"], ()),
        ([], ()),
    ],
)
def test_what_is_below(packages: list[str], kept: tuple[str, ...]) -> None:
    found = narrowed(MANIFEST, packages)
    assert tuple(target.test_path for target in found.targets) == kept
    assert found.files == kept
    assert tuple(error.path for error in found.errors) == kept
    assert all(set(root.opaque) <= set(root.files) for root in found.roots)
    assert all(root.files for root in found.roots)
