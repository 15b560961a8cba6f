"""report.json: there and back, and every fault named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.errors import ConfigError
from gpuci.model import LearnedNeed, Report, ShardReport, TestResult, TryReport
from gpuci.reporting.document import from_document, to_document
from gpuci_node.contract import OUTCOMES, VERDICTS

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "report.schema.json").read_text("utf-8"))
TIMES = st.floats(0, 1e6)

TESTS = st.builds(
    TestResult,
    nodeid=st.text(min_size=1),
    outcome=st.sampled_from(OUTCOMES),
    seconds=TIMES,
    shard=st.none() | st.integers(0, 12),
    attempt=st.integers(1, 3),
    slot=st.none() | st.just("gw1"),
    gpus=st.lists(st.sampled_from("0123")).map(tuple),
    file=st.text(),
    line=st.none() | st.integers(0, 9999),
    message=st.text(),
    output=st.text(),
    unplanned=st.booleans(),
    peak_memory_bytes=st.none() | st.integers(0, 10**14),
    cuda_used=st.none() | st.booleans(),
)
SHARDS = st.builds(
    ShardReport,
    index=st.integers(0, 12),
    verdict=st.sampled_from(VERDICTS),
    planned_seconds=TIMES,
    wall_seconds=TIMES,
    node=st.text(),
    history=st.lists(
        st.builds(
            TryReport, st.integers(1, 9), st.sampled_from(VERDICTS), st.text(), st.text(), TIMES, TIMES
        ),
        max_size=2,
    ).map(tuple),
    rescued=st.integers(0, 9),
    gpus=st.integers(0, 9),
)
REPORTS = st.builds(
    Report,
    usd_per_gpu_hour=st.none() | TIMES,
    earlier_gpu_seconds=TIMES,
    verdict=st.sampled_from(VERDICTS),
    reason=st.text(),
    counts=st.just({"failed": 1, "passed": 2}),
    tests=st.lists(TESTS, max_size=3).map(tuple),
    shards=st.lists(SHARDS, max_size=3).map(tuple),
    warnings=st.lists(st.text(), max_size=2).map(tuple),
    seconds=TIMES,
    setup_seconds=TIMES,
    sha=st.none() | st.text(),
    coverage=st.lists(st.text(), max_size=2).map(tuple),
    notes=st.lists(st.text(), max_size=2).map(tuple),
    needs=st.dictionaries(
        st.text().map(lambda name: f"a.py::{name}"),
        st.builds(
            LearnedNeed, st.integers(1, 1024), st.booleans(), st.text(), st.text(), st.none() | st.just(1)
        ),
        max_size=3,
    ),
)


@given(REPORTS)
def test_there_and_back(report: Report) -> None:
    document = json.loads(json.dumps(to_document(report)))
    assert from_document(document) == report


@given(REPORTS)
def test_documents_fit_the_schema(report: Report) -> None:
    jsonschema.validate(json.loads(json.dumps(to_document(report))), SCHEMA)


def test_keys_that_others_rely_on(red_report: Report) -> None:
    document = to_document(red_report)
    assert document["schema"] == "gpuci/report/1"
    assert {"nodeid", "outcome", "seconds", "shard", "try", "gpus"} <= set(document["tests"][0])
    assert {"index", "verdict", "wall_seconds", "queue_seconds", "tries"} <= set(document["shards"][0])


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (["schema"], "gpuci/report/2", "schema should be 'gpuci/report/1'"),
        (["verdict"], "fine", "verdict should be one of failed"),
        (["verdict"], ["passed"], "verdict should be one of"),
        (["reason"], 3, "reason should be a text"),
        (["seconds"], "4", "seconds should be a number"),
        (["seconds"], True, "seconds should be a number"),
        (["seconds"], float("nan"), "seconds should be a number"),
        (["counts"], [], "counts should be an object"),
        (["counts", "great"], 1, "counts should be one of"),
        (["counts", "passed"], 1.5, "counts.passed should be a whole number"),
        (["warnings"], [3], "warnings should be a list of texts"),
        (["needs"], [], "needs should be a map"),
        (["needs", "a.py::t"], {"gpus": 0}, "needs 'a.py::t': gpus should be from 1 to 1024, not 0"),
        (["tests"], {}, "tests should be a list"),
        (["tests", 0], "x", "tests[0] should be an object"),
        (["tests", 0], {"nodeid": "a"}, "tests[0].outcome is missing"),
        (["tests", 0, "outcome"], "great", "tests[0].outcome should be one of"),
        (["tests", 0, "line"], "3", "tests[0].line should be a whole number or null"),
        (["tests", 0, "gpus"], "01", "tests[0].gpus should be a list of texts"),
        (["tests", 0, "unplanned"], 1, "tests[0].unplanned should be true or false"),
        (["tests", 0, "cuda_used"], 0, "tests[0].cuda_used should be true, false or null"),
        (["tests", 0, "peak_memory_bytes"], "1", "tests[0].peak_memory_bytes should be a whole number or"),
        (["shards", 0, "verdict"], "x", "shards[0].verdict should be one of"),
        (["shards", 0, "history"], {}, "shards[0].history should be a list"),
        (["shards", 0, "history"], [{"try": 1}], "shards[0].history[0].verdict is missing"),
        (
            ["shards", 0, "history"],
            [{"try": 1, "verdict": "x"}],
            "shards[0].history[0].verdict should be one",
        ),
        (["notes"], "x", "notes should be a list of texts"),
    ],
)
def test_faults_are_named(red_report: Report, path: list[Any], value: object, says: str) -> None:
    document = to_document(red_report)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ConfigError) as caught:
        from_document(document)
    assert says in caught.value.what


@pytest.mark.parametrize("document", [None, [], "report", 3])
def test_something_else_is_refused(document: object) -> None:
    with pytest.raises(ConfigError, match="should be an object"):
        from_document(document)
