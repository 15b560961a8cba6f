"""scripts/release.py: what it refuses, and what it asks of GitHub, through a `gh` that writes it down."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CLONE = Path(__file__).resolve().parents[2]
SHA = "c" * 40
GH = """#!{python}
import json, os, sys
here = os.environ["FAKE_GH"]
words = sys.argv[1:]
body = json.loads(sys.stdin.read()) if "--input" in words else None
with open(here + "/asked", "a") as log:
    log.write(json.dumps([words, body]) + "\\n")
answers = json.load(open(here + "/answers"))
if words[0] != "api":
    sys.exit(0)
key = words[2] + " " + words[3]
if key not in answers:
    sys.exit("gh: Not Found (HTTP 404)")
if answers[key] == "refused":
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
print(json.dumps(answers[key]))
"""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", CLONE / "scripts/release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load()
GOOD = release.Facts("1.2.3", "1.2.3", "notes", True, True, False)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, []),
        ({"version": "v1.2.3"}, ["is no version"]),
        ({"version": "1.2"}, ["is no version"]),
        ({"version": "1.2.3; echo"}, ["is no version"]),
        ({"tag_exists": True}, ["v1.2.3 exists"]),
        ({"declared": "1.2.2"}, ["says 1.2.2"]),
        ({"notes": ""}, ["no section [1.2.3]"]),
        ({"on_default_branch": False}, ["not the head of the default branch"]),
        ({"ci_passed": False}, ["ci.yml has not passed"]),
        ({"tag_exists": True, "ci_passed": False}, ["v1.2.3 exists", "ci.yml has not passed"]),
    ],
    ids=lambda value: ",".join(map(str, value)) or "good",
)
def test_all_that_is_in_the_way_is_said_at_once(changed: dict[str, Any], words: list[str]) -> None:
    told = release.refusals(GOOD._replace(**changed))
    assert len(told) == len(words)
    assert all(word in text for word, text in zip(words, told, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## [1.2.3] - 2026-11-30\n\n### Added\n\n- a\n\n## [1.2.2]\n- b\n", "### Added\n\n- a"),
        ("## [1.2.30]\n- a\n", ""),
        ("## [1.2.3]\n\n## [1.2.2]\n- b\n", ""),
        ("## [1.2.3]\n- last\n", "- last"),
    ],
    ids=["between", "another number", "empty", "last"],
)
def test_the_notes_are_the_section_of_the_version(text: str, expected: str) -> None:
    assert release.section(text, "1.2.3") == expected


class Machine:
    """A `gh` that answers from a table (`METHOD path` -> JSON, "refused" for 403, absent for 404)."""

    def __init__(self, directory: Path, answers: dict[str, Any]) -> None:
        self.directory = directory
        gh = directory / "gh"
        gh.write_text(GH.format(python=sys.executable))
        gh.chmod(0o755)
        (directory / "answers").write_text(json.dumps(answers))

    def release(self, version: str, *, ref: str = "refs/heads/main") -> subprocess.CompletedProcess[str]:
        given = {
            "GPUCI_VERSION": version,
            "GITHUB_REPOSITORY": "org/gpuci",
            "GITHUB_SHA": SHA,
            "GITHUB_REF": ref,
            "FAKE_GH": str(self.directory),
            "PATH": f"{self.directory}:{os.environ['PATH']}",
        }
        program = str(self.directory / "clone/scripts/release.py")
        return subprocess.run(
            [sys.executable, "-I", program], env=given, capture_output=True, text=True, check=False
        )

    def written(self) -> list[tuple[str, Any]]:
        """What was asked that changes something: (words, body)."""
        asked = [json.loads(line) for line in (self.directory / "asked").read_text().splitlines()]
        return [(" ".join(words), body) for words, body in asked if "GET" not in words]


READY = {
    "GET repos/org/gpuci": {"default_branch": "main"},
    "GET repos/org/gpuci/branches/main": {"commit": {"sha": SHA}},
    f"GET repos/org/gpuci/actions/workflows/ci.yml/runs?head_sha={SHA}&status=success&event=push": {
        "total_count": 1
    },
    "GET repos/org/gpuci/releases/tags/v1.2.3": {"immutable": True},
    "POST repos/org/gpuci/git/refs": {},
    "PATCH repos/org/gpuci/git/refs/tags/v1": {},
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A tree that declares 1.2.3."""
    tree = tmp_path / "clone"
    (tree / "scripts/gpuci").mkdir(parents=True)
    (tree / "scripts/gpuci/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tree / "CHANGELOG.md").write_text("## [1.2.3] - 2026-11-30\n\n- something\n")
    (tree / "scripts/release.py").write_text((CLONE / "scripts/release.py").read_text())
    return tmp_path


@pytest.mark.parametrize("first", [True, False], ids=["first of its major", "later"])
def test_a_release_is_made_and_the_moving_tag_follows(clone: Path, first: bool) -> None:
    moving = {} if first else {"GET repos/org/gpuci/git/ref/tags/v1": {"ref": "refs/tags/v1"}}
    machine = Machine(clone, {**READY, **moving})
    done = machine.release("1.2.3")
    assert (done.returncode, done.stdout) == (0, f"v1.2.3 is {SHA}, and v1 is too\n"), done.stderr
    (create, _), (tag, body) = machine.written()
    assert create.startswith(f"release create v1.2.3 --repo org/gpuci --target {SHA} --title v1.2.3")
    if first:
        assert (tag, body) == (
            "api --method POST repos/org/gpuci/git/refs --input -",
            {"ref": "refs/tags/v1", "sha": SHA},
        )
    else:
        assert (tag, body) == (
            "api --method PATCH repos/org/gpuci/git/refs/tags/v1 --input -",
            {"sha": SHA, "force": True},
        )


@pytest.mark.parametrize(
    ("answers", "version", "ref", "words"),
    [
        ({"GET repos/org/gpuci/git/ref/tags/v1.2.3": {}}, "1.2.3", "refs/heads/main", "v1.2.3 exists"),
        ({}, "1.2.3", "refs/heads/topic", "not the head"),
        (
            {"GET repos/org/gpuci/branches/main": {"commit": {"sha": "d" * 40}}},
            "1.2.3",
            "refs/heads/main",
            "not the head",
        ),
        ({}, "1.3.0", "refs/heads/main", "no section [1.3.0]"),
        ({"GET repos/org/gpuci": "refused"}, "1.2.3", "refs/heads/main", "Resource not accessible"),
    ],
    ids=["exists", "branch", "behind", "undeclared", "refused"],
)  # fmt: skip
def test_a_refused_release_writes_nothing(
    clone: Path, answers: dict[str, Any], version: str, ref: str, words: str
) -> None:
    machine = Machine(clone, {**READY, **answers})
    done = machine.release(version, ref=ref)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert machine.written() == []


def test_a_release_that_is_not_immutable_moves_no_tag(clone: Path) -> None:
    machine = Machine(clone, {**READY, "GET repos/org/gpuci/releases/tags/v1.2.3": {"immutable": False}})
    done = machine.release("1.2.3")
    assert done.returncode == 1
    assert "Enable release immutability" in done.stderr
    assert [words.split()[0] for words, _ in machine.written()] == ["release"]
