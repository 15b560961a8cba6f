#!/usr/bin/env python3
"""Outputs for actions/cache: where the private environment lives, its key, whether it is there already.

Installs nothing: the program of the action makes the environment if no cache had it.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github import private
from gpuci.github.step import Step


def main() -> int:
    """Return 0."""
    step = Step("set-up", dict(os.environ), {})
    base, name = private.place(os.environ)
    step.output("path", str(base / name))
    step.output("key", private.key())
    step.output("ready", "true" if private.is_ready(os.environ) else "false")
    return 0


if __name__ == "__main__":
    sys.exit(main())
