"""The values of a selection. Pure. All paths are relative to ROOT; `.` is ROOT itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FileChange:
    """A path in which two trees differ: `added`, `deleted`, `modified`, or `type` (a file became a link).

    A renamed file is deleted under one name and added under the other. A mode that changed is `modified`, and
    so is a submodule with another commit.
    """

    path: str
    kind: str


@dataclass(frozen=True)
class Project:
    """A directory that says of itself what it is called and needs, as in pyproject.toml.

    `needs` are normalised names (PEP 503), `paths` what it names by path. `unknown` says why its needs can't
    be told; empty: they are told. Without a `name` nobody can tell who needs it; `aliases` are what its
    setup.py may call it. A `plugin` is one of pytest's, which acts on all tests where it is installed.
    """

    path: str
    name: str = ""
    needs: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    unknown: str = ""
    aliases: frozenset[str] = frozenset()
    plugin: bool = False


@dataclass(frozen=True)
class Side:
    """One of the two trees: `files` with the (mode, object id) of each, its projects by path, and where its
    symbolic links lead (None: out of the tree)."""

    files: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    projects: Mapping[str, Project] = field(default_factory=dict)
    links: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Lock:
    """What changed in a lock file: by the directory of each member, a name of what it uses that changed.

    `members` are all that the file knows.
    """

    changed: Mapping[str, str]
    members: frozenset[str]


@dataclass(frozen=True)
class Rules:
    """What the configuration says of changes. `packages`: its guest list, directories or globs.

    `configuration` are the files that it was read from, `image` globs of what the image is built from.
    """

    packages: tuple[str, ...]
    everything: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    configuration: tuple[str, ...] = ()
    image: tuple[str, ...] = ()


@dataclass(frozen=True)
class Due:
    """Tests that the change can break: those at and below `path`.

    `because` is the way there, from the changed path on; `why` the last step of it in words.
    """

    path: str
    because: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Changes:
    """What is due. With `everything` all of the configuration's packages are, `because` says why, and `tests`
    is empty. `packages` are directories (or files) whose tests are due. `ignored` are changed paths that the
    configuration says mean nothing. `proposed` are the files of the configuration, if the commit brings
    another one than that which counts for it."""

    base: str
    head: str
    everything: bool
    because: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    tests: tuple[Due, ...] = ()
    changed: tuple[FileChange, ...] = ()
    ignored: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()

    @property
    def affected(self) -> bool:
        """Whether any test is due."""
        return self.everything or bool(self.packages)
