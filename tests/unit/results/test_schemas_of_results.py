"""The schemas of journal and verdict say what the code checks and the contract names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpuci.results.journal import NODE_OUTCOMES, read_record
from gpuci_node.contract import EXIT_CODES, OUTCOMES, SCHEMAS, VERDICTS

SCHEMA_FILES = Path(__file__).parents[3] / "schemas"


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((SCHEMA_FILES / f"{name}.schema.json").read_text("utf-8"))
    return loaded


JOB = {
    "kind": "job",
    "t": 1.0,
    "schema": SCHEMAS["journal"],
    "shard": 1,
    "try": 1,
    "node": "n",
    "gpus": ["0"],
}
COLLECTED = {"kind": "collected", "t": 1.0, "unit": "u", "file": "a.py", "ids": ["a.py::t"], "deselected": []}
START = {
    "kind": "start",
    "t": 1.0,
    "unit": "u",
    "nodeid": "a.py::t",
    "slot": "gw0",
    "gpus": [],
    "timeout": 9.0,
}
END = {**START, "kind": "end", "outcome": "passed", "seconds": {"call": 1.0}, "file": "a.py", "line": None}
NOTE = {"kind": "note", "t": 1.0, "level": "info", "text": "x", "topic": "neutralised"}
WHOLE: list[dict[str, Any]] = [
    JOB,
    {**COLLECTED, "marks": {"a.py::t": ["gpu"]}},
    START,
    END,
    {**END, "peak_memory_bytes": 3 * 2**30, "cuda_used": True},
    {**END, "peak_memory_bytes": None, "cuda_used": None},
    NOTE,
    {"kind": "later", "x": None},
]

BROKEN: list[dict[str, Any]] = [
    {"t": 1.0},
    {**JOB, "gpus": "0"},
    {**JOB, "shard": -1},
    {**COLLECTED, "ids": [""]},
    {**COLLECTED, "ids": None},
    {**COLLECTED, "marks": {"a": "gpu"}},
    {**COLLECTED, "deselected": [3]},
    {**START, "nodeid": ""},
    {**START, "t": "now"},
    {**START, "timeout": -1},
    {**END, "outcome": "great"},
    {**END, "outcome": "not_collected"},
    {**END, "seconds": {"call": -1}},
    {**END, "line": "3"},
    {**END, "unplanned": 1},
    {**END, "peak_memory_bytes": -1},
    {**END, "peak_memory_bytes": 1.5},
    {**END, "peak_memory_bytes": True},
    {**END, "cuda_used": 0},
    {**END, "cuda_used": "yes"},
    {**NOTE, "text": None},
]


@pytest.mark.parametrize("record", WHOLE, ids=lambda record: str(record["kind"]))
def test_both_take_a_good_record(record: dict[str, Any]) -> None:
    jsonschema.validate(record, schema("journal"))
    assert read_record(json.dumps(record)) == record


@pytest.mark.parametrize("record", BROKEN, ids=repr)
def test_both_refuse_a_broken_record(record: dict[str, Any]) -> None:
    assert not jsonschema.Draft202012Validator(schema("journal")).is_valid(record)
    assert read_record(json.dumps(record)) is None


@pytest.mark.parametrize("kind", ["collected", "start", "end", "note"])
@pytest.mark.parametrize("name", ["unit", "file", "ids", "nodeid", "outcome", "text"])
def test_both_require_the_same_fields(kind: str, name: str) -> None:
    whole = next(record for record in WHOLE if record["kind"] == kind)
    without = {key: value for key, value in whole.items() if key != name}
    valid = jsonschema.Draft202012Validator(schema("journal")).is_valid(without)
    assert valid == (read_record(json.dumps(without)) is not None)


def test_the_names_are_the_contract_s() -> None:
    journal, verdict, report = schema("journal"), schema("verdict"), schema("report")
    assert set(journal["$defs"]["end"]["properties"]["outcome"]["enum"]) == NODE_OUTCOMES
    assert verdict["properties"]["verdict"]["enum"] == list(VERDICTS)
    assert verdict["properties"]["exit_code"]["enum"] == sorted(EXIT_CODES.values())
    assert verdict["properties"]["counts"]["propertyNames"]["enum"] == list(OUTCOMES)
    assert report["$defs"]["test"]["properties"]["outcome"]["enum"] == list(OUTCOMES)
    assert report["properties"]["verdict"]["enum"] == list(VERDICTS)


def test_a_verdict_fits_its_schema() -> None:
    verdict = {
        "schema": SCHEMAS["verdict"],
        "verdict": "passed",
        "exit_code": 0,
        "reason": "",
        "counts": {"passed": 3},
        "node": "n",
        "shard": 1,
        "try": 1,
        "started": 1.0,
        "ended": 2.0,
        "journal": {"lines": 3, "sha256": "0" * 64},
        "gpu_seconds": {"used": 1.0, "total": 8.0},
    }
    validator = jsonschema.Draft202012Validator(schema("verdict"))
    assert validator.is_valid(verdict)
    assert not validator.is_valid({**verdict, "journal": {"lines": 3}})
