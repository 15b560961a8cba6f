"""`gpuci explain`: one test's mode, class, GPU need, duration and shard, and where each comes from."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from typing import Any

from gpuci.commands.common import (
    add_plan_arguments,
    add_tree_arguments,
    durations,
    find_tests,
    load_tree,
    plan_tests,
)
from gpuci.commands.output import show
from gpuci.errors import ConfigError
from gpuci.model import Manifest, TestTarget
from gpuci.planning.estimate import learn
from gpuci.reporting.explain_text import render
from gpuci_node.contract import function_id


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("explain", help="say how one test is planned, and why")
    parser.add_argument(
        "nodeid", metavar="NODEID", help="a test as `gpuci manifest` prints it; parameters may follow"
    )
    add_tree_arguments(parser)
    add_plan_arguments(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print what is known of the test."""
    tree = load_tree(args)
    manifest = find_tests(tree)
    target = _find(manifest, args.nodeid, str(tree.root))
    estimates = learn(durations(args, tree).seconds, tree.config.durations["default-seconds"])
    show(render(target, plan_tests(args, tree, manifest), tree.config, estimates) + "\n")
    return 0


def _find(manifest: Manifest, nodeid: str, root: str) -> TestTarget:
    wanted = function_id(nodeid)
    for target in manifest.targets:
        if target.nodeid == wanted:
            return target
    near = _near(manifest, wanted)
    raise ConfigError(
        f"no test {nodeid} was found" if nodeid else "no test was named",
        why=f"the path is relative to {root}, and a test that code generates is not seen from source",
        then="look for it with `gpuci manifest`" + (f"; near: {', '.join(near)}" if near else ""),
    )


def _near(manifest: Manifest, wanted: str) -> list[str]:
    """A few tests that may be meant: of that name, else of that file, or of a file of that name."""
    path, _, inner = wanted.partition("::")
    name = inner.rpartition("::")[2]
    ids = [target.nodeid for target in manifest.targets]
    same = [nodeid for nodeid in ids if name and nodeid.endswith(f"::{name}")]
    if same:
        return same[:3]
    files = {path} if path in manifest.files else set(get_close_matches(path, manifest.files, n=1))
    beside = [target.nodeid for target in manifest.targets if target.test_path in files]
    return get_close_matches(wanted, beside, n=3, cutoff=0)
