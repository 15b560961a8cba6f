"""Which failing tests are shown as one: equal messages, but for what differs from process to process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.model import TestResult
from gpuci.reporting.alike import alike, number_of_tests, title
from gpuci_node.contract import OUTCOMES

RESULTS = st.builds(
    TestResult,
    nodeid=st.text("ab:", max_size=3),
    outcome=st.sampled_from(["collection_error", "failed", "error", "not_finished"]),
    file=st.sampled_from(["a.py", "conftest.py"]),
    line=st.none() | st.integers(0, 2),
    message=st.sampled_from(
        ["", "assert 0", "AssertionError: x", "KeyError", "no node", "at 0x1f", "at 0xab"]
    ),
)


def red(message: str, file: str = "a.py", line: int | None = 3, *, outcome: str = "failed") -> TestResult:
    return TestResult(f"{file}::t", outcome, file=file, line=line, message=message)


SAME = [
    ("ModuleNotFoundError: No module named 'apex'",) * 2,
    ("at setup: fixture 'mesh' not found",) * 2,
    ("killed by SIGSEGV",) * 2,
    ("ValueError: <torch.Tensor at 0x7f01>", "ValueError: <torch.Tensor at 0x7FAB>"),
    ("RuntimeError: device cuda:0 is lost", "RuntimeError: device cuda:7 is lost"),
    ("RuntimeError: [rank 3] timed out after 600.1 s", "RuntimeError: [rank 0] timed out after 598 s"),
    ("OSError: Address in use (port 29500)", "OSError: Address in use (port 29517)"),
    (
        "OutOfMemoryError: Tried to allocate 20.00 MiB. GPU 0 has 1.50 GiB free, process 123456 holds 9 GiB",
        "OutOfMemoryError: Tried to allocate 2.50 GiB. GPU 5 has 0 bytes free, process 7 holds 79.10 GiB",
    ),
    ("No such file: '/tmp/pytest-of-ci/pytest-0/x0/a'", "No such file: '/tmp/pytest-of-ci/pytest-3/y0/b'"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_cause_in_two_files(one: str, other: str) -> None:
    first, second = red(one, "a.py", 3), red(other, "b.py", 8)
    assert alike([first, second]) == [(first, (second,))]


DIFFERENT = {
    "another message": (red("no node"), red("no nodes")),
    "another outcome": (red("no node"), red("no node", outcome="error")),
    "no message": (red(""), red("", "b.py")),
    "an assertion elsewhere": (red("assert False"), red("assert False", "b.py")),
    "an assertion at another line": (red("assert False"), red("assert False", line=4)),
    "its text elsewhere": (red("AssertionError: wrong"), red("AssertionError: wrong", "b.py")),
    "in a set-up": (red("at setup: assert False"), red("at setup: assert False", "b.py")),
    "a name of an exception alone": (red("NotImplementedError"), red("NotImplementedError", "b.py")),
    "an assertion whose line nobody knows": (red("assert 0", line=None), red("assert 0", "b.py", None)),
    "other figures": (red("ValueError: 3 is not 4"), red("ValueError: 5 is not 4")),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_need_not_have_one_cause(one: TestResult, other: TestResult) -> None:
    assert len(alike([one, other])) == 2


def test_an_assertion_at_the_same_line_is_one() -> None:
    tests = [TestResult(f"a.py::t[{n}]", "failed", file="a.py", line=3, message="assert False") for n in "xy"]
    assert len(alike(tests)) == 1


def test_the_largest_group_comes_first_and_then_the_worst_outcome() -> None:
    tests = [red("one"), red("two, of two"), red("two, of two"), red("c", outcome="collection_error")]
    assert [(group.first.message, group.tests) for group in alike(tests)] == [
        ("two, of two", 2),
        ("c", 1),
        ("one", 1),
    ]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a.py", "b.py", "c.py"], "2 more files"),
        (["a.py::t", "b.py::t"], "1 more test"),
    ],
    ids=["files", "tests"],
)
def test_the_others_in_words(names: list[str], words: str) -> None:
    (group,) = alike([TestResult(name, "collection_error", message="no module") for name in names])
    assert group.more == words


@pytest.mark.parametrize(
    ("messages", "words"),
    [("a b", "Failing tests (2)"), ("a a a", "Failing tests (3, 1 different error)")],
)
def test_the_title_counts_tests(messages: str, words: str) -> None:
    assert title(alike([red(f"no {message}") for message in messages.split()])) == words


@given(st.lists(RESULTS, max_size=12))
def test_every_test_is_in_one_group_of_its_outcome(results: list[TestResult]) -> None:
    groups = alike(results)
    members = [one for group in groups for one in (group.first, *group.others)]
    assert sorted(map(id, members)) == sorted(map(id, results))
    assert number_of_tests(groups) == len(results)
    ranks = [(-group.tests, OUTCOMES.index(group.first.outcome)) for group in groups]
    assert ranks == sorted(ranks)
