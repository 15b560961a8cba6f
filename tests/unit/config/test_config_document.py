"""Config -> JSON -> Config, and documents that are none."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuci
from gpuci.config.document import _READERS, from_document, to_document
from gpuci.config.load import load_config
from gpuci.config.model import Config, MarkerRule, Node, Profile, Shards
from gpuci.errors import ConfigError

TEXT = st.text(max_size=8)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.none() | st.booleans() | st.integers() | FLOATS | TEXT | st.lists(TEXT, max_size=3)
SECTIONS = st.dictionaries(TEXT, JSON_VALUES, max_size=3)
OPTIONAL_INT = st.none() | st.integers()
CONFIGS = st.builds(
    Config,
    packages=TEXTS,
    modes=st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    markers=st.lists(st.builds(MarkerRule, TEXT, OPTIONAL_INT), max_size=2).map(tuple),
    profiles=st.lists(
        st.builds(Profile, TEXT, TEXT, st.integers(), st.none() | FLOATS, slurm=SECTIONS), max_size=2
    ).map(tuple),
    node=st.builds(Node, pytest_args=TEXTS, env=st.dictionaries(TEXT, TEXT, max_size=2), timeout=FLOATS),
    shards=st.builds(Shards, st.integers(), st.integers(), FLOATS),
    container=SECTIONS,
    slurm=SECTIONS,
    durations=SECTIONS,
    label=SECTIONS,
    cost=SECTIONS,
    changes=SECTIONS,
)


@given(CONFIGS)
def test_round_trip_through_json(config: Config) -> None:
    assert from_document(json.loads(json.dumps(to_document(config)))) == config


def test_a_resolved_configuration_makes_the_trip(tmp_path: Path) -> None:
    config = load_config(tmp_path, packages="a b")
    document = to_document(config)
    assert document["schema"] == "gpuci/config/1"
    assert from_document(json.loads(json.dumps(document))) == config


def test_the_document_is_a_copy(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    to_document(config)["container"]["cap-add"].append("ALL")
    assert config.container["cap-add"] == ["SYS_NICE"]


def field_types() -> set[str]:
    """The annotations of all fields below Config."""
    kinds = (Config, MarkerRule, Node, Profile, Shards)
    assert all(is_dataclass(kind) for kind in kinds)
    return {str(field.type) for kind in kinds for field in fields(kind)}


def test_every_field_has_a_reader_and_every_reader_a_field() -> None:
    assert field_types() == set(_READERS)


def changed(path: list[str | int], value: object) -> dict[str, Any]:
    """The document of the defaults with one value replaced."""
    document = to_document(Config(markers=(MarkerRule("gpu", 1),), modes=(("a", "serial"),)))
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return document


BAD = [
    (["schema"], "gpuci/plan/1", "configuration is not a document of the schema"),
    (["packages"], "a", r"config\.packages is not a list"),
    (["packages"], [1], r"config\.packages\[0\] is not text"),
    (["modes", 0], ["a"], r"config\.modes\[0\] is not a pair"),
    (["node", "timeout"], "5", r"config\.node\.timeout is not a number"),
    (["node", "timeout"], True, r"config\.node\.timeout is not a number"),
    (["node", "timeout"], float("nan"), r"config\.node\.timeout is not a number"),
    (["node", "cpu_workers"], 1.5, r"config\.node\.cpu_workers is not a whole number"),
    (["node", "env"], {"A": 1}, r"config\.node\.env\.A is not text"),
    (["node", "extra"], 1, r"config\.node is not a mapping with exactly the keys python"),
    (["markers", 0], {"name": "gpu"}, r"config\.markers\[0\] is not a mapping with exactly"),
    (["profiles"], None, r"config\.profiles is not a list"),
    (["slurm"], [], r"config\.slurm is not a mapping"),
    (["surprise"], 1, "config is not a mapping with exactly the keys packages"),
]


@pytest.mark.parametrize(("path", "value", "expected"), BAD, ids=[row[2][-30:] for row in BAD])
def test_broken_documents(path: list[str | int], value: object, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        from_document(changed(path, value))


@pytest.mark.parametrize("document", [None, [], "text", {}, {"schema": "gpuci/config/1"}])
def test_what_is_no_document(document: Any) -> None:
    with pytest.raises(ConfigError):
        from_document(document)


def test_document_needs_only_the_standard_library() -> None:
    code = (
        "import sys; import gpuci.config.document; print(sorted({'yaml', 'jsonschema'} & set(sys.modules)))"
    )
    scripts = str(Path(gpuci.__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {scripts!r}); {code}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"
