"""`gpuci plan`: the shards of a tree, and why they are cut so."""

from __future__ import annotations

import argparse
from typing import Any

from gpuci.commands.changed_tree import add_base_argument, find_due
from gpuci.commands.common import add_plan_arguments, add_tree_arguments, load_tree, plan_tests
from gpuci.commands.output import show, show_document
from gpuci.planning import document
from gpuci.reporting.plan_text import render


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("plan", help="show the shards, their expected times and why")
    add_tree_arguments(parser)
    add_plan_arguments(parser)
    add_base_argument(parser)
    parser.add_argument("--json", action="store_true", help="print plan.json on standard output")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Plan and print."""
    tree = load_tree(args)
    plan = plan_tests(args, tree, find_due(args, tree))
    if args.json:
        show_document(document.to_document(plan))
    else:
        show(render(plan) + "\n")
    return 0
