"""Two states of a uv.lock -> which members of the workspace use something that changed. Pure.

Source: docs.astral.sh/uv/concepts/projects/layout (the lockfile). A package's entry lists what it needs by
name; a member of the workspace has a source of its own directory.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from gpuci.changes import toml
from gpuci.changes.model import Lock

NAME = "uv.lock"
_LOCAL = ("editable", "virtual", "directory", "workspace")
_NEEDS = ("dependencies", "optional-dependencies", "dev-dependencies", "dependency-groups", "requirements")
Packages = Mapping[str, list[dict[str, Any]]]


def compare(directory: str, base: bytes, head: bytes) -> Lock | None:
    """What changed for whom; None if that can't be told. `directory` holds the file, relative to ROOT."""
    before, after = toml.document(base), toml.document(head)
    if before is None or after is None or _frame(before) != _frame(after):
        return None
    old, new = _packages(before), _packages(after)
    if old is None or new is None:
        return None
    changed = {name for name in {*old, *new} if _text(old.get(name)) != _text(new.get(name))}
    if any(name == "pytest" or name.startswith("pytest-") for name in changed):
        return None  # it, and any plugin, acts on the tests of those too that don't declare it
    before_, after_ = _members(old), _members(new)
    # Who was no member before could hide behind a place of its own what others use.
    known = {name for name, (path, _) in after_.items() if before_.get(name, ("",))[0] == path}
    members = {**before_, **after_, **_workspace(after)}
    found: dict[str, str] = {}
    for name, (path, needs) in members.items():
        used = name if name in changed else _changed_need(needs, changed, (old, new), known)
        if used:
            found[posixpath.normpath(posixpath.join(directory, path))] = used
    paths = (posixpath.normpath(posixpath.join(directory, path)) for path, _ in members.values())
    return Lock(found, frozenset(paths))


def _frame(document: dict[str, Any]) -> str:
    """All of the file but its packages, and who the members are."""
    rest = {key: value for key, value in document.items() if key != "package"}
    manifest = toml.table(rest, "manifest")
    return _text({**rest, "manifest": {key: value for key, value in manifest.items() if key != "members"}})


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _packages(document: dict[str, Any]) -> Packages | None:
    """The entries by name; one name can have several, for several platforms."""
    found: dict[str, list[dict[str, Any]]] = {}
    entries = document.get("package", [])
    if not isinstance(entries, list):
        return None
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            return None
        found.setdefault(entry["name"], []).append(entry)
    return found


def _members(packages: Packages) -> dict[str, tuple[str, set[str]]]:
    """Members by name: their directories, and what they need themselves."""
    found = {}
    for name, entries in packages.items():
        for entry in entries:
            source = toml.table(entry, "source")
            path = next((source[key] for key in _LOCAL if isinstance(source.get(key), str)), None)
            if path is not None:
                found[name] = (path, set(_needs(entry)))
    return found


def _workspace(document: dict[str, Any]) -> dict[str, tuple[str, set[str]]]:
    """What a root without a project of its own needs (dependency groups): it stands in the manifest."""
    needs = set(_needs(toml.table(document, "manifest")))
    return {"": (".", needs)} if needs else {}


def _needs(table: dict[str, Any]) -> Iterator[str]:
    for key in _NEEDS:
        yield from _named(table.get(key))


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("name"), str):
            yield value["name"]
        else:
            for below in value.values():
                yield from _named(below)
    elif isinstance(value, list):
        for below in value:
            yield from _named(below)


def _changed_need(
    needs: set[str], changed: set[str], sides: tuple[Packages, ...], members: set[str]
) -> str | None:
    """The first changed name that is reached; not by way of `members`, which count for themselves."""
    due, seen = sorted(needs, reverse=True), set(needs)
    while due:
        name = due.pop()
        if name in members:
            continue
        if name in changed:
            return name
        below = {need for packages in sides for entry in packages.get(name, []) for need in _needs(entry)}
        due += sorted(below - seen, reverse=True)
        seen |= below
    return None
