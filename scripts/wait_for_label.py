#!/usr/bin/env python3
"""Whether a person approved this commit, and the record of it: the program of actions/wait-for-label."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github.entry import main

if __name__ == "__main__":
    sys.exit(main("wait_for_label", needs_packages=False))
