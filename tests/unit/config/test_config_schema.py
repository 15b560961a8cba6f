"""The schema against the dataclasses, against JSON Schema's own rules, and against the documentation."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpuci
from gpuci.config.document import from_document, to_document
from gpuci.config.load import load_config
from gpuci.config.model import DEFAULT_MARKERS, Config, MarkerRule, Node, Profile, Shards
from gpuci.config.parse import parse
from gpuci.config.validate import resolved, validate
from gpuci.errors import ConfigError
from gpuci.schemas import load_schema
from gpuci_node.contract import MODE_ALIASES, MODES

SCHEMA = load_schema("config")
SECTIONS = {
    name: below for name, below in SCHEMA["properties"].items() if "properties" in below and name != "modes"
}
DOCS = Path(gpuci.__file__).parents[2] / "docs/configuration.md"


def snake(names: Any) -> list[str]:
    """YAML's names as a dataclass has them."""
    return [name.replace("-", "_") for name in names]


def test_the_schema_is_valid_draft_2020_12() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_has_the_fields_of_config_in_their_order() -> None:
    assert snake(SCHEMA["properties"]) == [field.name for field in fields(Config)]


KINDS = [
    (Node, SCHEMA["properties"]["node"], ()),
    (Shards, SCHEMA["properties"]["shards"], ()),
    (MarkerRule, SCHEMA["$defs"]["marker"], ("name",)),
    (Profile, SCHEMA["$defs"]["profile"], ("name",)),
]


def default_of(field: Field[Any]) -> object:
    """A field's default as JSON has it."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return list(default) if isinstance(default, tuple) else default


@pytest.mark.parametrize(("kind", "schema", "names"), KINDS, ids=["node", "shards", "marker", "profile"])
def test_a_section_has_the_fields_of_its_dataclass_with_their_defaults(
    kind: type[Any], schema: dict[str, Any], names: tuple[str, ...]
) -> None:
    in_schema = {
        name.replace("-", "_"): resolved(below, SCHEMA)["default"]
        for name, below in schema["properties"].items()
    }
    assert in_schema == {field.name: default_of(field) for field in fields(kind) if field.name not in names}


@pytest.mark.parametrize("name", ["container", "slurm", "durations", "label", "cost", "changes"])
def test_a_mapping_section_has_every_setting_of_the_schema(name: str, tmp_path: Path) -> None:
    assert list(getattr(load_config(tmp_path), name)) == list(SCHEMA["properties"][name]["properties"])


def test_modes_are_those_of_the_contract() -> None:
    known = {*MODES, *MODE_ALIASES}
    assert set(SCHEMA["properties"]["modes"]["properties"]) == known
    assert set(SCHEMA["$defs"]["marker"]["properties"]["mode"]["enum"]) == known


def test_a_profile_sets_only_what_a_job_asks_for() -> None:
    taken = SCHEMA["$defs"]["profile"]["properties"]["slurm"]["properties"]
    assert all(below == {"$ref": f"#/properties/slurm/properties/{name}"} for name, below in taken.items())
    assert set(taken) < set(SCHEMA["properties"]["slurm"]["properties"])


def subschemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every named setting below a schema."""
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}", below
        yield from subschemas(below, f"{path}.{name}")


def everything() -> list[tuple[str, dict[str, Any]]]:
    """Every setting, those of marks and profiles included."""
    definitions = [pair for name, below in SCHEMA["$defs"].items() for pair in subschemas(below, name)]
    return [*subschemas(SCHEMA), *definitions]


@pytest.mark.parametrize(("name", "schema"), everything(), ids=[name for name, _ in everything()])
def test_every_setting_is_described_and_fails_with_one_clear_message(
    name: str, schema: dict[str, Any]
) -> None:
    full = resolved(schema, SCHEMA)
    assert full["description"].endswith(".")
    assert not {"anyOf", "oneOf", "allOf", "not", "if"} & set(full)
    if "pattern" in full:
        # Whole text, so that editors (search) and this project (full match) agree.
        assert all(part.startswith("^") for part in full["pattern"].split("$|"))
        assert full["pattern"].endswith("$")
        assert full["patternErrorMessage"]


@pytest.mark.parametrize(("name", "schema"), everything(), ids=[name for name, _ in everything()])
def test_every_default_is_valid(name: str, schema: dict[str, Any]) -> None:
    full = resolved(schema, SCHEMA)
    if full.get("default") is not None:
        jsonschema.Draft202012Validator({**full, "$defs": SCHEMA["$defs"]}).validate(full["default"])


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 100)
    | st.sampled_from(["a", "-a", "a b", "64g", "serial", "/a", "a\\b"]),
    lambda below: (
        st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(["gpus", "slurm", "x"]), below)
    ),
    max_leaves=4,
)
NAMES = sorted({name.rpartition(".")[2] for name, _ in everything()})
DOCUMENTS = st.dictionaries(
    st.sampled_from([*SCHEMA["properties"], "x-own", "other"]),
    VALUES | st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3),
    max_size=3,
)


def quoted_dump(value: object) -> bytes:
    """YAML in which text is quoted, so that it means the same to every reader."""
    return json.dumps(value).encode()


@given(DOCUMENTS)
@settings(max_examples=300)
def test_the_plain_schema_takes_what_this_project_takes(value: dict[str, Any]) -> None:
    """An editor that checks with the schema alone agrees, save that it insists on quotes around numbers."""
    _, problems = validate(parse(quoted_dump(value), "f.yml")[0], SCHEMA)
    plain = jsonschema.Draft202012Validator(SCHEMA).is_valid(value)
    assert not (plain and problems)


@given(DOCUMENTS)
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mapping_gives_a_configuration_or_a_config_error(tmp_path: Path, value: dict[str, Any]) -> None:
    (tmp_path / "gpuci.yml").write_bytes(quoted_dump(value))
    try:
        config = load_config(tmp_path, [tmp_path / "gpuci.yml"])
    except ConfigError:
        return
    assert from_document(json.loads(json.dumps(to_document(config)))) == config


def documented(name: str, below: dict[str, Any]) -> str:
    """The row of a setting in the documentation."""
    full = resolved(below, SCHEMA)
    default = full.get("default")
    shown = "" if default in (None, {}, "") else f"`{json.dumps(default)}`"
    allowed = f" One of {', '.join(f'`{word}`' for word in full['enum'])}." if "enum" in full else ""
    return f"| `{name}` | {shown} | {full['description'].replace('|', chr(92) + '|')}{allowed} |"


ROWS = [
    *[
        (section, name, below)
        for section, full in SECTIONS.items()
        for name, below in full["properties"].items()
    ],
    *[("markers", name, below) for name, below in SCHEMA["$defs"]["marker"]["properties"].items()],
    *[("profiles", name, below) for name, below in SCHEMA["$defs"]["profile"]["properties"].items()],
]


@pytest.mark.parametrize(("section", "name", "below"), ROWS, ids=[f"{row[0]}.{row[1]}" for row in ROWS])
def test_the_documentation_has_each_setting(section: str, name: str, below: dict[str, Any]) -> None:
    text = DOCS.read_text(encoding="utf-8")
    chapter = re.split(rf"^## {section}$", text, flags=re.M)[1].split("\n## ")[0]
    assert documented(name, below) in chapter.splitlines()


@pytest.mark.parametrize("name", SCHEMA["$defs"]["build"]["properties"])
def test_the_documentation_has_each_setting_of_a_build(name: str) -> None:
    chapter = DOCS.read_text(encoding="utf-8").partition("\n## container\n")[2].partition("\n## ")[0]
    assert documented(name, SCHEMA["$defs"]["build"]["properties"][name]) in chapter.splitlines()


@pytest.mark.parametrize("mode", SCHEMA["properties"]["modes"]["properties"])
def test_the_documentation_has_each_mode(mode: str) -> None:
    assert re.search(rf"^\|.* `{mode}` \|", DOCS.read_text(encoding="utf-8"), flags=re.M)


@pytest.mark.parametrize("rule", DEFAULT_MARKERS, ids=lambda rule: rule.name)
def test_the_documentation_has_each_built_in_rule(rule: MarkerRule) -> None:
    assert f"| `{rule.name}` |" in DOCS.read_text(encoding="utf-8")


EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=[text.split("\n")[0] for text in EXAMPLES])
def test_each_example_of_the_documentation_is_valid(example: str, tmp_path: Path) -> None:
    (tmp_path / "modes.yml").write_text("serial: [a]\n")
    (tmp_path / "gpuci.yml").write_text(example)
    config = load_config(tmp_path, [tmp_path / "gpuci.yml"])
    assert config != load_config(tmp_path)


def test_the_documentation_has_an_example_of_every_section() -> None:
    shown = {key for text in EXAMPLES for key in yaml.safe_load(text)}
    assert set(SCHEMA["properties"]) <= shown


def sources() -> list[str]:
    """The code beyond the configuration's own."""
    package = Path(gpuci.__file__).parent
    files = (path for path in package.rglob("*.py") if package / "config" not in path.parents)
    return [path.read_text(encoding="utf-8") for path in files]


SOURCES = sources()
ATTRIBUTES = {
    node.attr for text in SOURCES for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)
}


def acts(section: str, name: str) -> bool:
    """Whether some code reads a setting: as a field, or by its name where a section stays a mapping."""
    if section in ("node", "shards", "markers", "profiles"):
        return name.replace("-", "_") in ATTRIBUTES
    if section in ("container", "slurm"):  # given as a whole to the parts that act on them
        return any(f'"{name}"' in text for text in SOURCES)
    return any(re.search(rf"\.{section}(\.get\(|\[)\"{name}\"", text) for text in SOURCES)


def yet(section: str) -> str:
    """The row of a section's settings that nothing acts on, empty if there are none."""
    names = [name for part, name, _ in ROWS if part == section]
    acting = [name for name in names if acts(section, name)]
    waiting = [f"`{name}`" for name in names if name not in acting]
    if not waiting:
        return ""
    few = f"all but {', '.join(f'`{name}`' for name in acting)}" if acting else "all"
    return f"| `{section}` | {few if len(acting) * 2 < len(names) else ', '.join(waiting)} |"


def test_the_documentation_says_which_settings_nothing_acts_on_yet() -> None:
    chapter = DOCS.read_text(encoding="utf-8").partition("## Not yet\n")[2].partition("\n## ")[0]
    said = [line for line in chapter.splitlines() if line.startswith("| `")]
    assert said == [row for row in map(yet, dict.fromkeys(section for section, _, _ in ROWS)) if row]
