"""Public actions: each commit that a workflow or action names is in actions.lock, with its release."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
PLACES = ("", "actions/*", ".github/workflows", "examples/workflows", "tests/e2e/consumer")
FILES = sorted(path for place in PLACES for path in CLONE.glob(f"{place}/*.yml".lstrip("/")))
# `uses: owner/name[/path]@ref # comment`; our own are `$/` or org/gpuci.
USES = re.compile(
    r"^\s*(?:- )?uses: (?!\$/|org/gpuci)([\w.-]+/[\w./-]+)@(\S+)(?: # (\S+))?\s*$", re.MULTILINE
)


def used(text: str) -> Iterator[tuple[str, str, str]]:
    """(action, commit, release in the comment) of each use."""
    for match in USES.finditer(text):
        yield match[1], match[2], match[3] or ""


def locked() -> set[tuple[str, str, str]]:
    lines = (CLONE / "actions.lock").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {(name, commit, release) for name, commit, release in rows}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CLONE)))
def test_each_use_is_locked(path: Path) -> None:
    assert set(used(path.read_text(encoding="utf-8"))) - locked() == set()


def test_nothing_is_locked_that_nobody_uses() -> None:
    assert locked() == {use for path in FILES for use in used(path.read_text(encoding="utf-8"))}


def test_an_action_has_one_commit_and_a_full_one() -> None:
    rows = locked()
    assert len({name for name, _, _ in rows}) == len(rows)
    assert all(re.fullmatch(r"[0-9a-f]{40}", commit) and re.fullmatch(r"v\d+\.\d+\.\d+", release)
               for _, commit, release in rows)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("      - uses: actions/cache@abc # v1.2.3\n", {("actions/cache", "abc", "v1.2.3")}),
        ("        uses: actions/cache/save@main\n", {("actions/cache/save", "main", "")}),
        ("      - uses: $/actions/x\n      - uses: org/gpuci@abc # v1.0.0\n", set()),
    ],
    ids=["step", "no comment", "our own"],
)
def test_the_rule_sees_a_use(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert set(used(text)) == expected
