"""What a job that is followed from afar takes care of, in its document and in the schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from gpuci.config.model import Config
from gpuci.execution.jobs import Care, NodeFacts, Paths, job_document
from gpuci.model import Plan, Root, Shard, Unit
from gpuci.schemas import load_schema

PLAN = Plan(
    config={},
    sha=None,
    event="manual",
    roots=(Root("."),),
    targets=(),
    units=(Unit("u", ".", "test_a.py", "all", "normal", 1, "default", 1.0, 900.0),),
    shards=(Shard(1, "default", ("u",), 1.0),),
    cpu_units=(),
    skipped=(),
    makespan_seconds=1.0,
    lower_bound_seconds=1.0,
    unknown_durations=0,
)
NAMES = ("lease", "stall_seconds", "health", "setup", "output_bytes", "link")


def document(care: Care | None, root: str | None = "/r") -> dict[str, Any]:
    made = job_document(
        PLAN,
        Config(container={"pythonpath": ["src"]}),
        1,
        run="r",
        token="0" * 32,
        node=NodeFacts(None, None, expect_gpus=8),
        paths=Paths(root, "/o", None),
        python=["sh", "/j/job.sh", "enter"],
        care=care,
    )
    found: dict[str, Any] = json.loads(json.dumps(made))
    jsonschema.validate(found, load_schema("job"))
    return found


def test_a_job_on_this_machine_takes_care_of_nothing() -> None:
    found = document(None)
    assert {name: found[name] for name in NAMES} == dict.fromkeys(NAMES)


@pytest.mark.parametrize(
    ("setup", "expected"), [(None, None), ("", None), ("make", {"text": "make", "seconds": 1800.0})]
)
def test_a_job_that_is_followed_from_afar(setup: str | None, expected: dict[str, Any] | None) -> None:
    found = document(Care("/j/lease", 300.0, 1800.0, setup=setup))
    assert {name: found[name] for name in NAMES} == {
        "lease": {"path": "/j/lease", "seconds": 300.0},
        "stall_seconds": 1800.0,
        "health": {"memory_mib": 1024, "free_mib": 512},
        "setup": expected,
        "output_bytes": 32 * 1024 * 1024,
        "link": None,
    }


@pytest.mark.parametrize(("root", "expected"), [("/r", ["/r/src"]), (None, ["src"])])
def test_where_only_the_node_knows_the_tree_it_completes_the_path(
    root: str | None, expected: list[str]
) -> None:
    assert document(None, root)["settings"]["pythonpath"] == expected
