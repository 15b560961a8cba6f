"""The configuration of a commit, resolved. I/O: reads objects, writes the files that are read."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gpuci.changes.read import Files, Source
from gpuci.config import document
from gpuci.config.load import CONFIG_FILE, MAX_BYTES, load_config
from gpuci.config.model import Config
from gpuci.config.modes_file import modes_file
from gpuci.config.paths import path_fault, tidy_path, unique
from gpuci.errors import ConfigError
from gpuci.execution.transport.login import HOST_KEYS
from gpuci.repository.listing import FILES

# The resolved configuration is an output, and with those of the other jobs one variable of the gate.
HOST_KEY_BYTES = 32_768
# It travels as one environment variable, which Linux limits to 128 KiB (MAX_ARG_STRLEN, execve(2)), and in
# the gate's input once more as a text within JSON.
CONFIGURATION_CHARACTERS = 64_000


@dataclass(frozen=True)
class Configuration:
    """What a commit's files say, and which files those are, relative to ROOT."""

    config: Config
    files: tuple[str, ...]


class Place(NamedTuple):
    """Where the files are, for people: the commit's name, and ROOT in it."""

    commit: str
    root: str = "."

    def of(self, name: str) -> str:
        """The path in the repository of a file of ROOT."""
        return posixpath.normpath(posixpath.join(self.root, name))


def file_names(text: str) -> tuple[str, ...]:
    """The files of the input `config`, one a line; raises ConfigError for what is no path below ROOT."""
    names = [line.strip() for line in text.splitlines() if line.strip()] or [CONFIG_FILE]
    for name in names:
        fault = path_fault(name)
        if fault:
            raise ConfigError(f"config: {name!a} {fault}", then="name files below root, one a line")
    return unique(tidy_path(name) for name in names)


def read(source: Source, files: Files, names: Sequence[str], directory: Path, place: Place) -> Configuration:
    """The configuration in a commit's tree; `files` is the listing of ROOT there.

    `directory` gets the files that are read. Raises ConfigError for what is missing or wrong, in words that
    name the commit's files.
    """
    data = _contents(source, files, names, place)
    named = (modes_file(text) for text in data.values() if len(text) <= MAX_BYTES)
    modes = unique(name for name in named if name is not None and name in files)
    data |= _contents(source, files, modes, place)
    for name, text in data.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    try:
        config = load_config(directory, [directory / name for name in names])
    except ConfigError as error:
        # A single one first: a commit status has room for little more than that.
        what = error.what.replace(f"{directory}/", "").removeprefix("1 problem in the configuration\n  ")
        what = f"{_in_repository(what, data, place)}\n  (as of {place.commit})"
        raise ConfigError(what, why=error.why, then=error.then) from error
    return Configuration(_with_host_keys(config, source, files, place), tuple(data))


def missing_host_keys(config: Config) -> str:
    """Why a resolved configuration that names a login node has no host key of it.

    Empty if it has one, or names a file of the runner's own, which only the runner can tell of.
    """
    name = config.slurm["known-hosts"]
    if not config.slurm["login"] or config.slurm.get(HOST_KEYS) or (name or "").startswith(("/", "~")):
        return ""
    return f"slurm.known-hosts names {name!a}, no file there" if name else "slurm.known-hosts is not set"


def portable(config: Config) -> str:
    """The configuration as text for the other jobs; raises ConfigError if it can't reach them."""
    text = json.dumps(document.to_document(config), separators=(",", ":"))
    if len(text) > CONFIGURATION_CHARACTERS:
        raise ConfigError(
            f"the configuration is too big to travel between jobs: {len(text):,} characters",
            why=f"at most {CONFIGURATION_CHARACTERS:,} fit into a variable; mostly `modes` is the cause",
            then="name directories in `modes` and `packages` in place of many single files",
        )
    return text


def _in_repository(what: str, names: Iterable[str], place: Place) -> str:
    """The text with ROOT before the files that its lines start with: `ml/.github/gpuci.yml:2:5: ...`."""
    named = "|".join(map(re.escape, names))
    return re.sub(rf"(?m)^( *)({named})(?=:\d)", lambda at: at[1] + place.of(at[2]), what)


def _with_host_keys(config: Config, source: Source, files: Files, place: Place) -> Config:
    """The configuration with the lines of the commit's file `slurm.known-hosts`: no runner has that file.

    Lines that say nothing are left out. A file that the commit doesn't have is one of the runner.
    """
    name = config.slurm["known-hosts"]
    if not name or path_fault(name) or files.get(tidy_path(name), ("",))[0] not in FILES:
        return config
    (content,) = source.contents([files[tidy_path(name)][1]]).values()
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()]
    text = "".join(f"{line}\n" for line in lines if line and not line.startswith("#"))
    if not text or len(text.encode()) > HOST_KEY_BYTES:
        raise ConfigError(
            f"slurm.known-hosts: {name!a} of {place.commit} "
            + (f"has more than {HOST_KEY_BYTES:,} bytes of host keys" if text else "holds no host key"),
            then="keep the lines of `ssh-keyscan` of the login nodes in it, compared with what the cluster"
            " publishes; or one line @cert-authority",
        )
    return replace(config, slurm={**config.slurm, HOST_KEYS: text})


def _contents(source: Source, files: Files, names: Sequence[str], place: Place) -> dict[str, bytes]:
    missing = [name for name in names if files.get(name, ("",))[0] not in FILES]
    if missing:
        raise ConfigError(
            f"{place.commit} has no file {', '.join(map(place.of, missing))}",
            why="for pull requests and pushes to other branches that of the default branch counts",
            then=f"commit {CONFIG_FILE} to the default branch first, or correct the inputs root and config",
        )
    objects = source.contents(files[name][1] for name in names)
    return {name: objects[files[name][1]] for name in names}
