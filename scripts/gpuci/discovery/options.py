"""pytest's options, as far as they change which files are collected. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuci.discovery.pytest_config import WORD_SETTINGS, PytestRules, section_rules, with_words

# Options whose value is the next word; every other long option without "=" leaves that open.
_WITH_VALUE = frozenset(
    [
        "-k",
        "-m",
        "-p",
        "-c",
        "-o",
        "-n",
        "-W",
        "-r",
        "--rootdir",
        "--confcutdir",
        "--basetemp",
        "--junitxml",
        "--junit-xml",
        "--junit-prefix",
        "--deselect",
        "--ignore",
        "--ignore-glob",
        "--import-mode",
        "--doctest-glob",
        "--maxfail",
        "--durations",
        "--durations-min",
        "--tb",
        "--color",
        "--dist",
        "--tx",
        "--cov",
        "--cov-report",
        "--cov-config",
        "--cov-fail-under",
        "--timeout",
        "--timeout-method",
        "--log-level",
        "--log-cli-level",
        "--log-file",
        "--log-file-level",
        "--override-ini",
        "--config-file",
        "--capture",
        "--show-capture",
        "--asyncio-mode",
        "--numprocesses",
        "--maxprocesses",
        "--reruns",
        "--reruns-delay",
        "--pythonwarnings",
        "--doctest-report",
        "--verbosity",
        "--last-failed-no-failures",
        "--lfnf",
    ]
)
_FLAGS = frozenset(
    [
        "-v",
        "-vv",
        "-vvv",
        "-q",
        "-qq",
        "-s",
        "-x",
        "-l",
        "-ra",
        "-rA",
        "-rs",
        "-rf",
        "-rfE",
        "-rxs",
        "-rxXs",
        "--verbose",
        "--quiet",
        "--strict",
        "--strict-markers",
        "--strict-config",
        "--exitfirst",
        "--showlocals",
        "--doctest-modules",
        "--doctest-ignore-import-errors",
        "--doctest-continue-on-failure",
        "--pyargs",
        "--lf",
        "--ff",
        "--nf",
        "--sw",
        "--cache-clear",
        "--no-header",
        "--no-summary",
        "--disable-warnings",
        "--disable-pytest-warnings",
        "--no-cov",
        "--cov-append",
        "--runxfail",
        "--setup-show",
        "--full-trace",
        "--continue-on-collection-errors",
        "--collect-in-virtualenv",
        "--noconftest",
        "--benchmark-disable",
        "--benchmark-skip",
    ]
)


def make_rules(section: Mapping[str, Any], pytest_args: Sequence[str] = ()) -> PytestRules:
    """The rules of an ini section, with the options of its `addopts` and then of `pytest_args` applied."""
    rules = section_rules(section)
    return with_options(rules, [*rules.addopts, *pytest_args])


def with_options(rules: PytestRules, options: Sequence[str]) -> PytestRules:
    """Apply the options that change which files are collected; the others are left to pytest."""
    for name, value in _settings(options):
        if name == "":
            rules = replace(rules, args=(*rules.args, value))
        elif name == "--ignore":
            rules = replace(rules, ignore=(*rules.ignore, value.rstrip("/")))
        elif name == "--ignore-glob":
            rules = replace(rules, ignore_glob=(*rules.ignore_glob, value))
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
    if name in WORD_SETTINGS:
        return with_words(rules, {name: value})
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
        elif word.startswith("-o") and "=" in word:
            yield "-o", word[2:]
        elif word in _WITH_VALUE:
            yield word, words[index] if index < len(words) else ""
            index += 1
        else:
            yield word, ""
            unknown = word.startswith("--") and word not in _FLAGS
            if unknown and index < len(words) and not words[index].startswith("-"):
                index += 1
