"""Symbolic links: followed as pytest follows them, except out of the tree and round in circles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuci.model import Report

FILES = {
    "pytest.ini": "[pytest]\n",
    "helper.py": "def test_h():\n    pass\n",
    "real/conftest.py": "import pytest\n@pytest.fixture\ndef base():\n    return 1\n",
    "real/test_a.py": "def test_a(base):\n    assert base == 1\ndef test_b():\n    assert not 'red'\n",
}
REAL = {"real/test_a.py::test_a": "passed", "real/test_a.py::test_b": "failed"}

# name -> (links: place -> target, what the links add in our runs, and what plain pytest has beyond that)
LINKS: dict[str, tuple[dict[str, str], dict[str, str], bool]] = {
    "file": (
        {"real/test_link.py": "test_a.py"},
        {"real/test_link.py::test_a": "passed", "real/test_link.py::test_b": "failed"},
        False,
    ),
    "file of another directory, whose conftest is not there": (
        {"other/test_link.py": "../real/test_a.py"},
        {"other/test_link.py::test_a": "error", "other/test_link.py::test_b": "failed"},
        False,
    ),
    "file whose own name is no test's": (
        {"real/test_link.py": "../helper.py"},
        {"real/test_link.py::test_h": "passed"},
        False,
    ),
    "directory": (
        {"again": "real"},
        {"again/test_a.py::test_a": "passed", "again/test_a.py::test_b": "failed"},
        False,
    ),
    "dangling": ({"real/test_link.py": "nothing.py", "gone": "nowhere"}, {}, False),
    "circle of two": ({"real/test_x.py": "test_y.py", "real/test_y.py": "test_x.py"}, {}, False),
    "loop": ({"real/loop": "."}, {}, True),
    "loop to the top": ({"real/loop": ".."}, {}, True),
    "file out of the tree": ({"real/test_link.py": "../../outside/test_o.py"}, {}, True),
    "directory out of the tree": ({"out": "../outside"}, {}, True),
}


def write_links(tree: Path, links: dict[str, str]) -> None:
    for place, target in links.items():
        (tree / place).parent.mkdir(exist_ok=True)
        (tree / place).symlink_to(target)


@pytest.mark.parametrize(("links", "added", "plain_has_more"), LINKS.values(), ids=LINKS)
def test_links_are_followed_inside_the_tree(
    links: dict[str, str],
    added: dict[str, str],
    plain_has_more: bool,
    write_tree: Callable[[dict[str, str]], Path],
    run_tree: Callable[..., Report],
    run_plain: Callable[..., dict[str, str]],
) -> None:
    tree = write_tree({**FILES, "../outside/test_o.py": "def test_o():\n    pass\n"})
    write_links(tree, links)
    ours = {test.nodeid: test.outcome for test in run_tree(tree).tests}
    plain = run_plain(tree)
    assert ours == {**REAL, **added}
    assert ours.items() <= plain.items()
    assert (len(plain) > len(ours)) == plain_has_more


def test_a_root_that_is_a_link_runs_under_its_own_name(
    write_tree: Callable[[dict[str, str]], Path],
    run_tree: Callable[..., Report],
    run_plain: Callable[..., dict[str, str]],
) -> None:
    files = {f"packages/{path}": text for path, text in FILES.items()}
    broken = "class TestBad:\n    pytestmark = (1,)\n    def test_c(self):\n        pass\n"
    tree = write_tree({**files, "packages/real/test_bad.py": broken})
    write_links(tree, {"linked": "packages"})
    report = run_tree(tree, packages=("linked",))
    ours = {test.nodeid: test.outcome for test in report.tests}
    assert ours == run_plain(tree, roots=("linked",))
    assert sorted(ours) == [
        "linked/real/test_a.py::test_a",
        "linked/real/test_a.py::test_b",
        "linked/real/test_bad.py::TestBad",
    ]
    assert {test.file for test in report.tests} == {"linked/real/test_a.py", "linked/real/test_bad.py"}


def test_a_tree_may_lie_behind_a_link(
    write_tree: Callable[[dict[str, str]], Path], run_tree: Callable[..., Report], tmp_path: Path
) -> None:
    write_tree(FILES)
    (tmp_path / "link").symlink_to("tree")
    report = run_tree(tmp_path / "link")
    assert {test.nodeid: test.outcome for test in report.tests} == REAL
    assert {(test.file, test.line) for test in report.tests} == {
        ("real/test_a.py", 1),
        ("real/test_a.py", 4),
    }
