"""The one comment on a pull request: ours, of this workflow, and never of a newer run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.github.client import Comment
from gpuci.github.comment import Marker, body, find, marker, read_marker
from gpuci.reporting.links import Links

BOT = "github-actions[bot]"
OWN = marker("gpu", "", "77", "1")
LINKS = Links("https://github.com", "org/repo", "a" * 40, "77")


@given(st.text(), st.sampled_from(["", "docs"]), st.integers(0, 10**15), st.integers(1, 999))
def test_a_marker_is_read_again(workflow: str, use: str, run: int, attempt: int) -> None:
    made = marker(workflow, use, str(run), str(attempt))
    assert read_marker(body(made, "page", LINKS)) == made
    assert read_marker(body(made, "page", LINKS).replace("\n", "\r\n")) == made
    assert str(made).count("--") == 2


@pytest.mark.parametrize(
    ("comments", "found"),
    [
        pytest.param([], None, id="none"),
        pytest.param([Comment(1, "hello", BOT)], None, id="another comment of ours"),
        pytest.param([Comment(1, str(OWN), BOT)], 1, id="ours"),
        pytest.param([Comment(1, str(OWN), "mallory"), Comment(2, str(OWN), BOT)], 2, id="a forged one"),
        pytest.param([Comment(1, f"> {OWN}", BOT)], None, id="quoted"),
        pytest.param([Comment(1, str(marker("other", "", "77", "1")), BOT)], None, id="of another workflow"),
        pytest.param([Comment(1, str(marker("gpu", "docs", "77", "1")), BOT)], None, id="of another use"),
        pytest.param([Comment(1, str(marker("gpu", "", "5", "3")), BOT)], 1, id="of an earlier run"),
    ],
)
def test_which_comment_is_ours(comments: list[Comment], found: int | None) -> None:
    ours = find(comments, OWN, BOT)
    assert (ours[0].id if ours else None) == found


def test_a_later_run_is_greater() -> None:
    runs = [marker("gpu", "", *numbers) for numbers in (("9", "1"), ("9", "2"), ("10", "1"))]
    assert runs == sorted(runs)
    assert runs[0] < runs[1] < runs[2]
    assert isinstance(runs[0], Marker)


def test_what_it_is_about() -> None:
    text = body(OWN, "## page\n", LINKS)
    assert text.startswith(f"{OWN}## page\n")
    assert f"[`{'a' * 12}`](https://github.com/org/repo/commit/{'a' * 40})" in text
    assert "[this run](https://github.com/org/repo/actions/runs/77/attempts/1)" in text
