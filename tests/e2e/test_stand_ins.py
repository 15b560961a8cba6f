"""What stands in for public actions under act: the inputs of the real ones, and their awkward rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.harness.product import CLONE
from tests.e2e.harness.standing import NOT_RUN, STAND_INS, locked

from gpuci.github.use import use_of

# Inputs and outputs by the action.yml of the named commit. For two the locked release is a later one, whose
# notes tell of no change to them (actions/cache 6.0.0, 6.1.0; actions/upload-artifact 7.0.1).
REAL: dict[str, dict[str, Any]] = json.loads((STAND_INS / "real.json").read_text())
FILES = [
    CLONE / "action.yml",
    CLONE / ".github/workflows/gpu.yml",
    *sorted(CLONE.glob("actions/*/action.yml")),
]


def stand_in(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((STAND_INS / name.partition("/")[2] / "action.yml").read_text())
    return document


def steps(document: Any) -> Iterator[dict[str, Any]]:
    """All steps of a workflow or action."""
    jobs = document["jobs"].values() if "jobs" in document else [document["runs"]]
    for job in jobs:
        yield from job.get("steps", [])


def test_each_public_action_that_runs_has_a_stand_in() -> None:
    assert locked().keys() - NOT_RUN == REAL.keys()
    assert {f"actions/{path.name}" for path in STAND_INS.iterdir() if path.is_dir()} == REAL.keys()


@pytest.mark.parametrize("name", REAL)
def test_a_stand_in_has_the_inputs_of_the_real_action(name: str) -> None:
    inputs = stand_in(name)["inputs"]
    required = {key for key, value in inputs.items() if value.get("required")}
    assert required == set(REAL[name]["required"])
    assert inputs.keys() - required == set(REAL[name]["optional"])
    assert set(stand_in(name)["outputs"]) <= set(REAL[name]["outputs"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CLONE)))
def test_we_pass_what_the_real_action_takes(path: Path) -> None:
    for step in steps(yaml.safe_load(path.read_text())):
        real = REAL.get(step.get("uses", "").partition("@")[0])
        if real is not None:
            given = set(step.get("with", {}))
            assert given <= {*real["required"], *real["optional"]}, step
            assert given >= set(real["required"]), step


class Store:
    """A store with one run, and the stand-ins' programs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.work = directory / "work"
        self.work.mkdir()

    def do(self, program: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        environ = {
            "PATH": os.environ["PATH"],
            "E2E_STORE": str(self.directory / "store"),
            "E2E_CACHES": str(self.directory / "caches"),
            "GITHUB_RUN_ID": "7",
            "GITHUB_REPOSITORY": "octo/tests",
            "GITHUB_WORKSPACE": str(self.work),
            "GITHUB_OUTPUT": str(self.directory / "output"),
            **variables,
        }
        command = [sys.executable, "-I", str(STAND_INS / program)]
        return subprocess.run(
            command, cwd=self.work, env=environ, capture_output=True, text=True, check=False
        )

    def upload(self, name: str, path: str, missing: str = "warn") -> subprocess.CompletedProcess[str]:
        given = {"NAME": name, "PATH": path, "NONE": missing, "PLAIN": "false,false,true"}
        return self.do(
            "upload-artifact/upload.py", {f"STAND_IN_{key}": value for key, value in given.items()}
        )

    def download(self, path: str, *, name: str = "", pattern: str = "") -> subprocess.CompletedProcess[str]:
        given = {"NAME": name, "PATTERN": pattern, "PATH": path, "MERGE": "false", "IDS": "", "RAW": "false"}
        given |= {"REPOSITORY": "octo/tests", "RUN": "7"}
        return self.do(
            "download-artifact/download.py", {f"STAND_IN_{key}": value for key, value in given.items()}
        )

    def files(self, below: str) -> set[str]:
        return {
            str(path.relative_to(self.work / below))
            for path in (self.work / below).rglob("*")
            if path.is_file()
        }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    for name in ("a/plan.json", "a/b/log", "a/.hidden", "a/.dir/log", "c/log"):
        (made.work / name).parent.mkdir(parents=True, exist_ok=True)
        (made.work / name).write_text(name)
    return made


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/plan.json", {"plan.json"}),
        ("a", {"plan.json", "b/log"}),
        ("a/\nc/", {"a/plan.json", "a/b/log", "c/log"}),
        ("a/*/log", {"b/log"}),
        ("a/.dir/log", {"log"}),
    ],
    ids=["file", "directory", "two", "pattern", "named in a hidden one"],
)
def test_an_artifact_keeps_what_is_below_its_path(store: Store, path: str, expected: set[str]) -> None:
    assert store.upload("x", path).returncode == 0
    assert store.download("out", name="x").returncode == 0
    assert store.files("out") == expected


@pytest.mark.parametrize(
    ("missing", "code", "word"), [("warn", 0, "::warning::"), ("error", 1, "::error::"), ("ignore", 0, "")]
)
def test_nothing_to_upload(store: Store, missing: str, code: int, word: str) -> None:
    done = store.upload("x", "nowhere", missing)
    assert (done.returncode, done.stdout) == (code, f"{word}no files were found\n")
    assert store.download("out", name="x").returncode == 1


def test_a_name_is_taken_once_a_run(store: Store) -> None:
    assert store.upload("x", "a").returncode == 0
    done = store.upload("x", "c")
    assert done.returncode == 1
    assert "409" in done.stdout


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["s-1", "s-2", "other"], {"s-1/log", "s-2/log"}),
        (["s-1", "other"], {"log"}),
        (["other"], set()),
    ],
    ids=["several", "a single one lies in the path itself", "none"],
)
@pytest.mark.parametrize("pattern", ["s-*", "{s,t}-*"])
def test_a_pattern(store: Store, names: list[str], expected: set[str], pattern: str) -> None:
    for name in names:
        store.upload(name, "c")
    assert store.download("out", pattern=pattern).returncode == 0
    assert store.files("out") == expected


@pytest.mark.parametrize("use", ["", "a"])
@pytest.mark.parametrize("shards", [0, 1, 2])
def test_the_gate_s_own_pattern_gives_each_shard_its_folder(store: Store, shards: int, use: str) -> None:
    gate = yaml.safe_load((CLONE / ".github/workflows/gpu.yml").read_text())["jobs"]["gpu-tests-passed"]
    (pattern,) = {step["with"]["pattern"] for step in gate["steps"] if "pattern" in step.get("with", {})}
    prefix = use_of(use).prefix
    names = [f"{prefix}shard-{index}-attempt-1" for index in range(1, shards + 1)]
    others = [f"{prefix}{other}-attempt-1" for other in ("changes", "plan", "image", "report")]
    others += [
        f"{use_of(other).prefix}shard-1-attempt-1" for other in ("", "a", "a-a", "shard") if other != use
    ]
    for name in (*names, *others):
        store.upload(name, "c")
    own = pattern.replace("${{ needs.find-changed.outputs.prefix }}", prefix)
    assert store.download("out", pattern=own).returncode == 0
    assert {file for file in store.files("out") if "shard" in file} == {f"{name}/log" for name in names}
    assert not any("image" in file for file in store.files("out")), "images are big"


def test_a_cache_keeps_what_is_made_at_its_path(store: Store) -> None:
    plain = {"STAND_IN_KEY": "k", "STAND_IN_PLAIN": "false,false,false"}
    assert store.do("cache/restore.py", {"STAND_IN_PATH": "one/env", **plain}).returncode == 0
    assert not (store.work / "one/env").exists()
    (store.work / "one/env").mkdir()
    (store.work / "one/env/made").write_text("x")
    assert store.do("cache/restore.py", {"STAND_IN_PATH": "two/env", **plain}).returncode == 0
    assert (store.work / "two/env/made").read_text() == "x"
    assert (store.directory / "output").read_text() == "cache-hit=false\ncache-hit=true\n"
