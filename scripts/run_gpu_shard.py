#!/usr/bin/env python3
"""Run shards of a plan on a Slurm cluster: the program of actions/run-gpu-shard. Standard library only.

`run_gpu_shard.py` runs them, `run_gpu_shard.py clean-up` ends what is left of them. Settings come by the
environment, `--help` names them.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.commands import shard
from gpuci.commands.output import complain
from gpuci.commands.shard_input import usage
from gpuci.errors import GpuciError
from gpuci.execution.transport.login import SECRETS


def main(argv: list[str]) -> int:
    """Return the exit code of the table in gpuci_node.contract."""
    what = {(): shard.run, ("clean-up",): shard.clean}.get(tuple(argv))
    if what is None:
        asked = argv in (["--help"], ["-h"])
        print(usage(), end="", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    environ = dict(os.environ)
    for name in SECRETS:
        os.environ.pop(name, None)  # what we start, such as git, has no use for them
    try:
        return what(environ)
    except GpuciError as error:
        complain(error)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
