#!/usr/bin/env python3
"""Release the commit of this run: tag, immutable release, moving tag. The program of release.yml.

Needs `gh` with GH_TOKEN, GITHUB_REPOSITORY, GITHUB_REF and GITHUB_SHA; GPUCI_VERSION is the version.
The release is named by the full version only: a release named `v1` would be immutable and its tag could not
move (docs.github.com, "Immutable releases").
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CI = "ci.yml"
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class Facts(NamedTuple):
    """What is looked at before anything is written."""

    version: str  # what is asked for
    declared: str  # gpuci.__version__
    notes: str  # the section of CHANGELOG.md, empty if there is none
    on_default_branch: bool
    ci_passed: bool
    tag_exists: bool


def refusals(facts: Facts) -> list[str]:
    """Why there is no release, in words; empty: there is one."""
    if not VERSION.fullmatch(facts.version):
        return [f"{facts.version!r} is no version: give three numbers, 1.2.3, without a v"]
    checks = {
        f"v{facts.version} exists: releases are immutable, take the next number": facts.tag_exists,
        f"scripts/gpuci/__init__.py says {facts.declared}, not {facts.version}": facts.declared
        != facts.version,
        f"CHANGELOG.md has no section [{facts.version}] with text in it": not facts.notes,
        "this is not the head of the default branch: start the workflow there": not facts.on_default_branch,
        f"{CI} has not passed on this commit yet: wait for it, or look why": not facts.ci_passed,
    }
    return [text for text, holds in checks.items() if holds]


def section(changelog: str, version: str) -> str:
    """What CHANGELOG.md (Keep a Changelog 1.1.0) says of a version."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    return found[1].strip() if found else ""


def moving_tag(version: str) -> str:
    """The tag that follows the releases of a major version."""
    return "v" + version.partition(".")[0]


class Gh:
    """GitHub's API through `gh`, for one repository."""

    def __init__(self, repository: str) -> None:
        self._base = f"repos/{repository}"

    def __call__(self, method: str, path: str, **fields: Any) -> Any:
        """The answer as JSON, None for 404; raises SystemExit with gh's own words otherwise."""
        command = ["gh", "api", "--method", method, f"{self._base}{path}"]
        done = subprocess.run(
            [*command, "--input", "-"] if fields else command,
            input=json.dumps(fields) if fields else None,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and "HTTP 404" in done.stderr:
            return None
        if done.returncode:
            sys.exit(f"{method} {path}: {done.stderr.strip()}")
        return json.loads(done.stdout or "null")


def look(gh: Gh, environ: Mapping[str, str]) -> Facts:
    """Ask GitHub and the tree."""
    version, sha = environ.get("GPUCI_VERSION", "").strip(), environ["GITHUB_SHA"]
    default = gh("GET", "")["default_branch"]
    head = gh("GET", f"/branches/{default}")["commit"]["sha"]
    runs = gh("GET", f"/actions/workflows/{CI}/runs?head_sha={sha}&status=success&event=push")
    declared = re.search(r'__version__ = "([^"]*)"', (ROOT / "scripts/gpuci/__init__.py").read_text())
    return Facts(
        version=version,
        declared=declared[1] if declared else "",
        notes=section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version),
        on_default_branch=environ["GITHUB_REF"] == f"refs/heads/{default}" and head == sha,
        ci_passed=bool(runs and runs["total_count"]),
        tag_exists=VERSION.fullmatch(version) is not None
        and gh("GET", f"/git/ref/tags/v{version}") is not None,
    )


def publish(gh: Gh, repository: str, sha: str, version: str, notes: str) -> None:
    """Make the release, then move the tag of its major version; raises SystemExit."""
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        file.write(notes + "\n")
        file.flush()
        command = ["gh", "release", "create", f"v{version}", "--repo", repository, "--target", sha]
        subprocess.run([*command, "--title", f"v{version}", "--notes-file", file.name], check=True)
    release = gh("GET", f"/releases/tags/v{version}")
    if not release or not release.get("immutable"):
        sys.exit(
            f"v{version} is released, but not immutable, and {moving_tag(version)} was not moved.\n"
            "Turn on Settings > General > Enable release immutability, and release the next number."
        )
    tag = moving_tag(version)
    if gh("GET", f"/git/ref/tags/{tag}") is None:
        gh("POST", "/git/refs", ref=f"refs/tags/{tag}", sha=sha)
    else:
        gh("PATCH", f"/git/refs/tags/{tag}", sha=sha, force=True)
    print(f"v{version} is {sha}, and {tag} is too")


def main() -> int:
    """Release, or say all that is in the way."""
    repository = os.environ["GITHUB_REPOSITORY"]
    gh = Gh(repository)
    facts = look(gh, os.environ)
    if reasons := refusals(facts):
        print("no release:", *reasons, sep="\n  ", file=sys.stderr)
        return 1
    publish(gh, repository, os.environ["GITHUB_SHA"], facts.version, facts.notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
