"""Learned needs: there and back in all three documents, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.durations.needs import from_document, to_document
from gpuci.durations.read import read
from gpuci.errors import ConfigError
from gpuci.model import LearnedNeed, Report, TestResult
from gpuci.reporting.document import to_document as report_document
from gpuci.schemas import load_schema

NEEDS = st.dictionaries(
    st.text(min_size=1).map(lambda name: f"a.py::{name}"),
    st.builds(
        LearnedNeed,
        st.integers(1, 1024),
        st.booleans(),
        st.text(),
        st.text(),
        st.none() | st.integers(0, 1024),
    ),
    max_size=4,
)


def valid(needs: object) -> bool:
    document = {"schema": "gpuci/durations/1", "tests": {}, "needs": needs}
    return jsonschema.Draft202012Validator(load_schema("durations")).is_valid(document)


@given(NEEDS)
def test_there_and_back(needs: dict[str, LearnedNeed]) -> None:
    document = json.loads(json.dumps(to_document(needs)))
    assert from_document(document) == needs
    assert valid(document)


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        ([], "needs should be a map of node ids"),
        ({"a::t": 8}, "needs: 'a::t' should be {gpus, alone, because}, not 8"),
        ({"a/test.py": {"gpus": 8}}, "needs: 'a/test.py' names no test"),
        ({"a::t": {}}, "needs: 'a::t': gpus should be from 1 to 1024, not None"),
        ({"a::t": {"gpus": 0}}, "gpus should be from 1 to 1024, not 0"),
        ({"a::t": {"gpus": True}}, "gpus should be from 1 to 1024, not True"),
        ({"a::t": {"gpus": 8.5}}, "gpus should be from 1 to 1024, not 8.5"),
        ({"a::t": {"gpus": 1025}}, "gpus should be from 1 to 1024, not 1025"),
        ({"a::t": {"gpus": 1, "alone": 1}}, "alone should be true or false, not 1"),
        ({"a::t": {"gpus": 1, "because": None}}, "because should be a text, not None"),
        ({"a::t": {"gpus": 1, "mark": 3}}, "mark should be a text, not 3"),
        ({"a::t": {"gpus": 1, "planned": -1}}, "planned should be from 0 to 1024, not -1"),
        ({"a::\u001b[31m": {"gpus": -1}}, r"'a::\x1b[31m': gpus"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_junk_is_refused(tmp_path: Path, needs: object, says: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps({"schema": "gpuci/durations/1", "tests": {}, "needs": needs}))
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert says in caught.value.what
    assert caught.value.what.startswith(str(path))
    assert not valid(needs)


def test_a_durations_file_may_hold_needs(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(
        json.dumps({"schema": "gpuci/durations/1", "tests": {"a::t": 2}, "needs": {"a::t": {"gpus": 4}}})
    )
    known = read(path)
    assert (known.seconds, known.needs) == ({"a::t": 2.0}, {"a::t": LearnedNeed(4)})


RESULTS = (
    TestResult("a.py::f[1]", "passed", 1.5, 1),
    TestResult("a.py::f[2]", "failed", 0.5, 1),
    TestResult("a.py::killed", "failed", 0.0, 1),
    TestResult("a.py::nightly", "skipped"),
    TestResult("a.py::lost", "not_finished", shard=1),
)


def test_a_report_is_read(tmp_path: Path) -> None:
    needs = {"a.py::f[1]": LearnedNeed(8, because="why", mark="wide", planned=1)}
    document = report_document(Report("failed", "", {}, RESULTS, (), needs=needs))
    (tmp_path / "report.json").write_text(json.dumps(document))
    known = read(tmp_path / "report.json")
    assert known.seconds == {"a.py::f[1]": 1.5, "a.py::f[2]": 0.5}
    assert known.needs == needs


@pytest.mark.parametrize(
    ("tests", "says"),
    [
        (None, "holds no list of tests"),
        ({"a::t": 1}, "holds no list of tests"),
        (["a::t"], "holds no list of tests"),
        ([{"nodeid": 3, "seconds": 1}], "holds no list of tests"),
        ([{"nodeid": "a::t"}], "holds no list of tests"),
        ([{"nodeid": "a::t", "seconds": "1"}], "not a duration in seconds: 'a::t': '1'"),
        ([{"nodeid": "a::t", "seconds": -1}], "not a duration in seconds: 'a::t': -1"),
    ],
    ids=["missing", "a map", "texts", "no node id", "no seconds", "seconds as text", "negative"],
)
def test_a_broken_report_is_refused(tmp_path: Path, tests: Any, says: str) -> None:
    (tmp_path / "report.json").write_text(json.dumps({"schema": "gpuci/report/1", "tests": tests}))
    with pytest.raises(ConfigError, match=says):
        read(tmp_path / "report.json")
