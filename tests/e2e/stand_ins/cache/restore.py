"""What actions/cache does for a step that makes `path` when it is missing.

The real one packs the path behind the job. Here the directory that holds the path is a link to a folder, so
that what is made there is kept at once; nothing else may be in it.
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
    place = Path(path).expanduser().absolute()
    kept = Path(os.environ["E2E_CACHES"], hashlib.sha256(key.encode()).hexdigest()[:16])
    kept.mkdir(parents=True, exist_ok=True)
    link(place.parent, kept)
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as stream:
        stream.write(f"cache-hit={'true' if place.exists() else 'false'}\n")
    return 0


def link(directory: Path, kept: Path) -> None:
    """Make `directory` a link to `kept`; an empty directory gives way."""
    if directory.is_symlink():
        assert directory.resolve() == kept.resolve(), f"{directory} is two caches"
        return
    if directory.is_dir():
        directory.rmdir()
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.symlink_to(kept)


if __name__ == "__main__":
    sys.exit(main())
