#!/usr/bin/env python3
"""Run shards of a plan on a Slurm cluster: the program of actions/run-gpu-shard. Standard library only.

`run_gpu_shard.py` runs them, `run_gpu_shard.py clean-up` ends what is left of them. Settings come by the
environment, `--help` names them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github import entry
from gpuci.steps.shard_input import usage

STEPS = {(): "run_gpu_shard", ("clean-up",): "clean_up_gpu_shard"}


def main(argv: list[str]) -> int:
    """Return the exit code of the table in gpuci_node.contract."""
    step = STEPS.get(tuple(argv))
    if step is None:
        asked = argv in (["--help"], ["-h"])
        print(usage(), end="", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    return entry.main(step, needs_packages=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
