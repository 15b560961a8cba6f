"""What `gpuci verify` finds."""

from pathlib import Path

import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, MarkerRule
from gpuci.discovery.discover import discover
from gpuci.discovery.verify import Problem, verify

TEST = "import pytest\n@pytest.mark.gpu\ndef test_a(): ...\n"
GOOD = {"a/pytest.ini": "[pytest]\nmarkers =\n  gpu: one\n  slow: x\n", "a/test_m.py": TEST}


def problems(root: Path, files: dict[str, str], **settings: object) -> list[Problem]:
    """The problems of a tree."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    values = {"packages": ("a",), "markers": DEFAULT_MARKERS, **settings}
    config = Config(**values)  # type: ignore[arg-type]
    return verify(root, config, discover(root, config, jobs=1))


def test_a_good_tree_has_no_problem(tmp_path: Path) -> None:
    """The tree that the other cases change."""
    assert problems(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("files", "settings", "expected"),
    [
        pytest.param(
            {}, {"packages": ("a", "gone")}, Problem("", 0, "packages: 'gone' matches nothing"), id="entry"
        ),
        pytest.param(
            {}, {"packages": ("a", "x*")}, Problem("", 0, "packages: 'x*' matches nothing"), id="glob"
        ),
        pytest.param(
            {},
            {"modes": (("a/test_m.py", "serial"), ("a/old", "skip"))},
            Problem("", 0, "modes: skip: 'a/old' matches no test"),
            id="mode",
        ),
        pytest.param(
            {"b/test_n.py": TEST},
            {},
            Problem("b/test_n.py", 1, "is named like a test file, but no entry of packages holds it"),
            id="out of reach",
        ),
        pytest.param(
            {"a/conftest.py": "import pytest\npytestmark = pytest.mark.gpu\n"},
            {},
            Problem("a/conftest.py", 2, "pytestmark in conftest.py has no effect: pytest ignores it there"),
            id="pytestmark in conftest.py",
        ),
        pytest.param(
            {"a/__init__.py": "\npytestmark = []\n"},
            {},
            Problem("a/__init__.py", 2, "pytestmark in __init__.py has no effect: pytest ignores it there"),
            id="pytestmark in __init__.py",
        ),
        pytest.param(
            {"a/test_n.py": "import pytest\n\n@pytest.mark.gpuu\ndef test_b(): ...\n"},
            {},
            Problem("a/test_n.py", 4, "mark 'gpuu' is registered nowhere"),
            id="unregistered",
        ),
        pytest.param(
            {"a/pytest.ini": "[pytest]\nmarkers =\n  gpu: one\n  require_8_gpus: x\n"},
            {},
            Problem(
                "a/pytest.ini", 1, "mark 'require_8_gpus' is registered, but `markers` says nothing of it"
            ),
            id="registered but unknown",
        ),
        pytest.param(
            {},
            {"markers": (*DEFAULT_MARKERS, MarkerRule("a100", gpus=1))},
            Problem("", 0, "markers: no test carries a mark 'a100'"),
            id="unused rule",
        ),
        pytest.param(
            {"a/test_n.py": "def test_b(:\n"},
            {},
            Problem("a/test_n.py", 1, "is not Python: invalid syntax"),
            id="no Python",
        ),
    ],
)
def test_problems(
    tmp_path: Path, files: dict[str, str], settings: dict[str, object], expected: Problem
) -> None:
    """One change, one problem."""
    assert problems(tmp_path, {**GOOD, **files}, **settings) == [expected]


def test_marks_registered_by_a_conftest_are_registered(tmp_path: Path) -> None:
    """By addinivalue_line, for the tests of its root."""
    conftest = "def pytest_configure(config):\n    config.addinivalue_line('markers', 'own(n): x')\n"
    test = "import pytest\n@pytest.mark.own(1)\n@pytest.mark.skip\ndef test_b(): ...\n"
    assert problems(tmp_path, {**GOOD, "a/conftest.py": conftest, "a/test_n.py": test}) == []


def test_where_nothing_is_registered_nothing_is_missed(tmp_path: Path) -> None:
    """A project that doesn't register marks gets no list of all of them."""
    assert problems(tmp_path, {"a/test_m.py": TEST.replace("gpu", "anything")}) == []


@pytest.mark.parametrize(
    ("mark", "number"), [("gpu(2)", "2"), ("gpu", ""), ("gpu('a100')", ""), ("sequential(2)", "")]
)
def test_a_number_that_nobody_reads_is_named_once(tmp_path: Path, mark: str, number: str) -> None:
    tests = f"import pytest\npytestmark = pytest.mark.{mark}\ndef test_a(): ...\ndef test_b(): ...\n"
    found = problems(tmp_path, {**GOOD, "a/test_m.py": tests})
    told = [problem for problem in found if "number is not read" in problem.message]
    assert [(problem.path, f"gpu_{number}: {number}" in problem.message) for problem in told] == (
        [("a/test_m.py", True)] if number else []
    )
