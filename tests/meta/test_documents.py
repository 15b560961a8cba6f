"""Documents can't drift: commands, links and the change log's form."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuci.cli import parser

CLONE = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*CLONE.glob("*.md"), *(p for d in ("docs", "tests", "examples") for p in CLONE.glob(f"{d}/**/*.md"))]
)
DOCUMENTS = [path for path in DOCUMENTS if "cases" not in path.parts]


def name(path: Path) -> str:
    return str(path.relative_to(CLONE))


def blocks(text: str, language: str) -> Iterator[str]:
    """The fenced code blocks of a language."""
    for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield match[1]


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command line in the `sh` blocks."""
    for block in blocks(text, "sh"):
        for line in block.splitlines():
            words = line.partition(" #")[0].split()
            if words and not line.startswith("#"):
                yield words


def subcommands() -> set[str]:
    actions = [action.choices for action in parser()._actions if action.choices]
    return set(actions[0])


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_commands_exist(path: Path) -> None:
    for words in commands(path.read_text()):
        program = words[0].removeprefix("./")
        if program == "gpuci" and len(words) > 1 and not words[1].startswith("-"):
            assert words[1] in subcommands(), words
        if "/" in program:
            assert (CLONE / program).exists(), words


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_to_files(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text())
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (path.parent / target).exists()] == []


def test_the_first_screen_of_the_readme_shows_both_commands() -> None:
    first = "\n".join((CLONE / "README.md").read_text().splitlines()[:60])
    shown = [" ".join(words) for words in commands(first)]
    assert ["./gpuci", "run", "examples/monorepo"] in [line.split() for line in shown]
    assert "scripts/test" in shown
    assert "uses: org/gpuci/.github/workflows/gpu.yml@" in first


def test_every_document_of_docs_is_in_its_index() -> None:
    index = (CLONE / "docs" / "README.md").read_text()
    others = {path.name for path in (CLONE / "docs").glob("*.md")} - {"README.md"}
    assert {other for other in others if f"]({other})" not in index} == set()


def test_the_change_log_keeps_its_form() -> None:
    lines = (CLONE / "CHANGELOG.md").read_text().splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings[:2] == ["# Changelog", "## [Unreleased]"]
    release = r"## \[Unreleased\]|## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d"
    kind = "### (Added|Changed|Deprecated|Removed|Fixed|Security)"
    assert [line for line in headings[1:] if not re.fullmatch(f"{release}|{kind}", line)] == []
