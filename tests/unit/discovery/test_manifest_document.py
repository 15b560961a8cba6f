"""manifest.json <-> Manifest."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.discovery.manifest_document import KINDS, from_document, to_document
from gpuci.errors import ConfigError
from gpuci.model import Manifest, Marker, Root, SourceError, TestTarget
from gpuci_node.contract import MODES

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "manifest.schema.json").read_text())
TEXT = st.text(max_size=6)
MAYBE = st.none() | TEXT
COUNT = st.integers(0, 99)
MARKERS = st.builds(
    Marker,
    TEXT,
    st.lists(TEXT, max_size=2).map(tuple),
    st.dictionaries(TEXT, TEXT, max_size=2).map(lambda pairs: tuple(pairs.items())),
    COUNT,
    st.booleans(),
)
TARGETS = st.builds(
    TestTarget,
    nodeid=TEXT,
    test_path=TEXT,
    test_class=MAYBE,
    test_function=MAYBE,
    test_method=MAYBE,
    root=TEXT,
    line=COUNT,
    run_mode=st.sampled_from(MODES),
    runs_on=MAYBE,
    skip=MAYBE,
    gpus=COUNT,
    kind=st.sampled_from(KINDS),
    timeout=st.none() | st.floats(0.1, 1e6),
    markers=st.lists(MARKERS, max_size=2).map(tuple),
    opaque=MAYBE,
)
ROOTS = st.builds(
    Root,
    path=TEXT,
    config_file=MAYBE,
    args=st.lists(TEXT, max_size=2).map(tuple),
    files=st.lists(TEXT, max_size=2).map(tuple),
    opaque=st.dictionaries(TEXT, TEXT, max_size=2),
    gpu_isolation=st.sampled_from(["mask", "worker-index"]),
    because=TEXT,
)
MANIFESTS = st.builds(
    Manifest,
    st.lists(TARGETS, max_size=3).map(tuple),
    st.lists(ROOTS, max_size=2).map(tuple),
    st.lists(st.builds(SourceError, TEXT, COUNT, TEXT), max_size=2).map(tuple),
)
EXAMPLE = to_document(
    Manifest(
        (
            TestTarget(
                "a.py::t", "a.py", None, "t", None, ".", markers=(Marker("gpu", ("1",), (("n", "2"),), 3),)
            ),
        ),
        (Root(".", files=("a.py",), opaque={"a.py": "why"}),),
        (SourceError("b.py", 1, "bad"),),
    )
)


@given(MANIFESTS)
def test_documents_return_what_they_were_made_of(manifest: Manifest) -> None:
    """Through JSON text, and by the schema."""
    document = to_document(manifest)
    jsonschema.validate(document, SCHEMA)
    assert from_document(json.loads(json.dumps(document))) == manifest


def test_the_schema_names_every_key() -> None:
    """No key more or less than the writer's."""
    definitions = SCHEMA["$defs"]
    assert SCHEMA["properties"].keys() == EXAMPLE.keys()
    assert definitions["root"]["properties"].keys() == EXAMPLE["roots"][0].keys()
    assert definitions["target"]["properties"].keys() == EXAMPLE["targets"][0].keys()
    assert definitions["marker"]["properties"].keys() == EXAMPLE["targets"][0]["markers"][0].keys() | {"some"}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


# `files` only repeats what the roots hold, and isn't read.
PLACES = [place for place in places(EXAMPLE) if place[:1] != ("files",)]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)) or "document")
@pytest.mark.parametrize("junk", [True, -1, ["x", 1], {"x": 1}], ids=["bool", "negative", "list", "object"])
def test_junk_anywhere_is_a_config_error(place: tuple[Any, ...], junk: object) -> None:
    """Never another exception, and never a manifest with junk in it."""
    document: Any = {"document": copy.deepcopy(EXAMPLE)}
    inner = document
    for key in ("document", *place)[:-1]:
        inner = inner[key]
    inner[("document", *place)[-1]] = junk
    with pytest.raises(ConfigError, match=r"^manifest"):
        from_document(document["document"])


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (None, "manifest is not an object"),
        ({}, "manifest.schema is missing"),
        ({"schema": "gpuci/plan/1"}, "manifest.schema is not gpuci/manifest/1"),
        ({**EXAMPLE, "targets": [{}]}, r"manifest.targets\[0\].nodeid is missing"),
    ],
)
def test_messages_name_the_place(document: object, what: str) -> None:
    """The first thing wrong."""
    with pytest.raises(ConfigError, match=what):
        from_document(document)
