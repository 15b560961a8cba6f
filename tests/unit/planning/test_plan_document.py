"""plan.json: nothing is lost on the way, and a bad document is refused with the place that is bad."""

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from gpuci.config.model import DEFAULT_MARKERS, Config, Profile
from gpuci.errors import ConfigError
from gpuci.model import Manifest, Plan, Root, TestTarget
from gpuci.planning.document import from_document, to_document
from gpuci.planning.plan import make_plan
from gpuci.schemas import load_schema


def example() -> Plan:
    """A plan with every kind of unit and select."""

    def target(path: str, name: str, mode: str, gpus: int = 1, runs_on: str | None = None) -> TestTarget:
        return TestTarget(f"{path}::{name}", path, None, name, None, ".", 0, mode, runs_on, None, gpus)

    targets = (
        target("t0.py", "a", "normal"),
        target("t1.py", "a", "normal"),
        target("t1.py", "b", "isolated", 2),
        target("t1.py", "c", "skip"),
        target("t2.py", "a", "serial", 8),
        target("t3.py", "a", "cpu", 0),
        target("t4.py", "a", "normal", 1, "small"),
    )
    root = Root(
        ".", "pytest.ini", (), ("t0.py", "t1.py", "t2.py", "t3.py", "t4.py", "t5.py"), {"t5.py": "why"}
    )
    config = Config(profiles=(Profile("default"), Profile("small", gpus=2)), markers=DEFAULT_MARKERS)
    return make_plan(Manifest(targets, (root,)), config, sha="f" * 40, shards=3)


PLAN = example()
DOCUMENT = json.loads(json.dumps(to_document(PLAN)))
VALIDATOR = jsonschema.Draft202012Validator(load_schema("plan"))


def test_nothing_is_lost() -> None:
    assert from_document(DOCUMENT) == PLAN
    assert to_document(from_document(DOCUMENT)) == to_document(PLAN)


def test_the_schema_accepts_it() -> None:
    assert [error.message for error in VALIDATOR.iter_errors(DOCUMENT)] == []


def test_fields_with_a_default_may_be_missing_and_others_may_be_more() -> None:
    document = copy.deepcopy(DOCUMENT)
    del document["notes"], document["units"][0]["tests"], document["roots"][0]["because"]
    document["later"] = document["units"][0]["later"] = 1
    assert from_document(document).units[0].tests == 0


Change = Callable[[dict[str, Any]], object]
BAD: dict[str, tuple[Change, str]] = {
    "schema": (lambda d: d.update(schema="gpuci/plan/2"), "schema is 'gpuci/plan/2', not 'gpuci/plan/1'"),
    "no schema": (lambda d: d.pop("schema"), "schema is None"),
    "a key is missing": (lambda d: d.pop("units"), "units missing"),
    "two keys": (
        lambda d: (d["units"][0].pop("id"), d["units"][0].pop("file")),
        r"units\[0\]: id, file missing",
    ),
    "units": (lambda d: d.update(units=3), "units: a list was expected, not 3"),
    "unit": (lambda d: d["units"].insert(1, "u"), r"units\[1\]: a mapping was expected, not 'u'"),
    "gpus": (lambda d: d["units"][2].update(gpus="two"), r"units\[2\]\.gpus: a whole number from 0"),
    "gpus boolean": (lambda d: d["units"][2].update(gpus=True), r"units\[2\]\.gpus: .* not True"),
    "gpus negative": (lambda d: d["units"][2].update(gpus=-1), r"units\[2\]\.gpus: .* not -1"),
    "seconds NaN": (
        lambda d: d["units"][0].update(expected_seconds=float("nan")),
        r"expected_seconds: .* not nan",
    ),
    "seconds huge": (
        lambda d: d["units"][0].update(timeout_seconds=10**400),
        r"timeout_seconds: .* not 1000",
    ),
    "makespan": (
        lambda d: d.update(makespan_seconds=None),
        "makespan_seconds: a number of seconds .* not None",
    ),
    "mode": (lambda d: d["units"][0].update(mode="skip"), r"units\[0\]\.mode: 'skip' is not a mode"),
    "mode a list": (lambda d: d["units"][0].update(mode=[]), r"units\[0\]\.mode: \[\] is not a mode"),
    "select": (
        lambda d: d["units"][0].update(select="some"),
        r"units\[0\]\.select: \"all\", a list .* not 'some'",
    ),
    "select ids": (
        lambda d: d["units"][0].update(select=["a", 1]),
        r"units\[0\]\.select\[1\]: text was expected",
    ),
    "except": (
        lambda d: d["units"][0].update(select={"except": "a"}),
        r"units\[0\]\.select\.except: a list was expected",
    ),
    "two keys of select": (
        lambda d: d["units"][0].update(select={"except": [], "piece": 1}),
        r"select: \"all\"",
    ),
    "opaque": (lambda d: d["roots"][0].update(opaque={"t.py": 1}), r"roots\[0\]\.opaque\.t\.py: text"),
    "skipped": (lambda d: d.update(skipped=[{"nodeid": "a"}]), r"skipped\[0\]: because missing"),
    "sha": (lambda d: d.update(sha=1), "sha: text was expected, not 1"),
    "an id twice": (lambda d: d["units"][1].update(id="u001"), "units: an id is used by two units"),
    "an unknown id": (lambda d: d["cpu_units"].append("u9"), "cpu_units: no unit has the id 'u9'"),
    "placed twice": (
        lambda d: d["cpu_units"].append(d["cpu_units"][0]),
        "units: every unit has to be in one",
    ),
    "placed nowhere": (lambda d: d["shards"][0].update(units=[]), "units: every unit has to be in one"),
    "a cpu unit in a shard": (
        lambda d: d["shards"][0]["units"].append(d["cpu_units"].pop()),
        r"shards\[0\]\.units: unit 'u005' is of another kind of node",
    ),
    "another profile": (lambda d: d["shards"][0].update(profile="small"), "is of another kind of node"),
    "shard indices": (lambda d: d["shards"][0].update(index=7), "shards: indices are not 1, 2"),
    "an escape sequence": (lambda d: d["units"][0].update(mode="\x1b[31m"), r"'\\x1b\[31m' is not a mode"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_a_bad_document_is_refused(change: Change, message: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    with pytest.raises(ConfigError, match=f"^not a plan: .*{message}") as raised:
        from_document(document)
    assert "\x1b" not in raised.value.page()


@pytest.mark.parametrize("document", [None, [], "plan", 3, {}], ids=repr)
def test_what_is_no_plan_at_all(document: object) -> None:
    with pytest.raises(ConfigError, match=r"^not a plan: "):
        from_document(document)


def test_a_broken_configuration_is_refused() -> None:
    document = copy.deepcopy(DOCUMENT)
    document["config"]["node"] = 3
    with pytest.raises(ConfigError, match="config"):
        from_document(document)


@pytest.mark.parametrize(
    "name",
    [
        "no schema",
        "units",
        "gpus",
        "gpus negative",
        "mode",
        "select",
        "select ids",
        "except",
        "skipped",
        "sha",
    ],
)
def test_the_schema_refuses_it_too(name: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    BAD[name][0](document)
    assert not VALIDATOR.is_valid(document)
