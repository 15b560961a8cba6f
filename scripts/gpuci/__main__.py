"""`python -m gpuci`, and by path from a clone (`python -I scripts/gpuci/__main__.py`)."""

import sys
from pathlib import Path

# By path, -I keeps even this folder's parent off sys.path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpuci.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
