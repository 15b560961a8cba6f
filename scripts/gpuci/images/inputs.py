"""The files of a commit that an image is made of -> what the build sees, and its content hash. Pure.

The build sees nothing but these files, so that equal hashes mean equal builds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuci.errors import ConfigError
from gpuci.images.settings import Build
from gpuci.repository.globs import first_match, matches
from gpuci.repository.listing import FILES, GITLINK, Entry

# A change of how images are built, which makes all earlier ones stale.
_FORMAT = 1
_IGNORE_FILES = (".dockerignore", ".containerignore")


@dataclass(frozen=True)
class Inputs:
    """`counted` makes the hash, `seen` is what the build gets (the Dockerfile, and files of the context).

    `remarks` are for people: a glob that matches nothing, a submodule.
    """

    counted: tuple[Entry, ...]
    seen: tuple[Entry, ...]
    remarks: tuple[str, ...]


def inputs_of(build: Build, entries: Sequence[Entry]) -> Inputs:
    """Choose from a commit's files, their paths relative to ROOT; raises ConfigError."""
    dockerfile = next((entry for entry in entries if entry.path == build.file), None)
    if dockerfile is None:
        raise ConfigError(
            f"the commit has no {build.file}",
            why="container.build.file names it, in the configuration of the default branch for pull requests",
            then="add the file, or name another",
        )
    if build.file.endswith(".in"):
        raise ConfigError(
            f"container.build.file is {build.file}",
            why="podman gives a file of this name to cpp, whose #include reads any file of the runner",
            then="name it otherwise",
        )
    if not any(_within(build.context, entry.path) for entry in entries):
        raise ConfigError(
            f"the commit has no directory {build.context}",
            why="container.build.context names it, as what the build sees",
            then="correct it, or leave it out for all of ROOT",
        )
    chosen = [entry for entry in entries if _chosen(build, entry.path)]
    _refuse_links(build, [dockerfile, *chosen])
    context = [entry for entry in chosen if entry.mode != GITLINK and _within(build.context, entry.path)]
    return Inputs(
        counted=_unique([dockerfile, *chosen]),
        seen=_unique([dockerfile, *context]),
        remarks=tuple(_remarks(build, entries, chosen)),
    )


def content_hash(build: Build, inputs: Inputs) -> str:
    """64 hex digits for all that decides what is built: files, their modes, and how they are built.

    The repository does not count: an image may move.
    """
    facts = {
        "format": _FORMAT,
        "file": build.file,
        "context": build.context,
        "args": build.args,
        "target": build.target,
        "platform": build.platform,
        "files": [[entry.path, entry.mode, entry.object_id] for entry in inputs.counted],
    }
    # ASCII escapes keep the surrogates of names that are not UTF-8.
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()


def _chosen(build: Build, path: str) -> bool:
    if not build.inputs:
        return _within(build.context, path)
    return first_match(build.inputs, path) is not None


def _within(directory: str, path: str) -> bool:
    return directory == "." or path.startswith(f"{directory}/")


def _refuse_links(build: Build, entries: Iterable[Entry]) -> None:
    """A builder opens these files itself: a link would make it read a file of the runner."""
    opened = {build.file, *(f"{build.file}{name}" for name in _IGNORE_FILES)}
    opened |= {name if build.context == "." else f"{build.context}/{name}" for name in _IGNORE_FILES}
    for entry in entries:
        if entry.path in opened and entry.mode not in FILES:
            raise ConfigError(
                f"{entry.path} is no regular file",
                why="the builder reads it on the runner, where a link leads to the runner's own files",
                then="put the file itself there",
            )


def _remarks(build: Build, entries: Sequence[Entry], chosen: Sequence[Entry]) -> Iterable[str]:
    for pattern in build.inputs:
        if not any(matches(pattern, entry.path) for entry in entries):
            yield f"container.build.inputs: {pattern} matches no file of the commit"
    for entry in chosen:
        if entry.mode == GITLINK:
            yield f"the submodule {entry.path} counts by its commit, and the build does not see its files"


def _unique(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    found = {entry.path: entry for entry in entries}
    return tuple(found[path] for path in sorted(found))
