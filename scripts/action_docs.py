#!/usr/bin/env python3
"""Write what action.yml files and examples say into the documents that show them.

Between these lines a document has what the files have:

    <!-- inputs -->      ...  <!-- /inputs -->    of the action beside the document, or else the root action
    <!-- outputs -->     ...  <!-- /outputs -->
    <!-- file: PATH -->  ...  <!-- /file -->      a file of the repository as a code block

With --check nothing is written, and documents that are not current are named. Needs PyYAML.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

CLONE = Path(__file__).resolve().parent.parent
_MARKED = re.compile(r"(<!-- (inputs|outputs|file)(?:: (\S+))? -->\n).*?(<!-- /\2 -->)", re.DOTALL)
_OPENED = re.compile(r"^<!-- (?:inputs|outputs|file: \S+) -->$", re.MULTILINE)


def main(argv: list[str]) -> int:
    """Return 1 with --check if a document is not current, 2 if one can't be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, name what is not current")
    check = parser.parse_args(argv).check
    stale = 0
    for path in documents(CLONE):
        before = path.read_text(encoding="utf-8")
        try:
            after = render(before, path, CLONE)
        except ValueError as error:
            print(f"{path.relative_to(CLONE)}: {error}", file=sys.stderr)
            return 2
        if after != before and check:
            print(f"{path.relative_to(CLONE)} is not current: run scripts/action_docs.py", file=sys.stderr)
            stale = 1
        elif after != before:
            path.write_text(after, encoding="utf-8")
    return stale


def documents(clone: Path) -> list[Path]:
    """The documents that may have marks."""
    return sorted(path for glob in ("*.md", "docs/*.md", "actions/*/README.md") for path in clone.glob(glob))


def render(text: str, path: Path, clone: Path) -> str:
    """The document `path` as it should be.

    Raises ValueError if a mark has no end, or names what is not there.
    """
    if len(_OPENED.findall(text)) != len(_MARKED.findall(text)):
        raise ValueError("a mark has no end: <!-- inputs --> ... <!-- /inputs -->, outputs and file alike")

    def fill(match: re.Match[str]) -> str:
        kind, named = match[2], match[3]
        body = code_block(clone, named) if kind == "file" else table(action_of(path, clone), kind)
        return f"{match[1]}{body}{match[4]}"

    return _MARKED.sub(fill, text)


def action_of(document: Path, clone: Path) -> Mapping[str, Any]:
    """The action that a document is about; raises ValueError if there is none."""
    beside = document.parent / "action.yml"
    path = beside if document.is_relative_to(clone / "actions") else clone / "action.yml"
    if not path.is_file():
        raise ValueError(f"its tables are made from {path.relative_to(clone)}, which is not there")
    loaded: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def table(action: Mapping[str, Any], kind: str) -> str:
    """The inputs or outputs of an action as a Markdown table."""
    entries: Mapping[str, Mapping[str, Any]] = action.get(kind) or {}
    if not entries:
        return "None.\n"
    head = ["input", "default"] if kind == "inputs" else ["output"]
    rows = [[*head, "what it is"], ["---"] * (len(head) + 1)]
    for name, entry in entries.items():
        middle = [_default(entry)] if kind == "inputs" else []
        rows.append([f"`{name}`", *middle, _cell(entry["description"])])
    return _lines(rows)


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _default(entry: Mapping[str, Any]) -> str:
    if entry.get("required"):
        return "required"
    given = entry.get("default", "")
    value = str(given).lower() if isinstance(given, bool) else str(given)
    return f"`{_cell(value)}`" if value else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code_block(clone: Path, name: str) -> str:
    """A file as a code block; raises ValueError if it is not there."""
    path = clone / name
    if not path.is_file():
        raise ValueError(f"it shows {name}, which is not there")
    text = path.read_text(encoding="utf-8").rstrip("\n")
    return f"```{path.suffix.lstrip('.').replace('yml', 'yaml')}\n{text}\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
