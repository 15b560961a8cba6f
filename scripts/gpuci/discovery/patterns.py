"""pytest's two ways of matching names. Pure; `_pytest/pathlib.py` fnmatch_ex, `_pytest/python.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase, translate

from gpuci.discovery.pytest_config import PytestRules


def path_matches(pattern: str, path: str) -> bool:
    """Whether a ROOT-relative path matches: a pattern without "/" on its last part, else on its end."""
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    if not pattern.startswith("/"):
        pattern = "*/" + pattern
    return fnmatchcase("/" + path, pattern)


def matches_any(patterns: Iterable[str], path: str) -> bool:
    """Whether any of the patterns matches the path."""
    return any(path_matches(pattern, path) for pattern in patterns)


def hint_pattern(rules: PytestRules) -> re.Pattern[bytes]:
    """What the text of a file speaks of if it makes tests in a way that a reading can't follow.

    The literal part of `python_functions` and `python_classes`, or unittest, whose classes have any name.
    """
    literals = [(option, _literal(option)) for option in rules.python_functions]
    # "pytest" and "latest" are no names of tests.
    functions = [
        ("(?<![A-Za-z])" if option.startswith(text) else "") + re.escape(text) for option, text in literals
    ]
    classes = [re.escape(_literal(option)) for option in rules.python_classes]
    return re.compile("|".join(["unittest", "TestCase", *functions, *classes]).encode())


def _literal(option: str) -> str:
    """The longest part of a glob that stands for itself."""
    return max(re.split(r"[*?]|\[[^]]*\]", option), key=len)


def name_pattern(options: Sequence[str]) -> re.Pattern[str]:
    """`python_classes` or `python_functions`: prefixes, and globs where there is a `*`, `?` or `[`."""
    alternatives = []
    for option in options:
        alternatives.append(re.escape(option) + "[^\0]*")
        if any(character in option for character in "*?["):
            alternatives.append(translate(option))
    return re.compile("|".join(f"(?:{alternative})" for alternative in alternatives) or r"(?!)")
