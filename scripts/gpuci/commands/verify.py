"""`gpuci verify`: does the configuration fit the tree?"""

from __future__ import annotations

import argparse
from typing import Any

from gpuci.commands.backends import cluster_problems
from gpuci.commands.common import add_tree_arguments, find_tests, load_tree
from gpuci.commands.output import show
from gpuci.config.load import CONFIG_FILE
from gpuci.discovery.verify import Problem, verify
from gpuci.reporting.text import one_line, plural
from gpuci_node.contract import EXIT_CODES


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("verify", help="check the configuration against the tree")
    add_tree_arguments(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print each problem as `path:line: message`; any problem is the exit code of a configuration error."""
    tree = load_tree(args)
    problems = verify(tree.root, tree.config, find_tests(tree))
    problems += [Problem("", 0, what) for what in cluster_problems(tree)]
    for problem in problems:
        where = f"{problem.path}:{problem.line}" if problem.line else problem.path or CONFIG_FILE
        show(one_line(f"{where}: {problem.message}") + "\n")
    show(f"{plural(len(problems), 'problem')}\n" if problems else "nothing to complain about\n")
    return EXIT_CODES["config_error"] if problems else 0
