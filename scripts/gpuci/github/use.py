"""One of several uses of gpuci in a repository (two roots, two clusters): what keeps them apart. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuci.errors import ConfigError

# No `.`, which ends the name where another word follows it.
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,18}[a-z0-9])?")


@dataclass(frozen=True)
class Use:
    """A use by its name, empty where it is the only one. Other names give other values of each kind."""

    name: str = ""

    @property
    def prefix(self) -> str:
        """What names of artifacts, folders and concurrency groups begin with."""
        return f"gpuci.{self.name}." if self.name else "gpuci-"

    @property
    def context(self) -> str:
        """The commit status with the result; the approval has none of its own, it is of the commit."""
        return f"gpuci ({self.name})" if self.name else "gpuci"

    def run(self, number: str) -> str:
        """GitHub's number of a run, as it stands in the names of Slurm jobs."""
        return f"{number}.{self.name.replace('-', '.')}" if self.name else number


def use_of(name: str) -> Use:
    """Raises ConfigError for what is no name."""
    if name and not _NAME.fullmatch(name):
        raise ConfigError(
            f"the input name is {name!a:.60}",
            why="it stands in names of artifacts, Slurm jobs, folders and a commit status",
            then="give at most 20 of a-z, 0-9, `-` and `_`, none of the last two first or last",
        )
    return Use(name)
