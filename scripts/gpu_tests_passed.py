#!/usr/bin/env python3
"""What a run came to, as one required check: the program of actions/gpu-tests-passed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpuci.github.entry import main

if __name__ == "__main__":
    sys.exit(main("gpu_tests_passed", needs_packages=False))
