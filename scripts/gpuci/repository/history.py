"""The commit where two lines of history parted. I/O, standard library only.

A runner has no history. Fetching all of it can take minutes, and mostly the nearest hundred commits are
enough; so it is fetched in growing pieces, commits alone, until the answer can't change any more.
"""

from __future__ import annotations

from gpuci.repository.fetch import Repository
from gpuci.repository.git import GitFailed

DEPTHS = (64, 512, 4096, 0)  # commits from each end; 0: all


def merge_bases(repository: Repository, url: str, token: str, one: str, other: str) -> tuple[str, ...]:
    """The best common ancestors of two commits: none if they have no history in common, more than one where
    branches were merged crosswise (git-merge-base(1)).

    The commits are here then, their trees need not be. Raises as `Repository.fetch`.
    """
    for depth in DEPTHS:
        repository.fetch(url, token, sorted({one, other}), depth=depth, filter_="tree:0")
        found = _bases(repository, one, other)
        if _is_final(repository, one, other, found):
            return found
    return found


def _bases(repository: Repository, one: str, other: str) -> tuple[str, ...]:
    try:
        return tuple(repository.git.run("merge-base", "--all", one, other).decode().split())
    except GitFailed as error:
        if error.said.strip():
            raise
        return ()  # it ends with 1 and says nothing


def _is_final(repository: Repository, one: str, other: str, found: tuple[str, ...]) -> bool:
    """Whether more history can't bring a nearer one: all that is on top of those found is known whole."""
    try:
        ends = set((repository.directory / "shallow").read_text("ascii").split())
    except FileNotFoundError:
        return True
    if not found:
        return not ends
    on_top = repository.git.run("rev-list", one, other, "--not", *found).decode().split()
    return not ends.intersection(on_top)
