"""A directory's project files -> what it is called and needs. Pure.

Sources: PEP 503 (names), PEP 508 and 621 (dependencies), PEP 735 (dependency groups); docs.astral.sh/uv
(workspaces, `tool.uv.sources`), python-poetry.org, pdm-project.org, hatch.pypa.io for tables of tools.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpuci.changes import toml
from gpuci.changes.model import Project
from gpuci.repository.globs import holds

# A directory with one of the first three is a project; the others can name directories beside it.
MARKERS = ("pyproject.toml", "setup.py", "setup.cfg")
READ = (*MARKERS, "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "uv.toml")
MAX_BYTES = 2_000_000  # of one file; more is no project file

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
# Tables of every tool that declares dependencies have one of these in their names: `dependencies`,
# `optional-dependencies`, `dependency-groups`, `requires`, `sources`, `dev-dependencies`, …
_DECLARES = re.compile(r"depend|requires|sources|constraints|extras|overrides", re.IGNORECASE)
_NO_PATH = re.compile(r"[^\w.@+/-]+")
_QUOTED = re.compile(r"[\"'](\.\.?/[^\"'\n]*)[\"']")
# The group of entry points that pytest loads (its docs, "Writing plugins"); or all stand in another file.
_PLUGIN = re.compile(r"\bpytest11\b|\bentry[-_]points\s*=\s*file:")
_SETUP_CFG_NAME = re.compile(r"^\[metadata\][^\[]*?^name\s*[=:]\s*([\w.-]+)\s*$", re.MULTILINE)
_SETUP_PY_NAME = re.compile(r"\bname\s*=\s*[\"']([\w.-]+)[\"']")
_PYTHONPATH = re.compile(r"\bpythonpath\s*[=:]\s*(\[[^\][]*\]|.*(?:\n[ \t]+.*)*)")


def normalized(name: str) -> str:
    """A project's name in the form in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def project(path: str, files: Mapping[str, bytes]) -> Project:
    """The project in a directory; `files` are those of READ that it has, by name."""
    texts = {
        name: data[:MAX_BYTES].decode("utf-8", "replace") for name, data in files.items() if name in READ
    }
    found = Project(
        path,
        name=_name(_SETUP_CFG_NAME.findall(texts.get("setup.cfg", ""))),
        paths=frozenset(_paths(path, texts)),
        unknown="no pyproject.toml tells what it depends on",
        aliases=frozenset(map(normalized, _SETUP_PY_NAME.findall(texts.get("setup.py", "")))),
        plugin=any(_PLUGIN.search(text) for text in texts.values()),
    )
    if "pyproject.toml" not in files:
        return found
    data = files["pyproject.toml"]
    document = toml.document(data) if len(data) <= MAX_BYTES else None
    if document is None:
        why = "can't be read" if toml.READABLE else "is not read by Python 3.10: take a newer one"
        return replace(found, unknown=f"its pyproject.toml {why}")
    standard, poetry = toml.table(document, "project"), toml.table(document, "tool", "poetry")
    return replace(
        found,
        plugin=found.plugin or "entry-points" in _dynamic(standard),
        name=_name([standard.get("name"), poetry.get("name"), found.name]),
        needs=frozenset(_needs(document)),
        unknown=_unknown(standard, poetry),
    )


def _name(said: Iterable[Any]) -> str:
    return next((normalized(name) for name in said if isinstance(name, str) and name), "")


def _unknown(standard: dict[str, Any], poetry: dict[str, Any]) -> str:
    if "dependencies" in poetry:
        return ""
    if {"dependencies", "optional-dependencies"} & _dynamic(standard):
        return "its dependencies are dynamic: pyproject.toml does not tell them"
    return "" if standard else "its pyproject.toml has no table [project] to tell what it depends on"


def _dynamic(standard: dict[str, Any]) -> set[str]:
    """What is told elsewhere, or made when the project is built (PEP 621)."""
    dynamic = standard.get("dynamic", [])
    return {str(one) for one in dynamic} if isinstance(dynamic, list) else set()


def _needs(document: Any, declared: bool = False) -> Iterator[str]:
    """All names that stand in a table which declares dependencies, as keys or as requirements.

    A name too many costs time; one too few would cost a test that should have run.
    """
    if isinstance(document, dict):
        for key, value in document.items():
            if declared:
                yield normalized(key)
            yield from _needs(value, declared or bool(_DECLARES.search(key)))
    elif isinstance(document, list):
        for value in document:
            yield from _needs(value, declared)
    elif isinstance(document, str) and declared:
        found = _NAME.match(document)
        if found:
            yield normalized(found[1])


def _paths(path: str, texts: Mapping[str, str]) -> Iterator[str]:
    """What the files name by a way that goes up: sources, editable installs, code that is taken along.

    A directory around this one is mostly named for something else (the root of the version control); it
    counts as a place that modules are imported from.
    """
    for text in texts.values():
        places = set(_NO_PATH.split(" ".join(_PYTHONPATH.findall(text))))
        for found in sorted({*_NO_PATH.split(text), *_QUOTED.findall(text)}):
            way = found[1:] if found.startswith("/../") else found  # file:///${PROJECT_ROOT}/../x
            if ".." not in way.split("/") or way.startswith("/"):
                continue
            target = posixpath.normpath(posixpath.join(path, way))
            if (
                not target.startswith("../")
                and target != ".."
                and (not holds(target, path) or found in places)
            ):
                yield target
