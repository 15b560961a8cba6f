"""`gpuci report`: the report of a run, from its results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from gpuci.commands.output import page_style, show, show_document
from gpuci.execution.directories import read_document
from gpuci.reporting import document, markdown, terminal
from gpuci_node.contract import EXIT_CODES


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("report", help="show the report of a run again")
    parser.add_argument("directory", metavar="DIR", help="the directory of a run")
    parser.add_argument("--verbose", action="store_true", help="nothing left out")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print report.json")
    form.add_argument("--markdown", action="store_true", help="print the summary as Markdown")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print the report; the exit code is the verdict's, as it was."""
    path = Path(args.directory) / "report.json"
    where = "name the directory of a run: `gpuci run` says it at its end, after `results:`"
    report = document.from_document(read_document(path, then=where))
    if args.json:
        show_document(document.to_document(report))
    elif args.markdown:
        show(markdown.render(report))
    else:
        show(terminal.render(report, verbose=args.verbose, **page_style(sys.stdout)))
    return EXIT_CODES[report.verdict]
