"""durations.json: both forms are read, junk is refused with the key in the message."""

import json
from pathlib import Path

import jsonschema
import pytest

from gpuci.durations.parse import Durations
from gpuci.durations.read import read
from gpuci.errors import ConfigError
from gpuci.schemas import load_schema

SCHEMA = "gpuci/durations/1"


@pytest.mark.parametrize(
    "document",
    [
        {"schema": SCHEMA, "tests": {"a.py::t[1]": 0.5, "a.py::u": 2}},
        {"a.py::t[1]": 0.5, "a.py::u": 2},
    ],
    ids=["durations.json", "plain map"],
)
def test_both_forms_are_read(tmp_path: Path, document: object) -> None:
    path = tmp_path / "durations.json"
    path.write_text(json.dumps(document), encoding="utf-8-sig")
    assert read(path).seconds == {"a.py::t[1]": 0.5, "a.py::u": 2.0}


def test_a_map_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text("{}")
    assert read(tmp_path / "d.json") == Durations()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a::t": "fast"}', "'a::t': 'fast'"),
        ('{"a::t": NaN}', "'a::t': nan"),
        ('{"a::t": Infinity}', "'a::t': inf"),
        ('{"a::t": 1e400}', "'a::t': inf"),
        ('{"a::t": -0.1}', "'a::t': -0.1"),
        ('{"a::t": true}', "'a::t': True"),
        ('{"a::t": null}', "'a::t': None"),
        ('{"a::t": 1%s}' % ("0" * 400), "'a::t': 1000"),
        ('{"a::t": [1, 2]}', r"'a::t': \[1, 2\]"),
        ('{"a::t": {"call": 1}}', "'a::t': {'call': 1}"),
        ('{"a\\u001b[31m": -1}', r"'a\\x1b\[31m': -1"),
        ('{"schema": "gpuci/plan/1", "tests": {}}', "schema is 'gpuci/plan/1'"),
        ('{"schema": "gpuci/durations/1"}', "no map"),
        ('{"schema": "gpuci/durations/1", "tests": [1]}', "no map"),
        ("[]", "no map"),
        ("3", "no map"),
        ("", "is not JSON"),
        ('{"a::t": 1', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"a::t": 1%s}' % ("0" * 5000), "is not JSON|'a::t'"),
    ],
    ids=[
        "text",
        "NaN",
        "infinity",
        "overflow",
        "negative",
        "boolean",
        "null",
        "huge integer",
        "list",
        "mapping",
        "escape sequence in a key",
        "another document",
        "tests missing",
        "tests a list",
        "a list",
        "a number",
        "empty file",
        "cut file",
        "deep nesting",
        "more digits than Python reads",
    ],
)
def test_junk_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "durations.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as raised:
        read(path)
    assert "durations.json" in raised.value.what
    assert "\x1b" not in raised.value.page()


def test_bad_keys_are_counted_when_there_are_many(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(json.dumps({f"a::t{i}": -1 for i in range(30)}))
    with pytest.raises(ConfigError, match="'a::t4': -1; and 25 more"):
        read(tmp_path / "d.json")


def test_a_binary_file_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ConfigError, match="is not JSON"):
        read(tmp_path / "d.json")
    with pytest.raises(ConfigError, match=r"none\.json can't be read: No such file"):
        read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ({"schema": SCHEMA, "tests": {"a::t": 1.5}}, True),
        ({"schema": SCHEMA, "tests": {"a::t": -1}}, False),
        ({"schema": SCHEMA, "tests": {"a::t": "1"}}, False),
        ({"tests": {}}, False),
    ],
    ids=["good", "negative", "text", "no schema"],
)
def test_the_schema_says_the_same(document: object, valid: bool) -> None:
    assert jsonschema.Draft202012Validator(load_schema("durations")).is_valid(document) is valid
