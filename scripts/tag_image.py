#!/usr/bin/env python3
"""A tag for the image with which the default branch passed: the program of actions/tag-image."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github.entry import main

if __name__ == "__main__":
    sys.exit(main("tag_image", needs_packages=False))
