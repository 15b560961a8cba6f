"""Documents get their tables and examples from the files, and say what is wrong where they can't."""

from __future__ import annotations

from pathlib import Path

import pytest

import action_docs

ACTION = """\
name: gpuci x
description: Does something.
inputs:
  sha: {description: A commit., required: true}
  shards: {description: "Number, 1 | 12.", default: "0"}
  comment: {description: Nothing., default: ""}
  token: {description: A token., default: "${{ github.token }}"}
outputs:
  matrix: {description: "Indices, `[]` if none.", value: x}
"""
INPUTS = """\
| input | default | what it is |
| --- | --- | --- |
| `sha` | required | A commit. |
| `shards` | `0` | Number, 1 \\| 12. |
| `comment` |  | Nothing. |
| `token` | `${{ github.token }}` | A token. |
"""
OUTPUTS = "| output | what it is |\n| --- | --- |\n| `matrix` | Indices, `[]` if none. |\n"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "actions/x").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "actions/x/action.yml").write_text(ACTION)
    (tmp_path / "action.yml").write_text("inputs: {}\n")
    (tmp_path / "a.yml").write_text("on: push\n\n")
    monkeypatch.setattr(action_docs, "CLONE", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        (
            "actions/x/README.md",
            "<!-- inputs -->\nold\n<!-- /inputs -->",
            f"<!-- inputs -->\n{INPUTS}<!-- /inputs -->",
        ),
        ("actions/x/README.md", "<!-- outputs --><!-- /outputs -->", "<!-- outputs --><!-- /outputs -->"),
        (
            "actions/x/README.md",
            "a\n<!-- outputs -->\n<!-- /outputs -->\nb",
            f"a\n<!-- outputs -->\n{OUTPUTS}<!-- /outputs -->\nb",
        ),
        ("docs/a.md", "<!-- inputs -->\n<!-- /inputs -->", "<!-- inputs -->\nNone.\n<!-- /inputs -->"),
        (
            "README.md",
            "<!-- file: a.yml -->\n<!-- /file -->",
            "<!-- file: a.yml -->\n```yaml\non: push\n```\n<!-- /file -->",
        ),
        ("docs/a.md", "no mark", "no mark"),
    ],
    ids=["inputs", "no mark of its own line", "outputs", "of the root action", "file", "none"],
)
def test_a_document_is_filled(clone: Path, document: str, text: str, expected: str) -> None:
    assert action_docs.render(text, clone / document, clone) == expected
    assert action_docs.render(expected, clone / document, clone) == expected


@pytest.mark.parametrize(
    ("document", "text", "told"),
    [
        ("docs/a.md", "<!-- inputs -->\n", "a mark has no end"),
        ("docs/a.md", "<!-- inputs -->\n<!-- /outputs -->", "a mark has no end"),
        (
            "actions/y/README.md",
            "<!-- inputs -->\n<!-- /inputs -->",
            "actions/y/action.yml, which is not there",
        ),
        ("docs/a.md", "<!-- file: b.yml -->\n<!-- /file -->", "it shows b.yml, which is not there"),
    ],
)
def test_what_cannot_be_filled_is_said(clone: Path, document: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        action_docs.render(text, clone / document, clone)


def test_check_names_what_is_not_current_and_writes_nothing(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = clone / "actions/x/README.md"
    page.write_text("<!-- outputs -->\n<!-- /outputs -->\n")
    assert action_docs.main(["--check"]) == 1
    assert capsys.readouterr().err == "actions/x/README.md is not current: run scripts/action_docs.py\n"
    assert action_docs.main([]) == 0
    assert OUTPUTS in page.read_text()
    assert action_docs.main(["--check"]) == 0
    page.write_text("<!-- outputs -->\n")
    assert action_docs.main([]) == 2
    assert "actions/x/README.md: a mark has no end" in capsys.readouterr().err
