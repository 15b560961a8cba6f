"""Runs of examples/monorepo on the bed and here, compared test by test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.bed.handle import Bed

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "monorepo"
EXPECTED = json.loads((EXAMPLE / "expected.json").read_text())
SHARDS = 12


@dataclass(frozen=True)
class Ran:
    """A finished `gpuci run`."""

    code: int
    stdout: str
    stderr: str
    report: dict[str, Any]

    @property
    def outcomes(self) -> dict[str, str]:
        """By node id."""
        tests = self.report["tests"]
        outcomes = {test["nodeid"]: test["outcome"] for test in tests}
        assert len(outcomes) == len(tests), "a test is reported twice"
        return outcomes


def environment() -> dict[str, str]:
    """Ours without what would change a run; the Python of this process has pytest, for runs here."""
    ours = ("GPUCI_", "PYTEST_", "GITHUB_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "VIRTUAL_ENV": sys.prefix}


def of_schedule(directory: Path, run: str, repository: str) -> dict[str, str]:
    """What GitHub tells each step of a nightly run, which needs no approval; its payload in `directory`."""
    payload = directory / "event.json"
    payload.write_text('{"schedule": "17 4 * * *"}')
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTOR": "nightly",
        "GITHUB_EVENT_NAME": "schedule",
        "GITHUB_EVENT_PATH": str(payload),
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_REPOSITORY": repository,
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": run,
        "GITHUB_SHA": "1" * 40,
    }


def gpuci_run(
    out: Path, *args: str, root: Path = EXAMPLE, umask: int = 0o022, faults: str = "", seconds: float = 600
) -> Ran:
    """Run `gpuci run ROOT` with these arguments; fails if it leaves no report."""
    done = subprocess.run(
        [sys.executable, "-I", str(REPOSITORY / "scripts/gpuci"), "run", str(root), "--out", str(out), *args],
        env={**environment(), "EXAMPLE_FAULTS": faults},
        umask=umask,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert (out / "report.json").exists(), done.stderr
    return Ran(done.returncode, done.stdout, done.stderr, json.loads((out / "report.json").read_text()))


def on_the_bed(bed: Bed, out: Path, *args: str, faults: str = "", plain: bool = False, **more: Any) -> Ran:
    """The example in 12 shards as Slurm jobs, in containers if not `plain`; faults travel in an overlay."""
    overlay = out.parent / f"{out.name}.json"
    overlay.write_text(json.dumps({"node": {"env": {"EXAMPLE_FAULTS": faults}}}))
    files = (
        EXAMPLE / ".github/gpuci.yml",
        bed.place / ("gpuci-plain.yml" if plain else "gpuci.yml"),
        overlay,
    )
    configuration = [word for file in files for word in ("--config", str(file))]
    return gpuci_run(out, *configuration, "--backend", "slurm", "--shards", str(SHARDS), *args, **more)


def here(out: Path, *, faults: str = "") -> Ran:
    """The same on this machine, cpu pool and all."""
    return gpuci_run(out, "--shards", str(SHARDS), "--jobs", "2", faults=faults)


def differences(local: Ran, cluster: Ran) -> list[str]:
    """A line for each test that the two runs tell apart, without those of the cpu pool."""
    there = {node: outcome for node, outcome in cluster.outcomes.items() if outcome != "elsewhere"}
    elsewhere = cluster.outcomes.keys() - there.keys()
    lines = []
    for node, outcome in local.outcomes.items():
        # Nothing was collected there: a test stands for its parameters, a file for all in it.
        if {node, node.partition("[")[0], node.partition("::")[0]} & elsewhere:
            continue
        found = there.get(node, "absent")
        if found != outcome:
            lines.append(f"{node}: {outcome} here, {found} on the cluster")
    lines += [f"{node}: absent here" for node in there.keys() - local.outcomes.keys()]
    return sorted(lines)


@contextmanager
def read_only(directory: Path, at: Path) -> Iterator[Path]:
    """`directory` once more at `at`, where nothing can be written, not even by root."""
    at.mkdir()
    subprocess.run(["mount", "--bind", str(directory), str(at)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(at)], check=True)
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)
