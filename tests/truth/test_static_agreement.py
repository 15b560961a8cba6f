"""The static reading against what pytest itself collected, over the trees in `cases/`.

A ratchet: no file that pytest collects is lost, and the differences in functions and marks are exactly the
tables below. `pytest -s` prints recall and precision.
"""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, Node
from gpuci.discovery.discover import discover
from gpuci.model import Manifest
from gpuci_node.contract import function_id

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.name for path in CASES.iterdir())

# Functions that pytest collects and the reading doesn't see. Their files are opaque: planned whole.
MISSED = {
    "dynamic_class": "classes made by type() and by a factory",
    "hook_makeitem": "a conftest hook collects functions by another name",
    "loop_defs": "functions put into globals() and locals(), and by exec()",
    "unittest_device_fn": "a method added by setattr()",
    "unittest_instantiate": "classes made into globals()",
    "unittest_param_expand": "a decorator that writes into the frame of the class",
    "doctest_glob": "doctests: one target stands for the file",
    "doctest_modules": "doctests: one target stands for the file",
}
# Functions that are read, but that pytest doesn't collect.
EXTRA = {
    "collect_ignore_conditional": "collect_ignore is filled by conditions",
    "deep_package_names": "the file name can't be imported (a collection error)",
    "doctest_glob": "doctests: one target stands for the file",
    "doctest_modules": "doctests: one target stands for the file",
    "dup_basename_append": "equal file names in one session (a collection error)",
    "import_error": "the module can't be imported (a collection error)",
    "mark_class_tuple": "a tuple as pytestmark of a class (a collection error)",
    "mark_importorskip": "the module is skipped when it is imported",
    "mark_init_skip": "the package is skipped when it is imported",
    "mark_module_tuple": "a tuple as pytestmark (a collection error)",
    "mark_on_fixture": "a mark on a fixture (a collection error)",
    "mark_skip_module": "the module is skipped when it is imported",
    "mark_skip_module_noflag": "pytest.skip() without allow_module_level (a collection error)",
    "param_default_arg": "a parametrized argument with a default (a collection error)",
    "param_duplicate_arg": "an argument parametrized twice (a collection error)",
    "param_wrong_ids": "too few ids (a collection error)",
    "unittest_instantiate": "the class is taken out of globals()",
    "yield_test": "a generator as a test (a collection error)",
}
# Functions whose marks differ.
MARKS = {
    "mark_hook_modifyitems": "a conftest hook adds marks",
    "mark_module_conditional": "both branches of a condition count",
    "mark_module_set_or_generator": "a comprehension of marks: the file is opaque",
    "mark_param_fixture_marks": "marks on the parameters of a fixture",
    "mark_plugins_module": "a hook of a plugin module adds marks",
    "param_empty": "pytest adds a skip for an empty list of parameters",
    "param_empty_computed": "pytest adds a skip for an empty list of parameters",
}


class Agreement(NamedTuple):
    """A case as pytest and as the manifest see it: function id -> mark names (None: not recorded)."""

    pytest: dict[str, list[str] | None]
    read: dict[str, list[str]]
    manifest: Manifest


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trees without the files that describe them."""
    root = tmp_path_factory.mktemp("cases")
    ignored = shutil.ignore_patterns("case.json", "expected*.json", "__pycache__", ".pytest_cache")
    shutil.copytree(CASES, root, dirs_exist_ok=True, ignore=ignored)
    return root


@cache
def agreement(trees: Path, name: str) -> Agreement:
    """Read one case both ways."""
    case = json.loads((CASES / name / "case.json").read_text("utf-8"))
    expected = json.loads((CASES / name / "expected.json").read_text("utf-8"))
    config = Config(markers=DEFAULT_MARKERS, node=Node(pytest_args=tuple(case["args"])))
    manifest = discover(trees / name, config)
    read = {target.nodeid: [marker.name for marker in target.markers] for target in manifest.targets}
    return Agreement(_collected(expected), read, manifest)


def _collected(expected: dict[str, Any]) -> dict[str, list[str] | None]:
    found: dict[str, list[str] | None] = {function_id(nodeid): None for nodeid in expected["deselected"]}
    for item in expected["items"]:
        names = [mark["name"] for mark in item["markers"]]
        known = found.get(function_id(item["nodeid"])) or []
        found[function_id(item["nodeid"])] = known + [name for name in names if name not in known]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_file_that_pytest_collects_is_lost(trees: Path, name: str) -> None:
    """Each file with an item is planned."""
    case = agreement(trees, name)
    files = {nodeid.partition("::")[0] for nodeid in case.pytest}
    assert files <= set(case.manifest.files)


@pytest.mark.parametrize("name", NAMES)
def test_functions_differ_only_where_the_tables_say_so(trees: Path, name: str) -> None:
    """Missed and extra functions are known, and a file with missed ones is opaque."""
    case = agreement(trees, name)
    restricted = name.startswith("args_nodeid")  # an argument selects single tests of a file
    missed = set(case.pytest) - set(case.read)
    extra = set() if restricted else set(case.read) - set(case.pytest)
    assert (bool(missed), bool(extra)) == (name in MISSED, name in EXTRA), (missed, extra)
    opaque = {path for root in case.manifest.roots for path in root.opaque}
    assert {nodeid.partition("::")[0] for nodeid in missed} <= opaque


@pytest.mark.parametrize("name", NAMES)
def test_marks_differ_only_where_the_table_says_so(trees: Path, name: str) -> None:
    """Names of marks agree, the closest first."""
    case = agreement(trees, name)
    differing = {
        nodeid: (marks, case.read[nodeid])
        for nodeid, marks in case.pytest.items()
        if marks is not None and nodeid in case.read and set(marks) != set(case.read[nodeid])
    }
    assert bool(differing) == (name in MARKS), differing


ORDERED = (
    "mark_class_both",
    "mark_helper_deco",
    "mark_mro_other_module",
    "mark_mro_same_name",
    "mark_nested_class",
    "mark_repeated",
    "mark_wraps",
)


@pytest.mark.parametrize("name", ORDERED)
def test_marks_stand_in_the_order_of_pytest(trees: Path, name: str) -> None:
    """Closest first, repeated ones too; on one object in the order in which they were applied."""
    items = json.loads((CASES / name / "expected.json").read_text("utf-8"))["items"]
    case = agreement(trees, name)
    assert items
    for item in items:
        assert case.read[function_id(item["nodeid"])] == [mark["name"] for mark in item["markers"]]


def test_the_rates_are_printed(trees: Path) -> None:
    """Recall and precision over all cases; the tables above are the exact ratchet."""
    cases = [agreement(trees, name) for name in NAMES]
    both = sum(len(set(case.pytest) & set(case.read)) for case in cases)
    there, read = (
        sum(len(ids) for ids in side) for side in zip(*((c.pytest, c.read) for c in cases), strict=True)
    )
    pairs = [
        (set(marks), set(case.read[nodeid]))
        for case in cases
        for nodeid, marks in case.pytest.items()
        if marks is not None and nodeid in case.read
    ]
    marks = sum(len(left & right) for left, right in pairs)
    mark_recall = marks / sum(len(left) for left, _ in pairs)
    mark_precision = marks / sum(len(right) for _, right in pairs)
    print(f"\nfunctions: recall {both / there:.3f}, precision {both / read:.3f}", end="; ")
    print(f"marks: recall {mark_recall:.3f}, precision {mark_precision:.3f}")
    assert both / there > 0.9
    assert both / read > 0.9
    assert mark_recall > 0.9
    assert mark_precision > 0.9
