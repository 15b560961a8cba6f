"""Annotations stand at the lines of the tests that failed, and stay within GitHub's limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.model import Report, ShardReport, TestResult
from gpuci.reporting import annotation
from gpuci.reporting.annotation import MOST, Annotation
from gpuci.reporting.links import Links

LINKS = Links("https://github.com", "org/repo", "a" * 40, "77", root="sub")


def failed(count: int, outcome: str = "failed") -> tuple[TestResult, ...]:
    return tuple(
        TestResult(f"a.py::t{n}", outcome, 1.0, 1, file="a.py", line=n, message=f"m{n}", output="x")
        for n in range(count)
    )


def report(tests: tuple[TestResult, ...], *warnings: str) -> Report:
    return Report("failed", "", {}, tests, (), warnings)


def test_a_failure_stands_at_its_line(red_report: Report) -> None:
    first, second, third, warning = annotation.render(red_report, LINKS)
    assert first.kind == "error"
    assert first.title == (
        "failed: packages/attention/tests/test_flash.py::TestBackward::test_gradients[bf16-causal]"
    )
    assert (first.file, first.line) == ("sub/packages/attention/tests/test_flash.py", 88)
    assert first.text.startswith("AssertionError: gradients differ: 0.031 > 0.010\n    def test_gradients(")
    assert second.file == "sub/packages/comm/tests/conftest.py"
    assert third == Annotation(
        "error",
        "not finished: 7 tests of shard 3",
        "collected, but never started\nfirst: packages/train/tests/test_loop.py::test_step[0]",
    )
    assert warning.kind == "warning"
    assert "not collected by pytest" in warning.text


def test_nothing_is_annotated_of_what_passed(green_report: Report) -> None:
    assert annotation.render(green_report, LINKS) == []


@pytest.mark.parametrize(
    ("count", "shown", "left"), [(MOST, MOST, 0), (MOST + 1, MOST - 1, 2), (500, MOST - 1, 492)]
)
def test_what_is_too_much_is_counted(count: int, shown: int, left: int) -> None:
    made = annotation.render(report(failed(count), *["w"] * count), LINKS)
    for kind, noun in (("error", "red test"), ("warning", "warning")):
        mine = [one for one in made if one.kind == kind]
        assert len(mine) == shown + bool(left) <= MOST
        assert (f"{left} more {noun}s: " in mine[-1].text) == bool(left)


@pytest.mark.parametrize(
    ("change", "file", "line"),
    [
        ({"file": "../../x.py"}, "", 0),
        ({"file": ""}, "", 0),
        ({"line": None}, "sub/a.py", 0),
        ({}, "sub/a.py", 3),
    ],
    ids=["a name that leads out", "no file", "no line", "both"],
)
def test_a_place_that_is_none(change: dict[str, object], file: str, line: int) -> None:
    one = replace(failed(4)[3], **change)  # type: ignore[arg-type]
    (made,) = annotation.render(report((one,)), LINKS)
    assert (made.file, made.line) == (file, line)


def test_tests_with_one_error_share_an_annotation() -> None:
    def broken(count: int, message: str) -> list[TestResult]:
        return [
            TestResult(f"f{n}.py::t", "error", file="conftest.py", line=7, message=message)
            for n in range(count)
        ]

    first, *others = annotation.render(report((*broken(8, "no node"), *broken(1, "other"))), LINKS)
    assert (first.title, first.file, first.line) == (
        "error: f0.py::t and 7 more tests",
        "sub/conftest.py",
        7,
    )
    assert first.text == (
        "no node\nThe same error in 7 more tests:\n"
        "f1.py::t\nf2.py::t\nf3.py::t\nf4.py::t\nf5.py::t\nand 2 more"
    )
    assert [one.text for one in others] == ["other"]


def test_what_is_left_out_is_counted_in_tests() -> None:
    """The 30 tests with one error are shown, and seven others; the rest is a test and ten of two shards."""
    alike = [TestResult(f"b{n}.py::t", "error", message="no node") for n in range(30)]
    lost = [TestResult(f"c{n}.py::t", "not_finished", shard=n % 2, message="lost") for n in range(10)]
    made = annotation.render(report((*failed(8), *alike, *lost)), LINKS)
    assert [one.text for one in made][-1] == "11 more red tests: the summary of this job has them"
    assert len(made) == MOST


def test_a_failure_without_any_text_says_where_it_was() -> None:
    (made,) = annotation.render(report((TestResult("a.py::t", "failed", 1.5, 2),)), LINKS)
    assert made.text == "failed, shard 2, 1.50 s"


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_texts_of_tests_are_harmless(nodeid: str, message: str, output: str) -> None:
    result = TestResult(nodeid, "failed", file=nodeid, message=message, output=output)
    for made in annotation.render(report((result,), message), LINKS):
        assert "\n" not in made.title + made.file
        for line in (made.title, *made.text.split("\n")):
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
            assert not set(line) & set("\x1b\r\x9b\u202e\u2028")


def test_a_line_of_a_million_characters_is_cut() -> None:
    result = TestResult("n" * 10**6, "failed", message="m" * 10**6, output="o" * 10**6)
    (made,) = annotation.render(report((result,)), LINKS)
    assert len(made.title) + len(made.text) < 1000


WHY = "the image could not be pulled"


def broken(*tests: TestResult, verdict: str = "infra") -> Report:
    """A shard that broke, and these tests of it."""
    row = ShardReport(1, verdict, 1.0, 1.0, reason=WHY)
    return Report(verdict, f"shard 1: infra ({WHY})", {}, tests, (row,))


def test_tests_that_never_began_are_no_annotations_their_shard_has_the_cause() -> None:
    lost = [TestResult(f"a.py::test_{number}", "not_finished", shard=1, message=WHY) for number in range(3)]
    assert annotation.render(broken(*lost), LINKS) == []
    began = TestResult("a.py::test_b", "passed", 1.0, 1)
    assert [one.title for one in annotation.render(broken(began, *lost), LINKS)] == [
        "not finished: 3 tests of shard 1"
    ]
    well = [one.title for one in annotation.render(broken(*lost, verdict="failed"), LINKS)]
    assert well == ["not finished: 3 tests of shard 1"]
