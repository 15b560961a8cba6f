"""pytest's configuration files and options -> the rules that decide what is collected. Pure.

Facts: `_pytest/config/findpaths.py` (which file counts), `_pytest/python.py` and `_pytest/main.py`
(defaults), as of pytest 7.4 to 9.2.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
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

# Options whose value is the next word; every other long option without "=" leaves that open.
_WITH_VALUE = frozenset(
    ["-k", "-m", "-p", "-c", "-o", "-n", "-W", "-r", "--rootdir", "--confcutdir", "--basetemp", "--junitxml", "--junit-xml", "--junit-prefix", "--deselect", "--ignore", "--ignore-glob", "--import-mode", "--doctest-glob", "--maxfail", "--durations", "--durations-min", "--tb", "--color", "--dist", "--tx", "--cov", "--cov-report", "--cov-config", "--cov-fail-under", "--timeout", "--timeout-method", "--log-level", "--log-cli-level", "--log-file", "--log-file-level", "--override-ini", "--config-file", "--capture", "--show-capture", "--asyncio-mode", "--numprocesses", "--maxprocesses", "--reruns", "--reruns-delay", "--pythonwarnings", "--doctest-report", "--verbosity", "--last-failed-no-failures", "--lfnf"]
)
_FLAGS = frozenset(
    ["-v", "-vv", "-vvv", "-q", "-qq", "-s", "-x", "-l", "-ra", "-rA", "-rs", "-rf", "-rfE", "-rxs", "-rxXs", "--verbose", "--quiet", "--strict", "--strict-markers", "--strict-config", "--exitfirst", "--showlocals", "--doctest-modules", "--doctest-ignore-import-errors", "--doctest-continue-on-failure", "--pyargs", "--lf", "--ff", "--nf", "--sw", "--cache-clear", "--no-header", "--no-summary", "--disable-warnings", "--disable-pytest-warnings", "--no-cov", "--cov-append", "--runxfail", "--setup-show", "--full-trace", "--continue-on-collection-errors", "--collect-in-virtualenv", "--noconftest", "--benchmark-disable", "--benchmark-skip"]
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
    import_mode: str = "prepend"


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


def make_rules(section: Mapping[str, Any], pytest_args: Sequence[str] = ()) -> PytestRules:
    """The rules of a section, with the options of its `addopts` and of `pytest_args` applied.

    `pytest_args` come last, as on a command line.
    """
    addopts = _words(section.get("addopts"))
    rules = PytestRules(addopts=addopts)
    for name in ("python_files", "python_classes", "python_functions", "norecursedirs", "testpaths", "pythonpath"):
        if name in section:
            rules = replace(rules, **{name: _words(section[name])})
    if "markers" in section:
        rules = replace(rules, markers=tuple(marker_name(line) for line in _lines(section["markers"])))
    if str(section.get("collect_imported_tests", "true")).strip().lower() in ("false", "0", "no", "off"):
        rules = replace(rules, collect_imported_tests=False)
    return with_options(rules, [*addopts, *pytest_args])


def _words(value: Any) -> tuple[str, ...]:
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


def with_options(rules: PytestRules, options: Sequence[str]) -> PytestRules:
    """Apply the options that change which files are collected; the others are left to pytest."""
    for name, value in _settings(options):
        if name == "":
            rules = replace(rules, args=(*rules.args, value))
        elif name == "--ignore":
            rules = replace(rules, ignore=(*rules.ignore, value.rstrip("/")))
        elif name == "--ignore-glob":
            rules = replace(rules, ignore_glob=(*rules.ignore_glob, value))
        elif name == "--import-mode":
            rules = replace(rules, import_mode=value)
        elif name == "--doctest-modules":
            rules = replace(rules, doctest_modules=True)
        elif name == "--doctest-glob":
            default = rules.doctest_globs == PytestRules.doctest_globs
            rules = replace(rules, doctest_globs=(*(() if default else rules.doctest_globs), value))
        elif name in ("-o", "--override-ini"):
            rules = _overridden(rules, value)
    return rules


def _overridden(rules: PytestRules, setting: str) -> PytestRules:
    name, _, value = setting.partition("=")
    if name in ("python_files", "python_classes", "python_functions", "norecursedirs", "testpaths", "pythonpath"):
        return replace(rules, **{name: _words(value)})
    return rules


def _settings(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(option, value) pairs; a path argument has the option "".

    A word after an option that nobody here knows may be its value: it isn't taken for a path, so that
    no file is lost.
    """
    words = list(options)
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            yield "", word
        elif equals and word.startswith("--"):
            yield name, value
        elif word in _WITH_VALUE:
            yield word, words[index] if index < len(words) else ""
            index += 1
        else:
            yield word, ""
            unknown = word.startswith("--") and word not in _FLAGS
            if unknown and index < len(words) and not words[index].startswith("-"):
                index += 1
