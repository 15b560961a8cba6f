"""What actions/cache does for a step that fills `path` when it is empty.

The real one packs the path behind the job; here it is a link into the store, and nothing is to be done then.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path


def main() -> int:
    """Link; the exit code is that of the step."""
    path, key = os.environ["STAND_IN_PATH"].strip(), os.environ["STAND_IN_KEY"].strip()
    assert os.environ["STAND_IN_PLAIN"] == "false,false,false", "not modelled"
    if not path or not key:
        print("::error::Input required and not supplied: path and key")
        return 1
    assert "\n" not in path, "several paths are not modelled"
    kept = Path(os.environ["E2E_STORE"], "caches", hashlib.sha256(key.encode()).hexdigest()[:16])
    hit = kept.is_dir() and any(kept.iterdir())
    kept.mkdir(parents=True, exist_ok=True)
    place = Path(path).expanduser().absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_symlink():
        place.symlink_to(kept)
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as stream:
        stream.write(f"cache-hit={'true' if hit else 'false'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
