"""`gpuci manifest`: the tests of a tree as read from source."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuci.commands.common import add_config_arguments, find_tests, load_tree
from gpuci.commands.output import show, show_document
from gpuci.discovery import manifest_document
from gpuci.errors import ConfigError
from gpuci.model import Manifest, TestTarget
from gpuci.reporting.text import one_line, plural


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("manifest", help="list the tests, without importing them")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="only below these (default: all of ROOT)")
    add_config_arguments(parser)
    parser.add_argument("--files", action="store_true", help="list the files only")
    parser.add_argument("--json", action="store_true", help="print manifest.json on standard output")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    """Print the targets: node id, mode, GPUs, and what is uncertain."""
    tree = load_tree(args)
    manifest = _below(find_tests(tree), [_below_root(path, tree.root) for path in args.paths])
    if args.json:
        show_document(manifest_document.to_document(manifest))
    elif args.files:
        show("".join(f"{one_line(file)}\n" for file in manifest.files))
    else:
        show("".join(f"{_line(target)}\n" for target in manifest.targets))
    return 0


def _below_root(path: str, root: Path) -> str:
    if not os.path.lexists(path):
        raise ConfigError(f"{path} does not exist", then="name a directory or file of the tree, or none")
    try:
        return Path(path).resolve().relative_to(root).as_posix()
    except ValueError as error:
        raise ConfigError(f"{path} is not below {root}", then="name paths of one tree") from error


def _below(manifest: Manifest, paths: Sequence[str]) -> Manifest:
    def inside(file: str) -> bool:
        return not paths or any(path == "." or file == path or file.startswith(path + "/") for path in paths)

    return Manifest(
        targets=tuple(target for target in manifest.targets if inside(target.test_path)),
        roots=tuple(replace(root, files=tuple(filter(inside, root.files))) for root in manifest.roots),
        errors=tuple(error for error in manifest.errors if inside(error.path)),
    )


def _line(target: TestTarget) -> str:
    gpus = "no GPU" if target.gpus == 0 else plural(target.gpus, "GPU")
    if target.run_mode == "serial":
        gpus = "all GPUs"
    parts = [target.run_mode, gpus]
    if target.runs_on:
        parts.append(f"on {target.runs_on}")
    if target.skip:
        parts.append(f"skipped: {target.skip}")
    if target.opaque:
        parts.append(f"uncertain: {target.opaque}")
    return one_line(f"{target.nodeid} ({', '.join(parts)})")
