#!/usr/bin/env python3
"""An image that another job built goes to its registry: the program of actions/push-image."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github.entry import main

if __name__ == "__main__":
    sys.exit(main("push_image", needs_packages=False))
