"""Names of jobs and the comments that they are found by."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.execution.slurm.names import comment, job_name, key_in, key_of

KEY = key_of("0123456789abcdef0123456789abcdef")
numbers = st.integers(0, 9999)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("org/repo", "1234567890", 1, 3, 1), "gpuci-org.repo-1234567890-a1-s3-t1"),
        (("my-org/my_repo.py", "7", 2, 12, 2), "gpuci-my-org.my_repo.py-7-a2-s12-t2"),
        (("/home/me/tree", "7", 1, 0, 1), "gpuci-.home.me.tree.227cfefa15-7-a1-s0-t1"),
        (("org/repo", "laptop-1", 1, 1, 1), "gpuci-org.repo-laptop.1.e52b8511e9-a1-s1-t1"),
    ],
    ids=["github", "dashes", "a folder", "a run with a dash"],
)
def test_a_name_is_stable_and_readable(arguments: tuple[str, str, int, int, int], name: str) -> None:
    assert job_name(*arguments) == name


@given(st.text(), st.text(), numbers, numbers, numbers)
def test_any_values_make_a_name_that_is_safe_everywhere(
    repository: str, run: str, attempt: int, shard: int, number: int
) -> None:
    name = job_name(repository, run, attempt, shard, number)
    assert re.fullmatch(r"gpuci-[A-Za-z0-9_.-]+", name)
    assert len(name) <= 100


words = st.text("ab-./_ é", max_size=60)
jobs = st.tuples(words, words, numbers, numbers, numbers)


@given(jobs, jobs)
def test_different_jobs_have_different_names(
    one: tuple[str, str, int, int, int], other: tuple[str, str, int, int, int]
) -> None:
    assert (job_name(*one) == job_name(*other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a/b-1", "2", 1, 1, 1), ("a/b", "1-2", 1, 1, 1)),
        (("a/b.c", "1", 1, 1, 1), ("a.b/c", "1", 1, 1, 1)),
        (("a/b", "1", 11, 1, 1), ("a/b", "1", 1, 11, 1)),
        (("a/" + "b" * 90, "1", 1, 1, 1), ("a/" + "b" * 91, "1", 1, 1, 1)),
        (("ä", "1", 1, 1, 1), ("ö", "1", 1, 1, 1)),
    ],
    ids=["dashes move", "dots move", "numbers move", "cut", "not ASCII"],
)
def test_what_looks_alike_is_told_apart(
    one: tuple[str, str, int, int, int], other: tuple[str, str, int, int, int]
) -> None:
    assert job_name(*one) != job_name(*other)


@pytest.mark.parametrize("number", [-1, 10000])
def test_a_number_out_of_range_is_an_error(number: int) -> None:
    with pytest.raises(ValueError, match="not the numbers of a job"):
        job_name("org/repo", "1", 1, number, 1)


def test_a_key_is_the_beginning_of_the_hash_of_the_token() -> None:
    assert key_of("0" * 32) == "84e0c0eafaa95a34"


def test_a_comment_tells_whose_job_it_is() -> None:
    assert comment("org/repo", "12", "a" * 40, "alice", KEY) == (
        f"gpuci repo=org/repo run=12 sha={'a' * 40} by=alice key={KEY}"
    )


def test_what_is_not_known_is_a_dash() -> None:
    assert comment("org/repo", "", "", "", KEY) == f"gpuci repo=org/repo run=- sha=- by=- key={KEY}"


@given(st.text(), st.text(), st.text(), st.text())
def test_a_comment_is_one_line_and_its_key_is_never_cut(repo: str, run: str, sha: str, by: str) -> None:
    text = comment(repo, run, sha, by, KEY)
    assert len(text) <= 250
    assert re.fullmatch(r"[A-Za-z0-9_./@:=-]+( [A-Za-z0-9_./@:=-]+)*", text)
    assert key_in(text) == KEY


@pytest.mark.parametrize(
    "value", [" key=0000000000000000", "x|key=0000000000000000", "a\nkey=0000000000000000"]
)
def test_no_value_can_pretend_to_be_the_key(value: str) -> None:
    assert key_in(comment(value, value, value, value, KEY)) == KEY


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", None),
        ("(null)", None),
        ("my job", None),
        (f"key={KEY}", None),
        (f"not-gpuci repo=x y key={KEY}", None),
        (f"gpuci repo=x run=1 sha=2 by=3 key={KEY}0", None),
        (f"gpuci repo=x run=1 sha=2 by=3 key={KEY[:-1]}", None),
        (f"gpuci repo=x run=1 sha=2 by=3 key={KEY}", KEY),
        (f"site: checked; gpuci repo=x run=1 sha=2 by=3 key={KEY} (site)", KEY),
    ],
)
def test_a_key_is_found_in_comments_of_ours_only(text: str, key: str | None) -> None:
    assert key_in(text) == key
