"""What actions/upload-artifact does, with a folder in the place of GitHub's store.

Source: src/shared/search.ts and src/upload/upload-artifact.ts of that action. Modelled, since callers trip
over it: a name is taken once a run; one file stands at the artifact's top, a directory's content too, several
paths keep what is below their common ancestor; hidden files stay behind; nothing keeps its mode.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def main() -> int:
    """Copy; the exit code is that of the step."""
    name, missing = os.environ["STAND_IN_NAME"], os.environ["STAND_IN_NONE"]
    assert os.environ["STAND_IN_PLAIN"] == "false,false,true", (
        "not modelled: hidden files, overwrite, archive"
    )
    patterns = [line.strip() for line in os.environ["STAND_IN_PATH"].splitlines() if line.strip()]
    if not patterns:
        print("::error::Input required and not supplied: path")
        return 1
    files = sorted({file for pattern in patterns for file in found(os.path.abspath(pattern))})
    if not files:
        print({"warn": "::warning::", "error": "::error::", "ignore": ""}[missing] + "no files were found")
        return int(missing == "error")
    return store(name, top(patterns, files), files)


def found(pattern: str) -> Iterator[Path]:
    """The files of one path or pattern."""
    for match in map(Path, glob.glob(pattern, recursive=True)):
        for file in match.rglob("*") if match.is_dir() else [match]:
            parts = file.relative_to(match.parent).parts
            if file.is_file() and not any(part.startswith(".") for part in parts):
                yield file


def top(patterns: list[str], files: list[Path]) -> Path:
    """The directory that becomes the artifact's top."""
    fixed = [os.path.abspath(pattern.split("*")[0].rpartition("/")[0]) if "*" in pattern else
             os.path.abspath(pattern) for pattern in patterns]  # fmt: skip
    if len(fixed) == 1 and files == [Path(fixed[0])]:
        return files[0].parent
    return Path(os.path.commonpath(fixed))


def store(name: str, directory: Path, files: list[Path]) -> int:
    """Put the files where the download finds them; a name that is taken is refused."""
    artifact = Path(os.environ["E2E_STORE"], "artifacts", os.environ["GITHUB_RUN_ID"], name)
    try:
        artifact.mkdir(parents=True)
    except FileExistsError:
        print(f"::error::(409) Conflict: an artifact with this name already exists on the run: {name}")
        return 1
    for file in files:
        target = artifact / file.relative_to(directory)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    print(f"artifact {name}: {len(files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
