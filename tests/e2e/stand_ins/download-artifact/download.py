"""What actions/download-artifact does, with a folder in the place of GitHub's store.

Source: src/download-artifact.ts of that action. Modelled, since callers trip over it: a name that is missing
is an error, a pattern that matches nothing is none; several artifacts get a directory each, but a single one
that a pattern matches lies in the path itself.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import sys
from pathlib import Path


def main() -> int:
    """Copy; the exit code is that of the step."""
    asked = {name: os.environ[f"STAND_IN_{name}"] for name in ("NAME", "PATTERN", "MERGE")}
    assert os.environ["STAND_IN_IDS"] == "", "artifact-ids is not modelled"
    assert os.environ["STAND_IN_RAW"] == "false", "skip-decompress is not modelled"
    assert os.environ["STAND_IN_REPOSITORY"] == os.environ["GITHUB_REPOSITORY"]
    assert os.environ["STAND_IN_RUN"] == os.environ["GITHUB_RUN_ID"]
    artifacts = stored(asked["NAME"], asked["PATTERN"])
    if asked["NAME"] and not artifacts:
        print(f"::error::Unable to download artifact(s): Artifact '{asked['NAME']}' not found")
        return 1
    path = Path(os.environ["STAND_IN_PATH"] or os.environ["GITHUB_WORKSPACE"]).resolve()
    flat = len(artifacts) == 1 or asked["MERGE"] == "true"
    for artifact in artifacts:
        shutil.copytree(artifact, path if flat else path / artifact.name, dirs_exist_ok=True)
    print(f"downloaded: {', '.join(artifact.name for artifact in artifacts) or 'none'}")
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as stream:
        stream.write(f"download-path={path}\n")
    return 0


def stored(name: str, pattern: str) -> list[Path]:
    """The artifacts of this run that are asked for."""
    run = Path(os.environ["E2E_STORE"], "artifacts", os.environ["GITHUB_RUN_ID"])
    names = sorted(os.listdir(run)) if run.is_dir() else []
    globs = alternatives(pattern or "*")
    asked = [
        each for each in names if (each == name if name else any(fnmatch.fnmatch(each, g) for g in globs))
    ]
    return [run / each for each in asked]


def alternatives(pattern: str) -> list[str]:
    """`a-{b,c}-*` as two patterns; the action's matcher knows such braces."""
    found = re.fullmatch(r"([^{]*)\{([^{}]*)\}([^{]*)", pattern)
    return [f"{found[1]}{word}{found[3]}" for word in found[2].split(",")] if found else [pattern]


if __name__ == "__main__":
    sys.exit(main())
