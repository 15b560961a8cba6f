"""Bytes -> facts: what is kept, and that no bytes whatever end in an exception."""

import marshal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.source.facts import Binding, FileFacts, from_plain, to_plain
from gpuci.source.parse import MAX_BYTES, marker_name, parse_source

CASES = Path(__file__).parents[2] / "truth" / "cases"


def binding(source: str, kind: str) -> Binding:
    """The first binding of a kind in a source."""
    return next(item for item in parse_source(source.encode()).bindings if item.kind == kind)


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        pytest.param(b"def f(:\n", 1, "invalid syntax", id="syntax"),
        pytest.param(b"x = 1\nif x:\n", 2, "expected an indented block", id="second line"),
        pytest.param(b"x = '\xff'\n", 1, "utf-8", id="not utf-8"),
        pytest.param(b"# coding: no-such-coding\n", 1, "no-such-coding", id="unknown coding"),
        pytest.param(b"x = 1\0\n", 1, "null bytes", id="null byte"),
        pytest.param(b"(" * 5000, 1, "too many nested parentheses", id="parentheses"),
        pytest.param(b"-" * 200_000 + b"1", 1, "nested too deeply", id="too deep"),
        pytest.param(b"#" * (MAX_BYTES + 1), 1, "larger than 10 MB", id="too large"),
    ],
)
def test_files_that_are_no_python(data: bytes, line: int, message: str) -> None:
    """They give an error with a line, never an exception."""
    error = parse_source(data).error
    assert error is not None
    assert error[0] == line
    assert message in error[1]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("# -*- coding: latin-1 -*-\nNAME = 'é'\n".encode("latin-1"), id="cookie"),
        pytest.param(b"\xef\xbb\xbfNAME = '\xc3\xa9'\n", id="byte order mark"),
        pytest.param("NAME = 'é'\r\n".encode(), id="CRLF"),
        pytest.param("NAME = 'é'\r".encode(), id="CR"),
    ],
)
def test_encodings(data: bytes) -> None:
    """Text is read as Python itself reads it."""
    facts = parse_source(data)
    assert facts.error is None
    assert [(item.name, item.value) for item in facts.bindings] == [("NAME", ("constant", "é"))]


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_bytes_end_in_an_exception(data: bytes) -> None:
    """Whatever a pull request puts into a file."""
    assert isinstance(parse_source(data), FileFacts)


@pytest.mark.parametrize(
    "path", sorted(CASES.rglob("*.py")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_facts_survive_marshal(path: Path) -> None:
    """The plain form is all that crosses processes and stands in the cache."""
    facts = parse_source(path.read_bytes())
    assert from_plain(marshal.loads(marshal.dumps(to_plain(facts)))) == facts


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        pytest.param("if X:\n def f(): ...\nelse:\n def f(): ...\n", [("def", True)] * 2, id="if"),
        pytest.param(
            "try:\n import a\nexcept ImportError:\n a = None", [("import", True), ("assign", True)], id="try"
        ),
        pytest.param("with X:\n def f(): ...", [("def", False)], id="with"),
        pytest.param("for i in X:\n def f(): ...", [("def", True)], id="for"),
        pytest.param("while X:\n class A: ...", [("class", True)], id="while"),
        pytest.param("match X:\n case 1:\n  a = 1", [("assign", True)], id="match"),
        pytest.param("if __name__ == '__main__':\n a = 1", [], id="main guard"),
        pytest.param("a: int = 1\nb: int", [("assign", False)], id="annotated"),
        pytest.param("a, b = 1, f()\nc, d = x", [("assign", False)] * 4, id="unpacking"),
        pytest.param("a += [1]", [("augment", False)], id="augmented"),
        pytest.param("del a", [("del", False)], id="del"),
        pytest.param("a.b = 1", [("attribute", False)], id="attribute"),
        pytest.param("from a import *", [("star", False)], id="star"),
        pytest.param("globals()['a'] = 1", [("dynamic", False)], id="globals item"),
        pytest.param("globals().update(a=1)", [("dynamic", False)], id="globals update"),
        pytest.param("make(globals())", [("dynamic", False)], id="globals passed"),
        pytest.param("exec('a = 1')", [("dynamic", False)], id="exec"),
        pytest.param("setattr(A, 'test_b', f)", [("dynamic", False)], id="setattr"),
    ],
)
def test_statements(source: str, kinds: list[tuple[str, bool]]) -> None:
    """(kind, conditional) of what a statement binds."""
    assert [(item.kind, item.conditional) for item in parse_source(source.encode()).bindings] == kinds


def test_texts_of_arguments() -> None:
    """Argument texts are source text, over several lines and behind other characters too."""
    value = binding("x = f('é', n=[1,\n  2])", "assign").value
    assert value[2][0][0] == "'é'"
    assert value[3][0][:2] == ("n", "[1, 2]")


def test_bodies_are_kept_of_helpers_only() -> None:
    """Tests and fixtures are pytest's business."""
    source = "def {}:\n    return pytest.mark.gpu\n"
    assert binding(source.format("helper()"), "def").value.body
    assert not binding(source.format("test_a()"), "def").value.body
    assert not binding("@pytest.fixture\n" + source.format("thing()"), "def").value.body


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param("def f(worker_id):\n    torch.cuda.set_device(1)", 2, id="argument"),
        pytest.param("i = os.environ['PYTEST_XDIST_WORKER']\nset_device(i)", 2, id="environment"),
        pytest.param("def f(c):\n    with torch.cuda.device(c.workerinput['id']): ...", 2, id="attribute"),
        pytest.param("torch.cuda.set_device(0)", 0, id="no worker"),
        pytest.param("def f(worker_id):\n    torch.cuda.device_count()", 0, id="only counts"),
        pytest.param("# worker_id, set_device(1)", 0, id="comment"),
    ],
)
def test_device_line(source: str, line: int) -> None:
    """The line that puts a worker on a device of its own."""
    assert parse_source(source.encode()).device_line == line


def test_hooks_of_conftests() -> None:
    """Registered markers, and what a collect hook looks for."""
    facts = parse_source(
        b"def pytest_configure(config):\n    config.addinivalue_line('markers', 'gpus(n): number')\n"
        b"def pytest_collect_file(file_path, parent):\n    if file_path.suffix == '.yaml': return 1\n"
    )
    assert facts.registered == ("gpus",)
    assert ".yaml" in facts.collects


@pytest.mark.parametrize(
    ("line", "name"), [("gpus(n): text", "gpus"), ("slow", "slow"), ("slow: a (b)", "slow"), ("", "")]
)
def test_marker_name(line: str, name: str) -> None:
    """The name in a line of the ini file."""
    assert marker_name(line) == name
