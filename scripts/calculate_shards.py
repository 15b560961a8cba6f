#!/usr/bin/env python3
"""The shards of a commit, their expected times and why: the program of actions/calculate-shards."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github.entry import main

if __name__ == "__main__":
    sys.exit(main("calculate_shards"))
