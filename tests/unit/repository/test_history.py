"""Where two branches parted, found without all of the history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuci.repository import history
from gpuci.repository.fetch import Repository
from gpuci.repository.history import merge_bases


@pytest.fixture
def commits(origin: Any) -> Callable[..., str]:
    """`commits(number, *parents)`: that many commits in a row on top of others; returns the last one."""
    tree = origin.git("mktree", stdin=b"")
    count = iter(range(10_000))

    def make(number: int, *parents: str) -> str:
        above = parents
        for _ in range(number):
            options = [word for parent in above for word in ("-p", parent)]
            above = (origin.git("commit-tree", tree, "-m", str(next(count)), *options),)
        return above[0]

    return make


@pytest.fixture
def found(
    origin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Any, list[int]]]:
    """The merge bases, and the depths that were fetched on the way to them."""

    def find(one: str, other: str, depths: tuple[int, ...] = (2, 4, 8, 0)) -> tuple[Any, list[int]]:
        monkeypatch.setattr(history, "DEPTHS", depths)
        asked: list[int] = []
        repository = Repository(tmp_path / f"ours-{len(list(tmp_path.iterdir()))}")
        fetch = repository.fetch

        def watched(*args: Any, depth: int, **more: Any) -> tuple[str, ...]:
            asked.append(depth)
            return fetch(*args, depth=depth, **more)

        monkeypatch.setattr(repository, "fetch", watched)
        return merge_bases(repository, origin.url, "", one, other), asked

    return find


@pytest.mark.parametrize(
    ("before", "left", "right", "depths"),
    [(1, 1, 1, [2]), (20, 1, 1, [2]), (20, 3, 1, [2, 4]), (20, 7, 0, [2, 4, 8]), (3, 12, 9, [2, 4, 8, 0])],
)
def test_history_deepens_until_the_branches_meet(
    commits: Any, found: Any, before: int, left: int, right: int, depths: list[int]
) -> None:
    root = commits(before)
    base = commits(1, root)
    one, other = commits(left, base), commits(right, base)
    assert found(one, other) == ((base,), depths)


def test_a_commit_with_itself(commits: Any, found: Any) -> None:
    sha = commits(30)
    assert found(sha, sha) == ((sha,), [2])


def test_unrelated_histories_have_none(commits: Any, found: Any) -> None:
    assert found(commits(3), commits(10)) == ((), [2, 4, 8, 0])
    assert found(commits(1), commits(1)) == ((), [2])


def test_branches_merged_crosswise_have_two(commits: Any, found: Any) -> None:
    root = commits(1)
    a, b = commits(1, root), commits(1, root)
    assert set(found(commits(1, a, b), commits(1, b, a), (4, 0))[0]) == {a, b}


def test_a_meeting_point_that_more_history_would_correct_is_not_taken(commits: Any, found: Any) -> None:
    """`one` merged the old commit directly, so it is seen first; the way to the nearer one is longer."""
    old = commits(1, commits(3))
    near = commits(1, old)
    one = commits(1, commits(6, near), old)
    other = commits(1, near)
    assert found(one, other) == ((near,), [2, 4, 8])


def test_all_history_at_once_is_no_error(commits: Any, found: Any) -> None:
    base = commits(2)
    assert found(commits(1, base), commits(1, base), (0, 0)) == ((base,), [0])
