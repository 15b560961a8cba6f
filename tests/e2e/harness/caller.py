"""A repository that calls gpuci: examples/monorepo with one of our examples of workflows, in a bare git."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.harness.product import CLONE

EXAMPLE = CLONE / "examples/monorepo"
CONFIGURATION = ".github/gpuci.yml"
WORKFLOW = ".github/workflows/gpu.yml"
AUTHOR = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "octo"), ("EMAIL", "octo@example.com"), ("DATE", "2026-11-20T10:00:00Z"))
}
FAST = {"core.compression": "0"}  # one scenario has an image's file system in a commit
SETTINGS = {"init.defaultBranch": "main", "commit.gpgsign": "false", "core.hooksPath": "/dev/null", **FAST}
GIT = ("git", *(word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")))


def git(directory: Path, *arguments: str) -> str:
    """What git prints; nothing of the user's own configuration counts."""
    environ = {**AUTHOR, "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        [*GIT, *arguments],
        cwd=directory,
        env={**environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


@dataclass
class Caller:
    """`bare` is what GitHub serves, `tree` where commits are made, `main` the first commit."""

    bare: Path
    tree: Path
    main: str
    checkouts: list[Path] = field(default_factory=list)

    def commit(self, changes: Mapping[str, str], *, on: str, branch: str, message: str = "a change") -> str:
        """Push a commit that writes these files (path -> text) to a branch; its SHA.

        A pull request's head is `refs/pull/N/head`, also that of a fork, which GitHub serves there too.
        """
        git(self.tree, "checkout", "--quiet", "--detach", on)
        for path, text in changes.items():
            write(self.tree / path, text)
        git(self.tree, "add", "--all")
        git(self.tree, "commit", "--quiet", "--message", message)
        ref = branch if branch.startswith("refs/") else f"refs/heads/{branch}"
        git(self.tree, "push", "--quiet", "--force", str(self.bare), f"HEAD:{ref}")
        return git(self.tree, "rev-parse", "HEAD")

    def text(self, path: str) -> str:
        """A file of the first commit."""
        return git(self.tree, "show", f"{self.main}:{path}") + "\n"

    def checkout(self, sha: str, branch: str) -> Path:
        """A clone for act, which takes GITHUB_REPOSITORY, GITHUB_SHA and GITHUB_REF from it."""
        directory = self.tree.parent / f"checkout-{len(self.checkouts)}"
        git(self.tree.parent, "clone", "--quiet", "--no-checkout", str(self.bare), str(directory))
        git(directory, "checkout", "--quiet", "-B", branch, sha)
        git(directory, "remote", "set-url", "origin", "https://github.com/octo/tests.git")
        self.checkouts.append(directory)
        return directory


def make(directory: Path, overlay: Mapping[str, Any], files: Mapping[str, str]) -> Caller:
    """The repository with these files besides; `overlay` replaces keys of the example's configuration."""
    bare, tree = directory / "octo-tests.git", directory / "tree"
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet", "--bare", str(bare))
    for setting, value in FAST.items():  # for what serves it
        git(bare, "config", setting, value)
    git(directory, "init", "--quiet", str(tree))
    for path in git(CLONE, "ls-files", "--", "examples/monorepo").splitlines():
        name = Path(path).relative_to("examples/monorepo")
        write(tree / name, (CLONE / path).read_text(encoding="utf-8"))
    configuration = yaml.safe_load((EXAMPLE / CONFIGURATION).read_text()) | dict(overlay)
    write(tree / CONFIGURATION, json.dumps(configuration, indent=2) + "\n")
    for path, text in files.items():
        write(tree / path, text)
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "the example")
    git(tree, "push", "--quiet", str(bare), "HEAD:refs/heads/main")
    return Caller(bare, tree, git(tree, "rev-parse", "HEAD"))


def write(path: Path, text: str) -> None:
    """Write a file, and the directories on the way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
