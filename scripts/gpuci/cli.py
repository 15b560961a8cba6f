"""`gpuci`: arguments -> a command -> an exit code of the contract."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from gpuci import __version__
from gpuci.commands import approve, changed, explain, manifest, plan, report, run, verify
from gpuci.commands.output import complain, say
from gpuci.errors import GpuciError
from gpuci_node.contract import EXIT_CODES

_COMMANDS = (run, plan, changed, manifest, explain, verify, report, approve)


class _Exact(argparse.ArgumentParser):
    """Takes no abbreviations: with them, a new option could change what an old command line means."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)


def parser() -> argparse.ArgumentParser:
    """The command line of `gpuci`."""
    top = argparse.ArgumentParser(
        prog="gpuci", description="GPU tests of a monorepo: find, plan, run, report."
    )
    top.add_argument("--version", action="version", version=f"gpuci {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Exact)
    for command in _COMMANDS:
        command.add(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; what a person can act on ends in a page of text, not in a traceback."""
    args = parser().parse_args(argv)
    try:
        return int(args.main(args))
    except GpuciError as error:
        complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        say("cancelled")
        return EXIT_CODES["cancelled"]
