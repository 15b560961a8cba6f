"""Files whose tests a reading can't see: each one that pytest finds a test in is planned."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuci.config.model import Config
from gpuci.discovery.discover import discover

HELPER = "def make():\n class X(unittest.TestCase):\n  def test_a(self): ...\n return X\n"
META = (
    "class M(type):\n def __new__(m, n, b, d):\n  d['test_x'] = lambda self: None\n"
    "  return super().__new__(m, n, b, d)\n"
)
# Name -> source. `outside` is a package that pytest can import and that is not below ROOT.
SOURCES = {
    "if_not_main": 'if __name__ != "__main__":\n def test_a(): ...',
    "if_own_name": 'if __name__ == "test_if_own_name":\n def test_a(): ...',
    "else_of_main": 'if "__main__" == __name__:\n pass\nelse:\n def test_a(): ...',
    "helper_writes_globals": "def g():\n globals()['test_a'] = lambda: None\ng()",
    "update_assigned": "_ = globals().update(test_a=lambda: None)",
    "sys_modules": "import sys\nsys.modules[__name__].test_a = lambda: None",
    "sys_modules_named": "import sys\nme = sys.modules[__name__]\nme.test_a = lambda: None",
    "sys_modules_dict": "import sys\nsys.modules[__name__].__dict__['test_a'] = lambda: None",
    "star_outside": "from outside import *",
    "star_list_grows": "from helper_all import *",
    "star_list_conditional": "from helper_if import *",
    "imported_case": "from outside import SomeTestCase",
    "metaclass": f"import unittest\n{META}class Foo(unittest.TestCase, metaclass=M): ...",
    "type_call": "import unittest\nFoo = type('Foo', (unittest.TestCase,), {'test_a': lambda self: None})",
    "made_by_helper": f"import unittest\n{HELPER}Foo = make()",
    "inner_case": "from helper_case import Machine\nFoo = Machine.TestCase",
    "partialmethod": "import functools, unittest\nclass A(unittest.TestCase):\n"
    " def c(self, n): ...\n test_a = functools.partialmethod(c, 2)",
    "method_from_outside": "import outside\nclass TestA:\n test_a = outside.make()",
    "off_by_condition": "if not len:\n __test__ = False\ndef test_a(): ...",
    "off_by_except": "try:\n import os\nexcept ImportError:\n __test__ = False\ndef test_a(): ...",
    "function_off_by_condition": "def test_a(): ...\nif not len:\n test_a.__test__ = False",
    "class_off_by_condition": "class TestA:\n if not len:\n  __test__ = False\n def test_a(self): ...",
    "loop_variable": "def f(): ...\nfor test_a in [f]: ...",
    "walrus": "if test_a := (lambda: None): ...",
}
OTHERS = {
    "helper_all.py": "__all__ = []\ndef test_a(): ...\n__all__.append('test_a')",
    "helper_if.py": "def test_a(): ...\ndef x(): ...\n__all__ = ['test_a']\nif not len:\n __all__ = ['x']",
    "helper_case.py": "import unittest\nclass Machine:\n"
    " class TestCase(unittest.TestCase):\n  def test_a(self): ...",
}
OUTSIDE = """
import unittest
def test_a(): ...
class SomeTestCase(unittest.TestCase):
 def test_a(self): ...
def make():
 return lambda self: None
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file per source."""
    root = tmp_path_factory.mktemp("lost")
    (root / "outside.py").write_text(OUTSIDE)
    for name, source in {**OTHERS, **{f"test_{name}.py": source for name, source in SOURCES.items()}}.items():
        (root / "tree").mkdir(exist_ok=True)
        (root / "tree" / name).write_text(source)
    return root


@pytest.fixture(scope="module")
def collected(tree: Path) -> set[str]:
    """The files in which pytest finds a test."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "."]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree / "tree", env=environment, capture_output=True, text=True)
    return {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_with_a_test_is_planned(tree: Path, collected: set[str], name: str) -> None:
    """Whole, if none of its tests can be seen."""
    path = f"test_{name}.py"
    manifest = discover(tree / "tree", Config(packages=(path,)), jobs=1)
    assert path in collected
    assert manifest.files == (path,)
    assert manifest.targets or path in manifest.roots[0].opaque


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("", id="empty"),
        pytest.param("import pytest\n\ndef helper(): ...\n", id="helpers only"),
        pytest.param("from helper_star import *\n", id="star of the tree"),
    ],
)
def test_a_file_that_speaks_of_no_test_is_not(tmp_path: Path, source: str) -> None:
    """Most files of a root with `python_files = *.py` are such."""
    (tmp_path / "helper_star.py").write_text("x = 1\n")
    (tmp_path / "test_m.py").write_text(source)
    assert discover(tmp_path, Config(), jobs=1).files == ()


@pytest.mark.parametrize(
    ("source", "ini"),
    [
        pytest.param("g('check_a')", "python_functions = check_* it", id="prefix of a glob"),
        pytest.param("g('a_check')", "python_functions = *_check", id="end of a glob"),
        pytest.param("g('RightSpec')", "python_classes = [LR]*Spec", id="brackets"),
    ],
)
def test_the_words_are_those_of_the_root(tmp_path: Path, source: str, ini: str) -> None:
    """The literal part of the patterns for names."""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (tmp_path / "test_m.py").write_text(source)
    (tmp_path / "test_n.py").write_text("g('name')")
    assert discover(tmp_path, Config(), jobs=1).files == ("test_m.py",)
