"""runs.json: what is written is read again, what is broken is named, and the schema says the same."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.model import ShardRun
from gpuci.results.runs_document import Runs, from_document, to_document
from gpuci.schemas import load_schema
from gpuci_node.contract import VERDICTS

SHA = "a" * 40
RECORDS = (
    {"kind": "job", "node": "n1", "gpus": ["0"], "slots": 1},
    {"kind": "collected", "unit": "u1", "file": "a.py", "ids": ["a.py::t"]},
    {"kind": "end", "unit": "u1", "nodeid": "a.py::t", "outcome": "passed", "seconds": {"call": 1.5}},
    {"kind": "of a later version", "x": [1]},
)
SECONDS = st.floats(0, 1e9)
RUNS = st.builds(
    ShardRun,
    index=st.integers(0, 12),
    records=st.lists(st.sampled_from(RECORDS), max_size=4).map(tuple),
    verdict=st.none() | st.just({"verdict": "passed", "journal": {"lines": 1}}),
    wall_seconds=SECONDS,
    queue_seconds=SECONDS,
    attempt=st.integers(1, 3),
    problem=st.text(max_size=20),
    node=st.text(max_size=20),
    fate=st.sampled_from(("", *VERDICTS)),
    reason=st.text(max_size=20),
)
WHOLE = to_document(SHA, [ShardRun(3, RECORDS, {"verdict": "passed"}, 41.2, 3.0)])


def schema_takes(document: Any) -> bool:
    return jsonschema.Draft202012Validator(load_schema("runs")).is_valid(document)


@given(st.none() | st.just(SHA), st.lists(RUNS, max_size=3))
def test_what_is_written_is_read_again(sha: str | None, runs: list[ShardRun]) -> None:
    document = json.loads(json.dumps(to_document(sha, runs)))
    assert from_document(document) == Runs(sha, tuple(runs))
    assert schema_takes(document)


def changed(**fields: Any) -> dict[str, Any]:
    return {**WHOLE, "runs": [{**WHOLE["runs"][0], **fields}]}


BROKEN = {
    "no object": ([], "runs.json should be an object"),
    "another schema": ({**WHOLE, "schema": "gpuci/report/1"}, "schema should be"),
    "sha": ({**WHOLE, "sha": 3}, "sha should be"),
    "no list": ({**WHOLE, "runs": {}}, "runs should be a list"),
    "a run": ({**WHOLE, "runs": [None]}, r"runs\[0\] should be an object"),
    "index": (changed(index=-1), r"runs\[0\].index"),
    "index, a truth": (changed(index=True), r"runs\[0\].index"),
    "attempt": (changed(attempt=0), r"runs\[0\].attempt"),
    "verdict": (changed(verdict="passed"), r"runs\[0\].verdict"),
    "wall": (changed(wall_seconds=-0.1), r"runs\[0\].wall_seconds"),
    "queue": (changed(queue_seconds="3"), r"runs\[0\].queue_seconds"),
    "problem": (changed(problem=None), r"runs\[0\].problem"),
    "node": (changed(node=1), r"runs\[0\].node"),
    "fate": (changed(fate="great"), r"runs\[0\].fate"),
    "fate, no text": (changed(fate=[]), r"runs\[0\].fate"),
    "reason": (changed(reason={}), r"runs\[0\].reason"),
    "records": (changed(records="x"), r"runs\[0\].records should be a list"),
    "a record": (changed(records=[RECORDS[0], "x"]), r"runs\[0\].records\[1\]"),
    "a record without a kind": (changed(records=[{}]), r"runs\[0\].records\[0\]"),
}


@pytest.mark.parametrize(("document", "says"), BROKEN.values(), ids=BROKEN)
def test_code_and_schema_refuse_what_is_broken(document: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        from_document(document)
    assert not schema_takes(document)


@pytest.mark.parametrize("name", WHOLE["runs"][0])
def test_code_and_schema_require_each_field(name: str) -> None:
    row = {key: value for key, value in WHOLE["runs"][0].items() if key != name}
    with pytest.raises(ConfigError, match=rf"runs\[0\].{name} is missing"):
        from_document({**WHOLE, "runs": [row]})
    assert not schema_takes({**WHOLE, "runs": [row]})


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "end", "unit": "u", "nodeid": "a::t", "outcome": "great"},
        {
            "kind": "end",
            "unit": "u",
            "nodeid": "a::t",
            "outcome": "passed",
            "seconds": {"call": float("inf")},
        },
        {"kind": "note", "text": 3},
    ],
    ids=["an outcome that is none", "endless", "a note without text"],
)
def test_records_are_held_against_the_journal_s_rules(record: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="no record of a journal"):
        from_document(changed(records=[record]))
