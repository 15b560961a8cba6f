"""pytest's configuration files -> the rules that decide what is collected. Pure.

Facts: `_pytest/config/findpaths.py` (which file counts), `_pytest/python.py` and `_pytest/main.py`
(defaults), as of pytest 7.4 to 9.2.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpuci.discovery.ini_text import ini_section, toml_document
from gpuci.source.parse import marker_name

# In order of precedence; the dedicated ones count even when they are empty.
CONFIG_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
NORECURSEDIRS = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")

# Settings that are lists of words.
WORD_SETTINGS = (
    "addopts",
    "norecursedirs",
    "python_classes",
    "python_files",
    "python_functions",
    "pythonpath",
    "testpaths",
)


@dataclass(frozen=True)
class PytestRules:
    """What a root's ini file and options say of collection; patterns are pytest's.

    `testpaths` and `args` (paths given as options) are relative to the root, `ignore` too.
    `doctest_globs` are the patterns of text files.
    """

    python_files: tuple[str, ...] = ("test_*.py", "*_test.py")
    python_classes: tuple[str, ...] = ("Test",)
    python_functions: tuple[str, ...] = ("test",)
    norecursedirs: tuple[str, ...] = NORECURSEDIRS
    testpaths: tuple[str, ...] = ()
    pythonpath: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    addopts: tuple[str, ...] = ()
    collect_imported_tests: bool = True
    args: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    ignore_glob: tuple[str, ...] = ()
    doctest_modules: bool = False
    doctest_globs: tuple[str, ...] = ("test*.txt",)


def read_section(name: str, text: str) -> Mapping[str, Any] | None:
    """pytest's settings in a file called `name`; None if pytest passes that file by."""
    if name in ("pytest.ini", ".pytest.ini"):
        return ini_section(text, "pytest") or {}
    if name in ("pytest.toml", ".pytest.toml"):
        return _table(toml_document(text), "pytest") or {}
    if name == "tox.ini":
        return ini_section(text, "pytest")
    if name == "setup.cfg":
        return ini_section(text, "tool:pytest")
    table = _table(toml_document(text), "tool", "pytest")
    if not table:
        return None
    legacy = table.get("ini_options")
    return legacy if isinstance(legacy, dict) else {k: v for k, v in table.items() if k != "ini_options"}


def _table(document: dict[str, Any] | None, *path: str) -> dict[str, Any] | None:
    table: Any = document
    for key in path:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None


def section_rules(section: Mapping[str, Any]) -> PytestRules:
    """The rules of a section; its `addopts` are kept, not applied (see `options`)."""
    rules = with_words(PytestRules(), {name: section[name] for name in WORD_SETTINGS if name in section})
    if "markers" in section:
        rules = replace(rules, markers=tuple(marker_name(line) for line in _lines(section["markers"])))
    if str(section.get("collect_imported_tests", "true")).strip().lower() in ("false", "0", "no", "off"):
        rules = replace(rules, collect_imported_tests=False)
    return rules


def with_words(rules: PytestRules, settings: Mapping[str, Any]) -> PytestRules:
    """The rules with some of WORD_SETTINGS replaced."""
    changes: dict[str, Any] = {name: words(value) for name, value in settings.items()}
    return replace(rules, **changes)


def words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    text = "" if value is None else str(value)
    try:
        return tuple(shlex.split(text, comments=True))
    except ValueError:
        return tuple(text.split())


def _lines(value: Any) -> list[str]:
    lines = value if isinstance(value, list) else str(value).splitlines()
    return [str(line).strip() for line in lines if str(line).strip()]
