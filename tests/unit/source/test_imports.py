"""Where imports lead, over a listing of files."""

from collections.abc import Sequence

import pytest

from gpuci.source.imports import ImportFinder, join

FILES = (
    "conftest.py",
    "helpers.py",
    "src/lib/__init__.py",
    "src/lib/marks.py",
    "pkg/__init__.py",
    "pkg/common.py",
    "pkg/sub/__init__.py",
    "pkg/sub/test_n.py",
    "tests/unit/test_m.py",
    "tests/unit/local.py",
    "tests/data/plain.txt",
)


def names_in(directory: str) -> frozenset[str]:
    """The names in a directory of FILES."""
    prefix = f"{directory}/" if directory else ""
    return frozenset(path[len(prefix) :].split("/")[0] for path in FILES if path.startswith(prefix))


@pytest.mark.parametrize(
    ("module", "level", "importer", "bases", "found"),
    [
        pytest.param("local", 0, "tests/unit/test_m.py", [], "tests/unit/local.py", id="beside the test"),
        pytest.param("helpers", 0, "tests/unit/test_m.py", [], "helpers.py", id="further up"),
        pytest.param("lib.marks", 0, "tests/unit/test_m.py", ["src"], "src/lib/marks.py", id="base"),
        pytest.param("lib", 0, "tests/unit/test_m.py", ["src"], "src/lib/__init__.py", id="package"),
        pytest.param("lib", 0, "tests/unit/test_m.py", [], None, id="no base"),
        pytest.param("common", 1, "pkg/test_m.py", [], "pkg/common.py", id="relative"),
        pytest.param("common", 2, "pkg/sub/test_n.py", [], "pkg/common.py", id="two levels"),
        pytest.param("", 2, "pkg/sub/test_n.py", [], "pkg/__init__.py", id="the package above"),
        pytest.param("", 1, "tests/unit/test_m.py", [], None, id="no package"),
        pytest.param("common", 0, "pkg/sub/test_n.py", [], None, id="inside a package only relative"),
        pytest.param("pkg.common", 0, "pkg/sub/test_n.py", [], "pkg/common.py", id="absolute from inside"),
        pytest.param("up", 9, "pkg/sub/test_n.py", [], None, id="above the root"),
        pytest.param("torch.cuda", 0, "tests/unit/test_m.py", ["src"], None, id="outside"),
        pytest.param("tests.data.plain", 0, "helpers.py", [], None, id="no module"),
    ],
)
def test_find(module: str, level: int, importer: str, bases: Sequence[str], found: str | None) -> None:
    """The file of a module, or None."""
    assert ImportFinder(names_in, bases).find(module, level, importer) == found


@pytest.mark.parametrize(
    ("base", "name", "path"), [("", "a", "a"), (".", "a", "a"), ("b", "a", "b/a"), ("b", "", "b")]
)
def test_join(base: str, name: str, path: str) -> None:
    """The root is "" or "."."""
    assert join(base, name) == path
