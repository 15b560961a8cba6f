"""`gpuci changed`: what changed since a revision, and which tests that can break."""

from __future__ import annotations

import argparse
from typing import Any

from gpuci.changes import document
from gpuci.changes.select import reason
from gpuci.commands.changed_tree import add_base_argument, changes_since, require_there
from gpuci.commands.common import add_tree_arguments, load_tree
from gpuci.commands.output import show, show_document
from gpuci.config.paths import path_fault, tidy_path
from gpuci.errors import ConfigError
from gpuci.reporting import changes_text


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("changed", help="say which tests a change can break, and why")
    add_tree_arguments(parser)
    add_base_argument(parser, required=True)
    parser.add_argument("--json", action="store_true", help="print changes.json on standard output")
    parser.add_argument(
        "--explain", metavar="TEST", help="why this test (a file, directory or node id) is due, or is not"
    )
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Compare and print."""
    wanted = _path(args.explain) if args.explain is not None else ""
    tree = load_tree(args)
    if wanted:
        require_there(tree, wanted)
    changes = changes_since(args, tree)
    if args.json:
        show_document(document.to_document(changes))
    elif wanted:
        show(changes_text.explain(changes, wanted, reason(changes, wanted)) + "\n")
    else:
        show(changes_text.render(changes) + "\n")
    return 0


def _path(test: str) -> str:
    path = test.partition("::")[0]
    fault = path_fault(path)
    if fault:
        raise ConfigError(f"--explain: {path!a} {fault}", then="name a test as `gpuci manifest` prints it")
    return tidy_path(path)
