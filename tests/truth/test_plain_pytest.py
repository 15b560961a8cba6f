"""Trees with the traits of monorepos: each test has the outcome that it has under plain pytest.

The trees are in `trees/`, one text file each: `-- path --` begins a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuci.model import Report
from gpuci_node.contract import RED_OUTCOMES

TREES = Path(__file__).parent / "trees"


@dataclass(frozen=True)
class Case:
    """A tree, how many tests it has of each outcome, and the roots in which plain pytest is started.

    `since` is the first pytest with the feature that the tree uses.
    """

    tree: str
    counts: dict[str, int]
    roots: tuple[str, ...] = (".",)
    args: tuple[str, ...] = ()
    since: tuple[int, ...] = (7,)


CASES = {
    "equal file names in two roots": Case("equal_names", {"passed": 2}, roots=("a", "b")),
    "an ini below": Case("ini_below", {"passed": 2, "failed": 1, "deselected": 1}, roots=(".", "below")),
    "conftests at several levels": Case("conftests", {"passed": 4, "error": 2}),
    "fixtures of all scopes": Case("scopes", {"passed": 5, "error": 3}),
    "a hook that reorders, deselects and marks": Case(
        "reorders", {"passed": 2, "deselected": 1, "xfailed": 1, "failed": 1}
    ),
    "fixtures with parameters": Case("parametrized", {"passed": 21, "failed": 8, "skipped": 4}),
    "unittest": Case("unittest_classes", {"passed": 5, "failed": 2, "xfailed": 2, "skipped": 3, "error": 3}),
    "subtests": Case("subtests", {"passed": 3, "failed": 2}, since=(9,)),
    "reruns": Case("reruns", {"passed": 2, "failed": 1}),
    "strict xfail": Case("xfail", {"xfailed": 5, "failed": 3, "xpassed": 1, "error": 2}),
    # older ones look for `-p` plugins before they read `pythonpath`
    "a strict plugin of the project": Case(
        "project_plugin", {"passed": 4, "failed": 2, "skipped": 2}, since=(8, 4)
    ),
    "broken files": Case("broken", {"passed": 2, "collection_error": 3, "skipped": 1}),
    "-k": Case("scopes", {"passed": 3, "deselected": 5}, args=("-k", "not test_broken and not TestB")),
    "odd names": Case("odd_names", {"passed": 11, "failed": 2, "skipped": 1}),
    "every need of a GPU": Case("gpu_marks", {"passed": 9, "failed": 2, "xfailed": 1, "skipped": 2}),
}


def files_of(tree: str) -> dict[str, str]:
    """Path -> text."""
    text = (TREES / f"{tree}.txtar").read_text(encoding="utf-8")
    _, *parts = re.split(r"^-- (.+) --\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_outcome_is_plain_pytests(
    case: Case,
    versions: Any,
    write_tree: Callable[[dict[str, str]], Path],
    run_tree: Callable[..., Report],
    run_plain: Callable[..., dict[str, str]],
) -> None:
    if versions.pytest < case.since:
        pytest.skip(f"comes with pytest {'.'.join(map(str, case.since))}")
    root = write_tree(files_of(case.tree))
    report = run_tree(root, args=case.args, packages=case.roots)
    ours = {test.nodeid: test.outcome for test in report.tests}
    assert ours == run_plain(root, args=case.args, roots=case.roots)
    assert Counter(ours.values()) == case.counts  # the tree shows what it was written to show
    assert report.verdict == ("failed" if case.counts.keys() & RED_OUTCOMES else "passed")


def test_every_tree_is_used() -> None:
    assert {path.stem for path in TREES.iterdir()} == {case.tree for case in CASES.values()}
