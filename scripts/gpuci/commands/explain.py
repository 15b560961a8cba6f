"""`gpuci explain`: one test's mode, class, GPU need, duration and shard, and where each comes from."""

from __future__ import annotations

import argparse
from typing import Any

from gpuci.commands.common import (
    add_plan_arguments,
    add_tree_arguments,
    durations,
    find_tests,
    load_tree,
    plan_tests,
)
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
    target = _find(manifest, args.nodeid)
    estimates = learn(durations(args, tree), tree.config.durations["default-seconds"])
    print(render(target, plan_tests(args, tree, manifest), tree.config, estimates))
    return 0


def _find(manifest: Manifest, nodeid: str) -> TestTarget:
    wanted = function_id(nodeid)
    for target in manifest.targets:
        if target.nodeid == wanted:
            return target
    near = [target.nodeid for target in manifest.targets if wanted.rpartition("::")[2] in target.nodeid][:5]
    raise ConfigError(
        f"no test {nodeid} was found",
        why="the path is relative to ROOT, and a test that code generates is not seen from source",
        then="look for it with `gpuci manifest`" + (f"; near: {', '.join(near)}" if near else ""),
    )
