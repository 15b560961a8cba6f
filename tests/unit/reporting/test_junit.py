"""JUnit XML: every result is a case, and no text of a test breaks the document."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.model import Report, TestResult
from gpuci.reporting import junit
from gpuci_node.contract import OUTCOMES, RED_OUTCOMES

ANY = st.text(st.characters(), max_size=40) | st.sampled_from(["]]>", "<!--", "&lt;", "\ufffe", "\ud800"])


def read(*results: TestResult) -> ElementTree.Element:
    return ElementTree.fromstring(junit.render(Report("failed", "", {}, results, ())))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_an_outcome_is(outcome: str) -> None:
    top = read(TestResult("a.py::t", outcome, 1.5, 1, message="why", output="out"))
    (case,) = top.iter("testcase")
    kinds = [child.tag for child in case]
    if outcome in RED_OUTCOMES:
        assert kinds == ["failure" if outcome == "failed" else "error"]
        assert (case[0].get("type"), case[0].text) == (outcome, "out")
    else:
        assert kinds == ([] if outcome in {"passed", "xpassed"} else ["skipped"])
    assert all(child.get("message") == "why" for child in case)


@pytest.mark.parametrize(
    ("nodeid", "classname", "name"),
    [
        ("a/b.py::t", "a.b", "t"),
        ("a/b.py::A::B::t[x]", "a.b.A.B", "t[x]"),
        ("a/b.py::t[A::b]", "a.b", "t[A::b]"),
        ("a/b.py::A::t[A::b]", "a.b.A", "t[A::b]"),
        ("a/b.py", "", "a.b"),
        ("a/b.py::a.b", "a.b", "a.b"),
        ("a/b[c].py::t[x/y.py]", "a.b[c]", "t[x/y.py]"),
    ],
    ids=["function", "method", "parameters", "both", "a file", "a doctest", "brackets"],
)
def test_names(nodeid: str, classname: str, name: str) -> None:
    (case,) = read(TestResult(nodeid, "passed")).iter("testcase")
    assert (case.get("classname"), case.get("name")) == (classname, name)


def test_names_are_those_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "test_a.py").write_text(
        "import pytest\n"
        "def test_f(): pass\n"
        "@pytest.mark.parametrize('x', ['a::b', 'c/d.py', '[e]'])\n"
        "class TestA:\n"
        "    class TestB:\n"
        "        def test_m(self, x): pass\n"
    )
    (tmp_path / "pkg" / "test_broken.py").write_text("1 / 0\n")
    command = [sys.executable, "-m", "pytest", "-v", "--junitxml=x.xml", "--continue-on-collection-errors"]
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    nodeids = [*re.findall(r"^(pkg/.*) PASSED", log, re.MULTILINE), "pkg/test_broken.py"]
    assert len(nodeids) == 5
    theirs = ElementTree.parse(tmp_path / "x.xml").iter("testcase")
    ours = read(*(TestResult(nodeid, "passed") for nodeid in nodeids)).iter("testcase")
    assert names(ours) == names(theirs)


def names(cases: Iterable[ElementTree.Element]) -> set[tuple[str | None, str | None]]:
    return {(case.get("classname"), case.get("name")) for case in cases}


def test_suites_are_shards_and_count(red_report: Report) -> None:
    top = ElementTree.fromstring(junit.render(red_report))
    told = {
        suite.get("name"): [suite.get(key) for key in ("tests", "failures", "errors", "skipped")]
        for suite in top
    }
    assert told == {
        "shard 1": ["12", "0", "0", "0"],
        "shard 2": ["2", "1", "1", "0"],
        "shard 3": ["7", "0", "7", "0"],
        "not run": ["3", "0", "0", "3"],
    }
    assert [top.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["24", "1", "8", "3"]
    assert float(top.get("time", "")) == pytest.approx(
        sum(test.seconds for test in red_report.tests), abs=0.01
    )


def test_places() -> None:
    known, unknown = read(
        TestResult("a.py::t", "failed", file="c.py", line=7), TestResult("a.py::u", "failed")
    ).iter("testcase")
    assert (known.get("file"), known.get("line")) == ("c.py", "7")
    assert (unknown.get("file"), unknown.get("line")) == (None, None)


@given(ANY, ANY, ANY, ANY)
def test_any_text_gives_a_document_that_can_be_read(
    nodeid: str, file: str, message: str, output: str
) -> None:
    top = read(TestResult(nodeid, "failed", file=file, message=message, output=output))
    assert [child.tag for case in top.iter("testcase") for child in case] == ["failure"]
    assert len(list(top.iter())) == 4


def test_long_texts_are_cut_the_end_is_kept() -> None:
    lines = "\n".join(f"line {n}" for n in range(50_000))
    document = junit.render(
        Report("failed", "", {}, (TestResult("n" * 10**6, "failed", message="m" * 10**6, output=lines),), ())
    )
    assert len(document) < 30_000
    assert b"line 49999</failure>" in document
