#!/usr/bin/env python3
"""What a run is about and which tests the change can break: the program of actions/find-changed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github.entry import main

if __name__ == "__main__":
    sys.exit(main("find_changed"))
