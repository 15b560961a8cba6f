"""The body of `tests/cluster/up` and `tests/cluster/down`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.cluster.bed.build import down, up  # noqa: E402
from tests.cluster.bed.processes import say  # noqa: E402

from gpuci.errors import GpuciError  # noqa: E402


def main(arguments: list[str]) -> int:
    """Do what the first argument says with the bed in the directory that the second one names."""
    parser = argparse.ArgumentParser(prog="tests/cluster/up|down", allow_abbrev=False)
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for slurm.conf")
    options = parser.parse_args(arguments)
    os.umask(0o022)
    started = time.monotonic()
    try:
        if options.action == "up":
            up(options.directory, dict(setting.partition("=")[::2] for setting in options.set))
        else:
            down(options.directory)
    except GpuciError as error:
        print(error.page(), file=sys.stderr)
        return error.exit_code
    say(f"{options.action} in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
