"""The documents of a real run against their schemas: what the stages write is what they say they write."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gpuci.config.load import load_config
from gpuci.execution.jobs import NodeFacts, Paths, job_document
from gpuci.planning.document import from_document
from gpuci.schemas import load_schema

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "monorepo"


def gpuci(*args: str) -> str:
    command = [sys.executable, "-I", str(REPOSITORY / "scripts" / "gpuci"), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def faults(name: str, document: Any) -> list[str]:
    found: Iterator[Any] = Draft202012Validator(load_schema(name)).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in found]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of two packages, with a cpu unit, a wider retry and skipped tests in it."""
    path = tmp_path_factory.mktemp("run") / "out"
    gpuci("run", str(EXAMPLE), "--packages", "packages/data packages/kernels", "--out", str(path))
    return path


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", ["plan", "report"])
def test_documents_of_the_run(out: Path, name: str) -> None:
    assert faults(name, read(out / f"{name}.json")) == []


@pytest.mark.parametrize("shard", ["cpu", "shard-1"])
def test_journal_and_verdict(out: Path, shard: str) -> None:
    assert faults("verdict", read(out / shard / "verdict.json")) == []
    records = [json.loads(line) for line in (out / shard / "journal.jsonl").read_text().splitlines()]
    assert [fault for record in records for fault in faults("journal", record)] == []
    assert {"job", "collected", "start", "end"} <= {record["kind"] for record in records}


def test_what_a_node_is_given_is_gone_when_it_has_read_it(out: Path) -> None:
    """It holds the nonce of the frames, which tests never get."""
    assert list(out.glob("*/job.json")) == []


def test_the_files_of_a_run_are_the_documented_ones(out: Path) -> None:
    table = (REPOSITORY / "docs" / "results.md").read_text().partition("\n## Files\n")[2]
    documented = set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE))
    files = [path.relative_to(out) for path in out.rglob("*") if path.is_file()]
    found = {"/".join(["*"] * (len(path.parts) - 1) + [path.name]) for path in files}
    # The example measures no coverage, and runs here: a job's log is a cluster's, and two files are GitHub's.
    elsewhere = {"*/coverage/*/coverage.data", "shard-*/log", "runs.json", "junit.xml"}
    assert found == documented - elsewhere


def test_job(out: Path) -> None:
    plan = from_document(read(out / "plan.json"))
    for index, node in ((0, NodeFacts("n", (), cpu_workers=2)), (1, NodeFacts("n", ("0", "1")))):
        document = job_document(
            plan,
            load_config(EXAMPLE),
            index,
            run="r",
            token="0" * 32,
            node=node,
            paths=Paths("/tree", "/out", "/scratch"),
            python=["python3"],
        )
        assert faults("job", json.loads(json.dumps(document))) == []


def test_manifest() -> None:
    assert faults("manifest", json.loads(gpuci("manifest", str(EXAMPLE), "--json"))) == []


def test_a_plan_runs_as_it_was_made(tmp_path: Path) -> None:
    plan = gpuci("plan", str(EXAMPLE), "--packages", "packages/legacy", "--json")
    (tmp_path / "plan.json").write_text(plan)
    args = ["--plan", str(tmp_path / "plan.json"), "--out", str(tmp_path / "out"), "--json"]
    report = json.loads(gpuci("run", str(EXAMPLE), *args))
    assert report["counts"] == {"passed": 7, "skipped": 10}


def test_the_report_can_be_shown_again(out: Path) -> None:
    assert gpuci("report", str(out)).startswith("PASSED")
    assert gpuci("report", str(out), "--markdown") == (out / "summary.md").read_text()
    assert json.loads(gpuci("report", str(out), "--json")) == read(out / "report.json")
