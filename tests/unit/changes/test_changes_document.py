"""changes.json."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.changes.document import from_document, to_document
from gpuci.changes.model import Changes, Due, FileChange
from gpuci.errors import ConfigError
from gpuci.schemas import load_schema

TEXT = st.text(max_size=8)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
CHANGES = st.builds(
    Changes,
    base=TEXT,
    head=TEXT,
    everything=st.booleans(),
    because=TEXTS,
    packages=TEXTS,
    tests=st.lists(st.builds(Due, TEXT, st.tuples(TEXT, TEXT), TEXT), max_size=2).map(tuple),
    changed=st.lists(
        st.builds(FileChange, TEXT, st.sampled_from(["added", "deleted", "modified", "type"])), max_size=2
    ).map(tuple),
    ignored=TEXTS,
    proposed=TEXTS,
)


@given(CHANGES)
def test_a_document_comes_back_as_it_was(changes: Changes) -> None:
    document = json.loads(json.dumps(to_document(changes)))
    jsonschema.validate(document, load_schema("changes"))
    assert from_document(document) == changes


def test_a_path_that_is_no_unicode_comes_back() -> None:
    changes = Changes("", "", False, changed=(FileChange("a\udcff", "added"),))
    assert from_document(json.loads(json.dumps(to_document(changes)))) == changes


GOOD = to_document(Changes("a", "b", False, tests=(Due("p", ("c", "p"), "w"),)))


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {**GOOD, "schema": "gpuci/changes/2"},
        {**GOOD, "everything": "false"},
        {**GOOD, "packages": "a"},
        {**GOOD, "packages": [1]},
        {**GOOD, "tests": [1]},
        {**GOOD, "tests": [{"path": "a"}]},
        {**GOOD, "tests": [{"path": "a", "because": None, "why": ""}]},
        {**GOOD, "changed": {}},
        {**GOOD, "base": None},
        {key: value for key, value in GOOD.items() if key != "head"},
    ],
)
def test_another_document_is_refused(document: Any) -> None:
    with pytest.raises(ConfigError, match="is broken"):
        from_document(document)
