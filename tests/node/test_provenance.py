"""A package that the tree has and Python finds elsewhere is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuci_node.worker.provenance import packages

TREE = {"pyproject.toml": "", "src/shop/__init__.py": "", "tests/test_a.py": "def test_1(): import shop\n"}
TOPIC = "not_the_tree"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A directory of an image, with the package of the day when that was built."""
    (tmp_path / "image" / "shop").mkdir(parents=True)
    (tmp_path / "image" / "shop" / "__init__.py").write_text("")
    return tmp_path / "image"


def test_an_older_copy_in_the_image_is_named(
    run_tree: Any, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed))
    ran = run_tree(TREE)
    texts = {record["text"] for record in ran.records("note", topic=TOPIC)}
    assert texts == {f"tests get shop from {installed}/shop/__init__.py, not from the tree's src/shop"}
    assert any("tests get shop from" in line for line in ran.report.warnings)


@pytest.mark.parametrize(
    ("more", "pythonpath"),
    [
        ({"pytest.ini": "[pytest]\npythonpath = src\n"}, "{image}"),
        ({"conftest.py": "import sys, os\nsys.path.insert(0, os.path.abspath('src'))\n"}, "{image}"),
        ({}, "{tree}/src"),
        ({}, ""),
    ],
    ids=["pytest's pythonpath", "a conftest's sys.path", "the environment's", "not to be found at all"],
)
def test_a_package_of_the_tree_is_not(
    run_tree: Any, installed: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], pythonpath: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", pythonpath.format(image=installed, tree=run_tree.root))
    config_file = "pytest.ini" if "pytest.ini" in more else None
    ran = run_tree({**TREE, **more}, config_file=config_file)
    assert ran.records("note", topic=TOPIC) == []


def test_packages_of_a_root(tmp_path: Path) -> None:
    for path in (
        "a/__init__.py",
        "src/b/__init__.py",
        "tests/__init__.py",
        "no/module.py",
        "x-y/__init__.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    assert [name for name, _ in packages(str(tmp_path))] == ["a", "b"]
