"""What a file that can't be imported says: the error itself, in one line, with its place."""

from __future__ import annotations

from typing import Any

import pytest

from gpuci_node.tracebacks import conftest_error, error_in, from_the_error

LOADING = "ImportError while loading conftest '/n/tree/conftest.py'.\n"
# pytest 7.4 to 9.2 print the same here, but for the marks below a line.
MISSING = "conftest.py:1: in <module>\n    import helper\nE   ModuleNotFoundError: No module named 'helper'\n"
DEEPER = (
    "conftest.py:3: in <module>\n    import helper\nhelper.py:2: in <module>\n    f()\n    ^^^\n"
    "E   ZeroDivisionError: division by zero\n"
)
PARSER = "/usr/lib/python3.11/ast.py:50: in parse\n    return compile(source, filename, mode, flags,\n"
IMPORTERS = (
    "/venv/lib/python3.11/site-packages/_pytest/python.py:528: in importtestmodule\n    mod = import_path(\n"
    "/usr/lib/python3.11/importlib/__init__.py:126: in import_module\n    return _bootstrap._import(name)\n"
    "           ^^^^^^^^^\n<frozen importlib._bootstrap>:1204: in _gcd_import\n    ???\n"
)
E_LINES = (
    'E     File "/n/tree/%s", line 2\nE       def f(:\nE             ^\nE   SyntaxError: invalid syntax\n'
)
TWO_LINES = "conftest.py:2: in <module>\n    raise ValueError\nE   ValueError: a\nE   b c\n"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (LOADING + MISSING, "conftest.py:1: ModuleNotFoundError: No module named 'helper'"),
        (
            "warnings\nmore\n" + LOADING + MISSING,
            "conftest.py:1: ModuleNotFoundError: No module named 'helper'",
        ),
        (LOADING + DEEPER, "conftest.py:3: ZeroDivisionError: division by zero"),
        (LOADING + TWO_LINES, "conftest.py:2: ValueError: a"),
        (LOADING + PARSER + E_LINES % "conftest.py", "SyntaxError: invalid syntax (conftest.py, line 2)"),
        (
            LOADING + "conftest.py:7: in <module>\n    import helper\n" + E_LINES % "helper.py",
            "conftest.py:7: SyntaxError: invalid syntax (helper.py, line 2)",
        ),
        (LOADING + "E   KeyError: 1\n", "conftest.py: KeyError: 1"),
        (LOADING, ""),
        (MISSING, ""),
        ("", ""),
    ],
)
def test_a_conftest(said: str, error: str) -> None:
    assert conftest_error(said) == error


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (IMPORTERS + PARSER + E_LINES % "a/test_x.py", "SyntaxError: invalid syntax (test_x.py, line 2)"),
        (
            "E   KeyError: 1\n\nThe above exception was the cause:\n\nE   ValueError: b\nE   assert 1",
            "ValueError: b",
        ),
        (
            "E   SyntaxError: source code string cannot contain null bytes",
            "SyntaxError: source code string cannot contain null bytes",
        ),
        ("no traceback", ""),
    ],
)
def test_an_error(text: str, error: str) -> None:
    assert error_in(text) == error


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (IMPORTERS + PARSER + E_LINES % "test_x.py", E_LINES % "test_x.py"),
        (IMPORTERS + DEEPER, DEEPER),
        (DEEPER + IMPORTERS, DEEPER + IMPORTERS),
        ("in one line", "in one line"),
        ("  of no known form", "  of no known form"),
        ("", ""),
    ],
)
def test_frames_of_who_imports_are_left_out(text: str, left: str) -> None:
    assert from_the_error(text) == left


@pytest.mark.parametrize(
    ("conftest", "message"),
    [
        ("import no_such_helper\n", "conftest.py:1: ModuleNotFoundError: No module named 'no_such_helper'"),
        ("import os\n\nraise ValueError('first\\nsecond')\n", "conftest.py:3: ValueError: first"),
        ("import os\ndef f(:\n", "SyntaxError: invalid syntax (conftest.py, line 2)"),
    ],
)
def test_a_real_conftest(run_tree: Any, conftest: str, message: str) -> None:
    ran = run_tree({"conftest.py": conftest, "test_a.py": "def test_1(): pass\n"})
    assert ran.outcomes == {"test_a.py": "collection_error"}
    assert ran.test("test_a.py").message == message


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"test_a.py": "def test_1(:\n    pass\n"}, "SyntaxError: invalid syntax (test_a.py, line 1)"),
        (
            {"test_a.py": "import helper_of_a\n", "helper_of_a.py": "\nx = = 1\n"},
            "SyntaxError: invalid syntax (helper_of_a.py, line 2)",
        ),
    ],
)
def test_a_real_file_that_is_no_python(run_tree: Any, files: dict[str, str], message: str) -> None:
    ran = run_tree(files)
    told = ran.test("test_a.py")
    assert (told.outcome, told.message) == ("collection_error", message)
    assert told.output.startswith(("E     File ", "test_a.py:1: in "))
    assert "_pytest" not in told.output
