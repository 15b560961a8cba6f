"""The configuration that a commit brings while another one counts: whether it would work, once merged. I/O.

Text of anybody: it is read within the limits of any configuration, from git's objects (a link in the tree
leads nowhere), and nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuci.changes.model import Changes
from gpuci.changes.read import Files, Source, listed
from gpuci.config.paths import path_fault, tidy_path
from gpuci.errors import ConfigError
from gpuci.repository.fetch import Repository
from gpuci.steps import configuration
from gpuci.steps.configuration import Configuration, Place


def brought(changes: Changes, counting: Configuration, before: Files, head: Files) -> bool:
    """Whether the commit changes what its configuration is read from; `before` has the one that counts.

    One that only is older than that does not: its merge would leave the newer one. Without a base to tell so,
    each difference is one.
    """
    changed = {one.path for one in changes.changed}
    return any(
        before.get(name) != head.get(name) and (name in changed or not changes.base)
        for name in _watched(counting)
    )


def _watched(counting: Configuration) -> Iterator[str]:
    yield from counting.files
    known_hosts = counting.config.slurm["known-hosts"]
    if known_hosts and not path_fault(known_hosts):
        yield tidy_path(known_hosts)


def check(repository: Repository, sha: str, root: str, names: Sequence[str], directory: Path) -> None:
    """Raises ConfigError if the files `names` of the commit make no configuration. `directory` gets them."""
    source, place = Source(repository.git), Place(f"commit {sha[:12]}", root)
    try:
        files = listed(repository.entries(sha, root))
        read = configuration.read(source, files, configuration.file_names("\n".join(names)), directory, place)
        configuration.portable(read.config)
    except ConfigError as error:
        raise ConfigError(
            f"the configuration that this commit brings does not work\n{error.what}",
            why="this run has that of the default branch; with this one merged each run would stop here, also"
            " that of the pull request that corrects it",
            then="correct it before it is merged; docs/configuration.md lists every setting",
        ) from error
