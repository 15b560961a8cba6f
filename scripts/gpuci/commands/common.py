"""What the commands share: their common arguments, and the steps from a directory to a plan."""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpuci import environment
from gpuci.commands.output import say, short
from gpuci.config.load import CONFIG_FILE, find_root, load_config
from gpuci.config.model import Config
from gpuci.discovery.discover import discover
from gpuci.discovery.roots import expand
from gpuci.durations import read as duration_file
from gpuci.durations.parse import Durations
from gpuci.errors import ConfigError
from gpuci.model import Manifest, Plan
from gpuci.planning.keyword_expression import expression_fault
from gpuci.planning.plan import make_plan
from gpuci.reporting.text import plural

PACKAGES_VARIABLE = "GPUCI_PACKAGES"
EVENTS = (
    "manual",
    "schedule",
    "workflow_dispatch",
    "pull_request",
    "pull_request_target",
    "push",
    "merge_group",
)


def add_tree_arguments(parser: argparse.ArgumentParser) -> None:
    """ROOT and what chooses its configuration."""
    parser.add_argument(
        "root",
        nargs="?",
        metavar="ROOT",
        help="directory with .github/gpuci.yml (default: the nearest one at or above the working directory)",
    )
    add_config_arguments(parser)


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """What chooses the configuration of a tree."""
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="configuration file; repeat for overlays",
    )
    parser.add_argument(
        "--packages",
        metavar="P",
        help=f"directories or globs below ROOT, in one string (also: {PACKAGES_VARIABLE})",
    )


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """What changes the plan of a tree."""
    parser.add_argument("--shards", type=int, metavar="N", help="number of shards (1 to 12)")
    parser.add_argument(
        "--durations",
        metavar="F",
        help="what earlier runs measured: report.json of a run, durations.json, or {node id: seconds}",
    )
    parser.add_argument(
        "--event",
        choices=EVENTS,
        metavar="NAME",
        help="a GitHub event, or `manual` (default): `schedule` also runs nightly tests",
    )
    parser.add_argument(
        "-k",
        dest="expression",
        metavar="EXPR",
        help="run only what pytest's -k selects (as it runs: the plan counts every test)",
    )


def _root(args: argparse.Namespace) -> Path:
    """ROOT as given, else the directory with a configuration at or above PATH or the working directory."""
    if getattr(args, "root", None):
        root = Path(args.root).resolve()
        if not root.is_dir():
            raise ConfigError(
                f"{args.root} is not a directory", then="name the directory that holds .github/gpuci.yml"
            )
        return root
    return find_root(Path(*getattr(args, "paths", [])[:1]).resolve())


@dataclass(frozen=True)
class Tree:
    """A directory with its configuration."""

    root: Path
    config: Config


def load_tree(args: argparse.Namespace) -> Tree:
    """Find ROOT and read its configuration; raises ConfigError."""
    root = _root(args)
    if not args.config and not os.path.lexists(root / CONFIG_FILE):
        say(f"no {CONFIG_FILE} {_searched(root)} is read as one package")
    _tell_of_unread(root / CONFIG_FILE, args.config)
    packages = args.packages or os.environ.get(PACKAGES_VARIABLE) or None
    config = load_config(root, [Path(name) for name in args.config], packages=packages)
    expression = getattr(args, "expression", None)
    return Tree(root, _selecting(config, expression) if expression else config)


def _selecting(config: Config, expression: str) -> Config:
    """The configuration with pytest's `-k`; raises ConfigError for one that pytest can't read."""
    fault = expression_fault(expression)
    if fault:
        raise ConfigError(f"-k {expression!a}: {fault}", then="combine names with and, or, not and brackets")
    extended = (*config.node.pytest_args, "-k", expression)
    return replace(config, node=replace(config.node, pytest_args=extended))


def _searched(root: Path) -> str:
    return "here or above: this directory" if root == Path.cwd() else f"in {short(root)}: it"


def _tell_of_unread(own: Path, given: Sequence[str]) -> None:
    """Files of --config replace ROOT's own; who means to lay them over it gives both."""
    if not given or not own.is_file() or own.resolve() in {Path(name).resolve() for name in given}:
        return
    both = " ".join(f"--config {shlex.quote(short(path))}" for path in (own, *map(Path, given)))
    say(f"{short(own)} is not read, because --config names other files; give both: {both}")


def find_tests(tree: Tree) -> Manifest:
    """Read the tree's tests, and say how many on standard error."""
    started = time.monotonic()
    waiting = threading.Timer(2.0, say, [f"reading the tests of {short(tree.root)} ..."])
    waiting.start()
    try:
        manifest = discover(tree.root, tree.config, cache_dir=_facts_directory(tree.root))
    finally:
        waiting.cancel()
    for error in manifest.errors:
        say(f"{error.path}:{error.line}: {error.message} (planned whole: pytest will say more)")
    seconds = time.monotonic() - started
    functions, files = len(manifest.targets), len(manifest.files)
    say(f"found {plural(functions, 'test function')} in {plural(files, 'file')} ({seconds:.1f} s)")
    if not files:
        say(f"no test files there: name their directories in `packages` of {CONFIG_FILE}")
    for warning in unmatched_packages(tree):
        say(warning)
    return manifest


def unmatched_packages(tree: Tree) -> list[str]:
    """A warning for each entry of `packages` that names nothing: its tests would be missed by nobody."""
    found = expand(tree.root, tree.config.packages)
    return [f"packages: {entry} matches nothing in the tree" for entry, paths in found.items() if not paths]


def _facts_directory(root: Path) -> Path | None:
    """Where what was read of this tree is kept: outside of it, since nothing in the tree can be trusted."""
    cache = environment.user_cache()
    return cache and cache / "facts" / hashlib.sha256(os.fsencode(root)).hexdigest()[:12]


def plan_tests(args: argparse.Namespace, tree: Tree, manifest: Manifest) -> Plan:
    """Plan the run; raises ConfigError."""
    file = tree.config.durations["file"]
    if file and args.durations is None and not os.path.lexists(tree.root / file):
        say(f"durations.file: there is no {file} yet, so all durations are estimated")
    known = durations(args, tree)
    return make_plan(
        manifest,
        tree.config,
        durations=known.seconds,
        needs=known.needs,
        shards=args.shards,
        event=args.event or "manual",
        sha=head_sha(tree.root),
    )


def durations(args: argparse.Namespace, tree: Tree) -> Durations:
    """What earlier runs measured: of --durations, else of the configured file if it is there, else none."""
    if args.durations is not None:
        return duration_file.read(Path(args.durations))
    configured = tree.config.durations["file"]
    if configured and os.path.lexists(tree.root / configured):
        return duration_file.read(tree.root / configured)
    return Durations()


def head_sha(root: Path) -> str | None:
    """The commit that is checked out, None outside of a repository or without git."""
    command = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
