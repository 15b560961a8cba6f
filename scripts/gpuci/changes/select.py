"""Changed files and two trees -> which tests are due, and why. Pure.

A package is the smallest thing that changes. Any doubt means everything, with the reason: a file in no
package or in one that nobody can name, a file that the configuration names so, the configuration itself. A
package whose needs can't be told is due whenever anything changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuci.changes.aliases import MOST, Aliases
from gpuci.changes.locks import NAME as LOCK_NAME
from gpuci.changes.model import Changes, Due, FileChange, Lock, Rules, Side
from gpuci.changes.projects import MARKERS
from gpuci.changes.units import TooIntricate, Units, directories, entries
from gpuci.config.model import Config
from gpuci.repository.globs import above, first_match, holds, literal, names
from gpuci.repository.listing import GITLINK

REASONS = 20  # that are told of everything; more say nothing new
# Python imports them by itself, from any directory on its path; of what is installed it runs lines of `*.pth`
# (docs.python.org, "site").
_SITE = ("sitecustomize.py", "usercustomize.py")


def rules_of(config: Config, files: Sequence[str]) -> Rules:
    """What a configuration says of changes; `files` are those that it was read from."""
    everything, ignore = config.changes["everything"], config.changes["ignore"]
    image = tuple(_image(config.container.get("build")))
    return Rules(config.packages, tuple(everything), tuple(ignore), tuple(files), image)


def _image(build: Mapping[str, Any] | None) -> Iterator[str]:
    """Globs of what an image is built from, as far as it is less than all of ROOT."""
    if build:
        yield literal(build["file"])
        yield from build["inputs"] or ([] if build["context"] == "." else [literal(build["context"])])


def everything(because: Sequence[str], rules: Rules, head: Side, ids: tuple[str, str] = ("", "")) -> Changes:
    """All that the configuration names."""
    packages = entries(rules.packages, head, directories(head))
    return Changes(*ids, everything=True, because=tuple(because), packages=tuple(packages))


def select(
    changed: Sequence[FileChange], base: Side, head: Side, rules: Rules, locks: Mapping[str, Lock | None]
) -> Changes:
    """What the changed files can break; `base` and `head` of the result are empty.

    `locks` has the changed lock files by path, None for one that can't be compared. The needs of both trees
    count: a change that takes a need away is tested where the need was.
    """
    try:
        units = Units(rules, base, head)
    except TooIntricate as doubt:
        return replace(everything([doubt.what], rules, head), changed=tuple(changed))
    known = Aliases(base.links, head.links)
    submodules = {path for files in (base.files, head.files) for path in files if files[path][0] == GITLINK}
    named = {one.path: known.of(one.path, submodule=one.path in submodules) for one in changed}
    kept, ignored, reasons = _sorted(named, rules, units, locks)
    reasons += [f"{entry} is one of the packages, and is not there any more" for entry in units.gone]
    if reasons:
        found = everything(_first(reasons), rules, head)
    else:
        due = _dependents(units, _direct(kept, units, locks))
        tests = tuple(_cover(due, units, head))
        found = Changes("", "", False, (), tuple(test.path for test in tests), tests)
    return Changes(
        "", "", found.everything, found.because, found.packages, found.tests, tuple(changed), tuple(ignored)
    )


def _sorted(
    named: Mapping[str, Sequence[str]], rules: Rules, units: Units, locks: Mapping[str, Lock | None]
) -> tuple[list[str], list[str], list[str]]:
    """Paths that count, paths that are ignored, and reasons for everything; `named`: path -> all its names.

    A link can make a test of what is ignored by its own name. It counts by the names that are not, then.
    """
    kept: list[str] = []
    ignored: list[str] = []
    reasons: list[str] = []
    for path, names_ in named.items():
        wide = _for_all(names_, rules)
        counted = [name for name in names_ if not any(_ignores(pattern, name) for pattern in rules.ignore)]
        if wide:
            reasons.append(f"{path}{wide}")
        elif len(names_) >= MOST and (rules.everything or not counted):
            reasons.append(f"{path} is reached by too many links to tell its names")
        elif not counted:
            ignored.append(path)
        else:
            due = counted[:1] if counted[0] == path else counted  # the units of links depend on its own
            doubts = [f"{name} is loaded by every Python that finds it" for name in filter(_is_site, counted)]
            doubts += [f"{name}{doubt}" for name in due if (doubt := _in_doubt(name, rules, units, locks))]
            reasons += doubts[:1]
            kept += [] if doubts else due
    return kept, ignored, reasons


def _for_all(names_: Sequence[str], rules: Rules) -> str:
    """Why a file means everything, by what the configuration says and by what it is called."""
    if names_[0] in rules.configuration:
        return " is the configuration"
    for name in names_:
        pattern = first_match(rules.everything, name)
        if pattern is not None:
            return f": changes.everything has {pattern}"
    return ""


def _ignores(pattern: str, path: str) -> bool:
    """Whether a glob of `changes.ignore` names a path. `*.md` means files, not what is in a directory of such
    a name: that can be a test."""
    last = pattern.rstrip("/").rpartition("/")[2]
    files = last != "**" and any(character in last for character in "*?[")
    return names(pattern, path) if files else first_match([pattern], path) is not None


def _is_site(path: str) -> bool:
    """Whether Python runs a file of this name at its start, if it is installed or on its path."""
    name = path.rpartition("/")[2]
    return name in _SITE or name.endswith(".pth")


def _in_doubt(path: str, rules: Rules, units: Units, locks: Mapping[str, Lock | None]) -> str:
    """Why a file means everything, by what it is. Project and lock files tell who they are for."""
    name = path.rpartition("/")[2]
    homes = units.homes(path)
    if not homes:
        return " is in no package"
    if name not in (*MARKERS, LOCK_NAME) and first_match(rules.image, path) is not None:
        return " is part of the image"
    nameless = [unit for unit in homes if unit in units.nameless]
    if nameless and locks.get(path) is None:
        return f" is in {nameless[0]}, which has no name: it can't be told who needs it"
    return ""


def _first(reasons: Sequence[str]) -> list[str]:
    rest = len(reasons) - REASONS
    return [*reasons[:REASONS], f"and {rest} more changed files"] if rest > 0 else list(reasons)


def _direct(paths: Sequence[str], units: Units, locks: Mapping[str, Lock | None]) -> dict[str, Due]:
    """The units in which something changed, and those inside of them: what lies around a package counts for
    it (a conftest.py)."""
    found: dict[str, Due] = {}
    for path in paths:
        lock = locks.get(path) if path.rpartition("/")[2] == LOCK_NAME else None
        if lock is not None:
            _of_lock(path, lock, units, found)
            continue
        for start in units.homes(path):
            _spread(start, (path,), f"{path} changed", units, found)
    return found


def _spread(start: str, because: tuple[str, ...], why: str, units: Units, found: dict[str, Due]) -> None:
    found.setdefault(start, Due(start, (*because, start), why))
    for inside in units.below(start):
        found.setdefault(inside, Due(inside, (*because, start, inside), f"is inside of {start}: {why}"))


def _of_lock(path: str, lock: Lock, units: Units, found: dict[str, Due]) -> None:
    """Members whose locked needs changed; units that the lock does not know may use any of it."""
    directory = path.rpartition("/")[0] or "."
    for member, used in sorted(lock.changed.items()):
        unit = units.of(member)
        for start in [unit] if unit is not None else units.below(member):
            _spread(start, (path,), f"{used} changed in {path}", units, found)
    if lock.changed:
        for unit in units.below(directory):
            if unit not in lock.members:
                found.setdefault(unit, Due(unit, (path, unit), f"{path} changed, and does not know it"))


def _dependents(units: Units, direct: Mapping[str, Due]) -> dict[str, Due]:
    """The units that changed and all that use them, by the shortest way."""
    users: dict[str, list[tuple[str, str]]] = {}
    for unit in units.paths:
        for used, why in units.depends[unit].items():
            users.setdefault(used, []).append((unit, why))
    found = dict(direct)
    waiting = deque(sorted(found))
    if found:
        first = found[waiting[0]]
        for unit in units.paths:
            if unit in units.unknown and unit not in found:
                found[unit] = Due(unit, (*first.because, unit), units.unknown[unit])
                waiting.append(unit)
    while waiting:
        used = waiting.popleft()
        for unit, why in users.get(used, ()):
            if unit not in found:
                found[unit] = Due(unit, (*found[used].because, unit), f"{why}, which is due by {used}")
                waiting.append(unit)
    return found


def _cover(due: Mapping[str, Due], units: Units, head: Side) -> list[Due]:
    """What is due of the guest list: whole entries where all in them is due, else parts of them."""
    found: list[Due] = []
    inside = _children(head)
    for entry in sorted(units.entries, key=lambda path: (path != ".", path)):
        if not any(holds(test.path, entry) for test in found):
            found += sorted(_parts(entry, due, units, inside), key=lambda test: test.path)
    return found


def _parts(entry: str, due: Mapping[str, Due], units: Units, inside: Mapping[str, set[str]]) -> Iterator[Due]:
    """No recursion: a path has room for more directories than Python has for calls."""
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        owner = units.of(path) or path
        if owner not in due:
            continue  # nothing inside is, then: who is around uses it
        if all(unit in due for unit in units.below(path)):
            why = due[owner]
            yield Due(path, why.because if path == owner else (*why.because, path), why.why)
        else:
            waiting += sorted(inside.get(path, ()))


def _children(head: Side) -> dict[str, set[str]]:
    """Directory -> what lies directly in it."""
    found: dict[str, set[str]] = {}
    for path in head.files:
        below = path
        for directory in list(above(path))[1:]:
            known = directory in found
            found.setdefault(directory, set()).add(below)
            if known:
                break
            below = directory
    return found


def reason(changes: Changes, path: str) -> Due | None:
    """Why the tests of a file are due; None if they are not, or everything is."""
    return next((test for test in changes.tests if test.path in set(above(path))), None)
