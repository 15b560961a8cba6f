#!/usr/bin/env python3
"""The image of a commit, found in its registry or built: the program of actions/build-image."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github.entry import main

if __name__ == "__main__":
    sys.exit(main("build_image", needs_packages=False))
