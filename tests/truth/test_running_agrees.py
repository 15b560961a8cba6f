"""Running a tree by plan gives every test the outcome that it has in one plain pytest session.

Each case holds a small tree and what pytest did there (`expected*.json`, recorded with Python 3.11).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuci.model import Report
from gpuci_node.contract import RAN_OUTCOMES, RED_OUTCOMES

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.parent.name for path in CASES.glob("*/case.json"))
RECORDED = ("7.4.4", "8.4.2", "9.2.0")
# The ids of enum members come from str(), which says something else of IntEnum and Flag in older Pythons.
SINCE_PYTHON = {"param_enum": (3, 11)}
# Cases whose files are cut between all of their functions: the pieces together are the file.
CUT = (
    "args_nodeid_param",
    "encoding",
    "function_kinds",
    "mark_deselect_addopts",
    "mark_skip_variants",
    "param_duplicates",
    "param_scoped_order",
    "param_wrong_ids",
    "redefined",
    "unittest_inherit",
    "yield_test",
)
# One session can't import two files of one name there. A process per file can, and that is the point.
PASSES_PER_FILE = "dup_basename_append"
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "failed@setup": "error",
    "skipped": "skipped",
    "skipped@setup": "skipped",
    "xskipped": "xfailed",
    "xskipped@setup": "xfailed",
    "xpassed": "xpassed",
}

USAGE_ERROR = 4  # pytest's exit code
# (case, version) -> node id -> our outcome (None: not reported), where ours is to differ.
OURS: dict[tuple[str, str], dict[str, str | None]] = {
    # pytest 7.4 reads a package's marks when the first test below it is set up: that one passes, those
    # behind it in the same process skip. Here each of the two files has a process and a first test.
    ("mark_init_two_tests", "7.4.4"): {"sub/test_n.py::test_c": "passed"},
    # pytest 7.4 knows a virtual environment by its activate script only; we never enter one.
    ("norecursedirs_default", "7.4.4"): {"realvenv/test_l.py::test_l": None},
}

RunCase = Callable[..., Report]


def recorded(case: Path, versions: Any) -> dict[str, Any]:
    """What that version did: a file of its own stands only where it differs from 9.2.0."""
    version = ".".join(map(str, versions.pytest))
    if version not in RECORDED:
        pytest.skip(f"pytest {version} was not recorded, only {', '.join(RECORDED)}")
    own = case / f"expected-pytest{version}.json"
    document: dict[str, Any] = json.loads((own if own.exists() else case / "expected.json").read_text())
    return document


def expected_outcomes(document: dict[str, Any]) -> dict[str, str]:
    """Node id -> outcome, in our words; collectors that failed or skipped have their own ids."""
    if document["exitstatus"] == USAGE_ERROR:
        # pytest refused its arguments and ran nothing: said once for each file.
        return {item["nodeid"].partition("::")[0]: "collection_error" for item in document["items"]}
    ours = OURS.get((document["case"], document["pytest"]), {})
    outcomes = {**plain_outcomes(document), **ours}
    return {nodeid: outcome for nodeid, outcome in outcomes.items() if outcome is not None}


def plain_outcomes(document: dict[str, Any]) -> dict[str, str]:
    """The recorded outcomes in our words."""
    return {
        **dict.fromkeys(document["deselected"], "deselected"),
        **{entry["nodeid"]: "collection_error" for entry in document["errors"]},
        **{entry["nodeid"]: "skipped" for entry in document["collect_skipped"]},
        **{nodeid: OUTCOMES[outcome] for nodeid, outcome in document["outcomes"].items()},
    }


def expected_verdict(outcomes: dict[str, str]) -> str:
    """Red if anything is, and if nothing ran."""
    found = set(outcomes.values())
    return "passed" if found & RAN_OUTCOMES and not found & RED_OUTCOMES else "failed"


def outcomes_of(report: Report) -> dict[str, str]:
    """What was reported, without what was planned but is no test for pytest."""
    return {test.nodeid: test.outcome for test in report.tests if test.outcome != "not_collected"}


@pytest.fixture
def run_case(run_tree: Callable[..., Report], tmp_path: Path) -> RunCase:
    """Run a copy of a case with its arguments."""

    def run(name: str, *, cut: bool = False) -> Report:
        tree = tmp_path / name
        shutil.copytree(
            CASES / name, tree, ignore=shutil.ignore_patterns("case.json", "expected*.json", "__pycache__")
        )
        args = json.loads((CASES / name / "case.json").read_text())["args"]
        return run_tree(tree, args=tuple(args), cut=cut)

    return run


@pytest.mark.parametrize("name", [name for name in NAMES if name != PASSES_PER_FILE])
def test_every_outcome_is_plain_pytests(name: str, run_case: RunCase, versions: Any) -> None:
    if versions.python < SINCE_PYTHON.get(name, ()):
        pytest.skip("the recorded ids are those of a newer Python")
    expected = expected_outcomes(recorded(CASES / name, versions))
    report = run_case(name)
    assert outcomes_of(report) == expected
    assert report.verdict == expected_verdict(expected), report.reason


@pytest.mark.parametrize("name", CUT)
def test_the_pieces_of_a_file_are_the_file(name: str, run_case: RunCase, versions: Any) -> None:
    expected = expected_outcomes(recorded(CASES / name, versions))
    assert outcomes_of(run_case(name, cut=True)) == expected


def test_equal_file_names_pass_per_file(run_case: RunCase) -> None:
    report = run_case(PASSES_PER_FILE)
    assert outcomes_of(report) == {"a/test_m.py::test_a": "passed", "b/test_m.py::test_b": "passed"}
    assert report.verdict == "passed"
