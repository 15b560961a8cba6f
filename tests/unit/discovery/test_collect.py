"""The tests of small sources, as pytest would collect them; the large table is tests/truth."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.discovery.collect import Collector, FileReading
from gpuci.discovery.evaluate import Evaluator
from gpuci.discovery.pytest_config import PytestRules
from gpuci.source.facts import FileFacts
from gpuci.source.imports import ImportFinder
from gpuci.source.parse import parse_source


class Files:
    """Sources by path."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._facts = {path: parse_source(source.encode()) for path, source in sources.items()}

    def facts(self, path: str) -> FileFacts | None:
        """The facts of a file."""
        return self._facts.get(path)

    def names(self, directory: str) -> frozenset[str]:
        """The names in a directory."""
        prefix = f"{directory}/" if directory else ""
        return frozenset(path[len(prefix) :].split("/")[0] for path in self._facts if path.startswith(prefix))


def read(
    source: str, others: Mapping[str, str] | None = None, rules: PytestRules | None = None
) -> FileReading:
    """The tests of a file test_m.py with other files beside it."""
    files = Files({"test_m.py": source, **(others or {})})
    evaluator = Evaluator(files, ImportFinder(files.names))
    return Collector(evaluator, rules or PytestRules()).collect("test_m.py")


def marks(reading: FileReading) -> dict[str, list[str]]:
    """Test -> names of its marks."""
    return {
        "::".join((*item.classes, item.name)): [mark.name for mark in item.marks if not mark.hidden]
        for item in reading.items
    }


HELPERS = {
    "util.py": """
import pytest
gpu = pytest.mark.gpu
BOTH = [pytest.mark.a, pytest.mark.b]
TABLE = {"big": pytest.mark.big(8)}
def on(count=1):
    return pytest.mark.gpus(count)
def wrap(fn=None, *, count=2):
    def deco(f):
        return pytest.mark.gpus(count)(f)
    return deco if fn is None else deco(fn)
def maybe(fn):
    if X:
        return pytest.mark.skip(fn)
    return pytest.mark.gpu(fn)
class Marks:
    one = pytest.mark.one
"""
}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param("from util import gpu\n@gpu\ndef test_a(): ...", ["gpu"], id="imported"),
        pytest.param("import util as u\n@u.gpu\ndef test_a(): ...", ["gpu"], id="through its module"),
        pytest.param("from util import *\n@gpu\ndef test_a(): ...", ["gpu"], id="star"),
        pytest.param("from util import BOTH\npytestmark = BOTH\ndef test_a(): ...", ["a", "b"], id="list"),
        pytest.param(
            "from util import BOTH\npytestmark = BOTH + [pytest.mark.c]\nimport pytest\ndef test_a(): ...",
            ["a", "b", "c"],
            id="sum",
        ),
        pytest.param("from util import TABLE\n@TABLE['big']\ndef test_a(): ...", ["big"], id="table"),
        pytest.param("from util import Marks\n@Marks.one\ndef test_a(): ...", ["one"], id="class"),
        pytest.param("from util import on\n@on(4)\ndef test_a(): ...", ["gpus"], id="helper with argument"),
        pytest.param(
            "from util import wrap\n@wrap\ndef test_a(): ...", ["gpus"], id="optional argument, without"
        ),
        pytest.param(
            "from util import wrap\n@wrap(count=3)\ndef test_a(): ...", ["gpus"], id="optional argument, with"
        ),
        pytest.param(
            "from util import maybe\n@maybe\ndef test_a(): ...", ["skip", "gpu"], id="both branches"
        ),
        pytest.param("from pytest import mark as m\n@m.gpu\ndef test_a(): ...", ["gpu"], id="renamed mark"),
        pytest.param("import pytest as pt\n@pt.mark.gpu()\ndef test_a(): ...", ["gpu"], id="renamed pytest"),
        pytest.param(
            "import pytest\npytestmark = []\npytestmark.append(pytest.mark.gpu)\ndef test_a(): ...",
            ["gpu"],
            id="append",
        ),
        pytest.param(
            "import pytest\nx = lambda n: pytest.mark.gpus(n)\n@x(2)\ndef test_a(): ...",
            ["gpus"],
            id="lambda",
        ),
    ],
)
def test_marks_are_followed(source: str, names: list[str]) -> None:
    """Through aliases, imports, containers and helpers."""
    assert marks(read(source, HELPERS)) == {"test_a": names}


def test_arguments_of_helpers_reach_the_mark() -> None:
    """A name that stands for a literal is replaced by it."""
    source = "from util import on, wrap\n@on(4)\ndef test_a(): ...\n@wrap(count=3)\ndef test_b(): ...\n"
    assert [item.marks[0].args for item in read(source, HELPERS).items] == [("4",), ("3",)]


def test_marks_of_parameters_are_flagged() -> None:
    """They hold for some parameters only."""
    source = (
        "import pytest\nD = ['cpu', pytest.param('cuda', marks=[pytest.mark.gpu, pytest.mark.big])]\n"
        "@pytest.mark.parametrize('d', D)\ndef test_a(d): ...\n"
    )
    found = [(mark.name, mark.some) for mark in read(source).items[0].marks]
    assert found == [("parametrize", False), ("gpu", True), ("big", True)]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("pytestmark = (pytest.mark.a,)\nimport pytest\ndef test_a(): ...", "tuple", id="tuple"),
        pytest.param(
            "pytestmark = [x for x in y]\ndef test_a(): ...", "can't be followed", id="comprehension"
        ),
        pytest.param("from torch.testing import TestThing", "outside the tree", id="imported from outside"),
        pytest.param(
            "from outside import Base\nclass TestA(Base): ...", "outside the tree", id="base from outside"
        ),
        pytest.param("class TestA(make()): ...", "can't be followed", id="computed base"),
        pytest.param("TestA = make()", "run time", id="computed class"),
        pytest.param("class TestA:\n def test_a(self): ...\nchange(TestA)", "may change", id="changed class"),
        pytest.param(
            "from parameterized import parameterized\nclass TestA:\n"
            " @parameterized.expand([1])\n def test_a(self): ...",
            "other names",
            id="parameterized",
        ),
        pytest.param("from ddt import ddt\n@ddt\nclass TestA:\n def test_a(self): ...", "makes", id="ddt"),
        pytest.param("class TestA:\n for i in x:\n  locals()[i] = 1", "locals()", id="class body"),
        pytest.param(
            "class B:\n def __init_subclass__(cls): ...\nclass TestA(B): ...",
            "__init_subclass__",
            id="init_subclass",
        ),
        pytest.param("@x\ndef test_a(): ...\ndef x(f): return None", "decorator of test_a", id="vanishes"),
    ],
)
def test_what_is_not_certain_is_said(source: str, reason: str) -> None:
    """The file is opaque, with a reason."""
    opaque = read(source).opaque
    assert opaque is not None
    assert reason in opaque


@pytest.mark.parametrize(
    "source",
    [
        "import unittest\nclass A(unittest.TestCase):\n def test_a(self): ...",
        "from torch.testing._internal import TestCase\nclass TestA(TestCase):\n def test_a(self): ...",
        "from hypothesis import given, strategies as st\n@given(st.text())\ndef test_a(x): ...",
        "from unittest import mock\n@mock.patch('a.b')\ndef test_a(x): ...",
        "import abc\nclass TestA(abc.ABC):\n def test_a(self): ...",
        "import typing\nT = typing.TypeVar('T')\nclass TestA(typing.Generic[T]):\n def test_a(self): ...",
        "try:\n import torch\nexcept ImportError:\n torch = None\ndef test_a(): ...",
    ],
)
def test_the_usual_is_certain(source: str) -> None:
    """Opaque files are planned whole, so the word is kept for what deserves it."""
    reading = read(source)
    assert reading.opaque is None
    assert [item.name for item in reading.items] == ["test_a"]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = x\n@x\ndef test_a(): ...", id="itself"),
        pytest.param("from test_m import y as y\n@y\ndef test_a(): ...", id="imports itself"),
        pytest.param("from ring import *\n@nowhere\ndef test_a(): ...", id="ring of stars"),
        pytest.param("from ring import loop\n@loop\ndef test_a(): ...", id="ring of names"),
        pytest.param("class TestA(TestA): ...\ndef test_a(): ...", id="its own base"),
        pytest.param(
            "def f(x):\n a = f(x)\n b = f(x)\n return f(a)\n@f\ndef test_a(): ...", id="endless helper"
        ),
        pytest.param(
            "x = [1]\n" + "x = [*x, *x]\n" * 60 + "pytestmark = x\ndef test_a(): ...", id="doubling list"
        ),
        pytest.param(
            f"import pytest\nX = 0x{'f' * 5000}\n@pytest.mark.a(X)\ndef test_a(): ...", id="number in a mark"
        ),
        pytest.param(
            f"import pytest\nX = 0x{'f' * 5000}\nx = getattr(pytest.mark, X)\n@x\ndef test_a(): ...",
            id="number as a name",
        ),
        pytest.param("if y:\n a = 1\n" * 3000 + "def test_a(): ...", id="many alternatives"),
        pytest.param(
            "".join(f"class A{i}(A{i + 1}): ...\n" for i in range(2000))
            + "class A2000: ...\nclass TestA(A0): ...\ndef test_a(): ...",
            id="long chain",
        ),
    ],
)
def test_hostile_sources_end(source: str) -> None:
    """In bounded time, and the file stays planned."""
    ring = {
        "ring.py": "from other import *\nfrom other import loop\n",
        "other.py": "from ring import *\nfrom ring import loop\nnowhere = nowhere\n",
    }
    reading = read(source, ring)
    assert [item.name for item in reading.items] == ["test_a"] or reading.opaque


NAMES = st.sampled_from(["a", "b", "test_a", "TestA", "pytestmark", "pytest", "Base"])
VALUES = st.sampled_from(
    [
        "a",
        "b",
        "[a, *b]",
        "pytest.mark.x",
        "pytest.mark.x(a)",
        "a(b)",
        "test_a",
        "TestA",
        "(a, b)",
        "{'k': a}['k']",
    ]
)
LINES = st.one_of(
    st.builds("{} = {}".format, NAMES, VALUES),
    st.builds("{} += {}".format, NAMES, VALUES),
    st.builds("@{}\ndef {}(a, b=1): return {}".format, VALUES, NAMES, VALUES),
    st.builds("@{}\nclass {}({}):\n    {} = {}".format, VALUES, NAMES, NAMES, NAMES, VALUES),
    st.builds("if x:\n    {} = {}".format, NAMES, VALUES),
    st.builds("from util import {} as {}".format, NAMES, NAMES),
    st.builds("del {}".format, NAMES),
    st.builds("{}".format, VALUES),
    st.sampled_from(["import pytest", "import util", "from util import *"]),
)


@given(st.lists(LINES, max_size=14), st.lists(LINES, max_size=8))
@settings(max_examples=200)
def test_any_mixture_of_names_is_read(lines: list[str], others: list[str]) -> None:
    """Whatever refers to whatever, nothing is raised."""
    reading = read("\n".join(lines), {"util.py": "\n".join(others)})
    assert len({(item.classes, item.name) for item in reading.items}) == len(reading.items)


CHAIN = "".join(f"mark{i} = mark{i + 1}\n" for i in range(40))


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(
            "def f(x):\n a = f(x)\n b = f(x)\n return f(a)\n@f\ndef test_0(): ...\n"
            "from chain import mark20\n@mark20\ndef test_a(): ...",
            id="too many steps",
        ),
        pytest.param("from chain import mark0\n@mark0\ndef test_a(): ...", id="too deep"),
        pytest.param(
            "".join(f"class A{i}(A{i + 1}): ...\n" for i in range(2000))
            + "class A2000: ...\nfrom chain import mark20\n@mark20\nclass TestA(A0): ...",
            id="recursion",
        ),
        pytest.param(
            f"from chain import *\nimport pytest\n@pytest.mark.skipif({'not ' * 11}mark0)\ndef test_a(): ...",
            id="condition",
        ),
    ],
)
def test_a_file_that_is_too_much_changes_nothing_for_the_next(before: str) -> None:
    """One process reads many files: what it gave up for one must not be remembered of their imports."""
    chain = f"import pytest\nmark40 = pytest.mark.gpu\n{CHAIN}"
    files = Files(
        {
            "test_a.py": before,
            "test_b.py": "from chain import mark20\n@mark20\ndef test_b(): ...",
            "chain.py": chain,
        }
    )
    collector = Collector(Evaluator(files, ImportFinder(files.names)), PytestRules())
    collector.collect("test_a.py")
    assert marks(collector.collect("test_b.py")) == {"test_b": ["gpu"]}
