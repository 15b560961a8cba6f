"""docs/results.md can't drift: its tables are the contract's, its examples are real renders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuci.model import Report
from gpuci.reporting import terminal
from gpuci.results.verdict import TABLE, Tests
from gpuci_node.contract import EXIT_CODES, OUTCOMES, RED_OUTCOMES, VERDICTS

PAGE = (Path(__file__).parents[3] / "docs" / "results.md").read_text("utf-8")


def block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert found, name
    return found[1]


def rows(name: str) -> list[list[str]]:
    return [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in block(name).splitlines()]


def test_the_outcomes() -> None:
    _head, _rule, *body = rows("table: outcomes")
    assert [(name, red) for name, red, _meaning in body] == [
        (name, "yes" if name in RED_OUTCOMES else "no") for name in OUTCOMES
    ]


def test_the_verdicts() -> None:
    _head, _rule, *body = rows("table: verdicts")
    assert [(name, int(code)) for name, code, _meaning in body] == [
        (name, EXIT_CODES[name]) for name in VERDICTS
    ]


def test_the_rule() -> None:
    head, _rule, *body = rows("table: rule")
    assert head[1:] == [tests.value for tests in Tests]
    assert body == [[shard, *row] for shard, row in TABLE.items()]


@pytest.mark.parametrize("example", ["red", "green"])
def test_the_examples(example: str, request: pytest.FixtureRequest) -> None:
    report: Report = request.getfixturevalue(f"{example}_report")
    assert block(f"example: {example}") == f"```text\n{terminal.render(report)}```\n"
