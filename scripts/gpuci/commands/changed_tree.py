"""What changed in a working tree since a revision, and which tests that can break. I/O."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpuci.changes.model import Changes, Side
from gpuci.changes.narrow import narrowed
from gpuci.changes.read import Files, Source, compare_trees
from gpuci.changes.select import everything, rules_of, select
from gpuci.commands.common import Tree, find_tests
from gpuci.commands.output import say, short
from gpuci.config.load import CONFIG_FILE
from gpuci.config.modes_file import modes_file
from gpuci.errors import ConfigError
from gpuci.execution.delivery.snapshot import Snapshot, snapshot
from gpuci.model import Manifest
from gpuci.reporting import changes_text
from gpuci.repository.git import Git, GitFailed, bare_repository, user_environment
from gpuci.repository.listing import GITLINK


def add_base_argument(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """The revision that changes are counted from."""
    parser.add_argument(
        "--base",
        required=required,
        metavar="REV",
        help="only tests that the changes since HEAD left REV can break, uncommitted ones too",
    )


def changes_since(args: argparse.Namespace, tree: Tree) -> Changes:
    """What changed since `args.base`; raises ConfigError for what is no revision, and outside of git."""
    with tempfile.TemporaryDirectory(prefix="gpuci-git-") as directory:
        scratch = Path(directory)
        taken = snapshot(tree.root, scratch / "snapshot")
        user = Git(tree.root, user_environment(os.environ))
        bases = _bases(user, args.base, taken)
        rules = rules_of(tree.config, list(_configuration(args, tree.root)))
        source = Source(bare_repository(scratch / "git", taken.objects, len(taken.tree)))
        prefix = user.line("rev-parse", "--show-prefix").rstrip("/")
        head = _head(source, taken, prefix)
        if len(bases) != 1:
            reason = f"{args.base} and HEAD have {len(bases)} common ancestors"
            return replace(everything([reason], rules, Side(head)), head=taken.commit or "")
        before = (
            source.files(f"{bases[0]}^{{commit}}:{prefix}") if _is_there(source, bases[0], prefix) else {}
        )
        compared = compare_trees(source, before, head)
        found = select(compared.changed, compared.base, compared.head, rules, compared.locks)
        return replace(found, base=bases[0], head="" if taken.dirty else taken.commit or "")


def require_there(tree: Tree, path: str) -> None:
    """Raises ConfigError for a path below ROOT that is not in the tree: nothing can be said of it."""
    if not os.path.lexists(tree.root / path):
        raise ConfigError(
            f"--explain: there is no {path!a} in {short(tree.root)}",
            why="a test is named from ROOT on, not from the working directory",
            then="name a test as `gpuci manifest` prints it",
        )


def find_due(args: argparse.Namespace, tree: Tree) -> Manifest:
    """The tree's tests; with `--base` those that the change can break, which is said on standard error."""
    manifest = find_tests(tree)
    if args.base is None:
        return manifest
    changes = changes_since(args, tree)
    for line in changes_text.render(changes).splitlines():
        say(line)
    return manifest if changes.everything else narrowed(manifest, changes.packages)


def _bases(user: Git, revision: str, taken: Snapshot) -> list[str]:
    """Where HEAD left the revision: none without a history in common."""
    try:
        base = user.line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitFailed as error:
        raise ConfigError(
            f"{revision!a} is no revision here",
            why="git knows no branch, tag or commit of that name; a shallow clone has only the newest",
            then="fetch it, or name another: `git branch -a` and `git log` show those that are here",
        ) from error
    if taken.commit is None:
        raise ConfigError("nothing is committed here yet", why="changes are counted from a commit")
    try:
        return user.run("merge-base", "--all", base, taken.commit).decode().split()
    except GitFailed as error:
        if error.said.strip():
            raise
        return []


def _head(source: Source, taken: Snapshot, prefix: str) -> Files:
    """The tree as it lies there: HEAD's, and what differs from it.

    Not simply the snapshot's: that has the files of submodules and of Git LFS in place of what is committed.
    """
    committed = f"{taken.commit}^{{commit}}"
    files = dict(source.files(f"{committed}:{prefix}")) if _is_there(source, committed, prefix) else {}
    lying = source.files(taken.tree)
    for path in taken.dirty.removed:
        files.pop(path, None)
    for path in (*taken.dirty.changed, *taken.dirty.new):
        files[path] = lying.get(path, (GITLINK, "another commit"))
    return files


def _is_there(source: Source, commit: str, prefix: str) -> bool:
    """Whether a commit has the directory."""
    try:
        return source.git.line("cat-file", "-t", f"{commit}:{prefix}") == "tree"
    except GitFailed:
        return False


def _configuration(args: argparse.Namespace, root: Path) -> Iterator[str]:
    """The files below ROOT that the configuration was read from."""
    for path in [Path(name) for name in args.config] or [root / CONFIG_FILE]:
        whole = Path(os.path.abspath(path))
        if whole.is_relative_to(root):
            yield whole.relative_to(root).as_posix()
        modes = modes_file(whole.read_bytes()) if whole.is_file() else None
        if modes is not None:
            yield modes
