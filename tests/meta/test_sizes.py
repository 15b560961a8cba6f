"""Small functions, orchestrators included: where a project regrets its size is its longest function."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FILES = {str(path.relative_to(SCRIPTS)): path for path in sorted(SCRIPTS.rglob("*.py"))}


def functions(source: str) -> Iterator[tuple[str, int]]:
    """(name, lines) of each function; a docstring doesn't count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            words = (first.end_lineno or 0) - first.lineno + 1 if docstring else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - words


@pytest.mark.parametrize("file", FILES)
def test_no_function_has_more_than_40_lines(file: str) -> None:
    assert [(name, lines) for name, lines in functions(FILES[file].read_text()) if lines > 40] == []


def test_nine_files_of_ten_have_at_most_250_lines_and_none_has_500() -> None:
    lines = {name: len(path.read_text().splitlines()) for name, path in FILES.items()}
    assert sorted(lines.values())[len(lines) * 9 // 10] <= 250, lines
    assert {name: n for name, n in lines.items() if n > 500} == {}


def test_the_median_function_is_small() -> None:
    assert statistics.median(n for path in FILES.values() for _, n in functions(path.read_text())) <= 14


def test_the_count_leaves_docstrings_out() -> None:
    source = (
        'def f():\n    """One.\n\n    Two."""\n    return 1\nclass A:\n    async def g(self):\n        pass\n'
    )
    assert list(functions(source)) == [("f", 2), ("g", 2)]
