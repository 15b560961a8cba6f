"""What the runner and the node agree on: names, outcomes, verdicts and exit codes.

Runs on both sides: standard library only, Python >= 3.8, pure values, no I/O.
"""

import posixpath
from typing import Dict, FrozenSet, Iterable, List, Mapping, Sequence, Tuple, Union

SCHEMAS: Mapping[str, str] = {
    name: "gpuci/%s/1" % name
    for name in (
        "config",
        "durations",
        "changes",
        "manifest",
        "plan",
        "job",
        "journal",
        "verdict",
        "runs",
        "report",
    )
}

MODES: Tuple[str, ...] = ("normal", "isolated", "serial", "cpu", "skip")
MODE_ALIASES: Mapping[str, str] = {"concurrent": "normal", "sequential": "serial", "SKIP": "skip"}

# Outcomes of one test, worst first: several reports of one node id become one record, the worst wins.
OUTCOMES: Tuple[str, ...] = (
    "collection_error",
    "failed",
    "error",
    "not_finished",
    "passed",
    "xpassed",
    "xfailed",
    "skipped",
    "deselected",
    "not_collected",
    "elsewhere",
)
RED_OUTCOMES: FrozenSet[str] = frozenset({"collection_error", "failed", "error", "not_finished"})
# A run in which no test has one of these ran nothing, and is not a pass.
RAN_OUTCOMES: FrozenSet[str] = frozenset({"passed", "failed", "error", "xfailed", "xpassed"})

# One table for a laptop, an Actions step and the node; outside 125-255, which engines, shells and ssh use.
EXIT_CODES: Mapping[str, int] = {
    "passed": 0,
    "failed": 1,
    "config_error": 2,
    "timeout": 3,
    "infra": 4,
    "preempted": 5,
    "queue_timeout": 6,
    "cancelled": 7,
    "unauthorized": 8,
}
# Verdicts, worst first: what a run of several shards is called. A test that failed is a fact, whatever else
# went wrong; then what a person has to put right or did; then what the cluster did.
VERDICTS: Tuple[str, ...] = (
    "failed",
    "config_error",
    "unauthorized",
    "cancelled",
    "timeout",
    "infra",
    "preempted",
    "queue_timeout",
    "passed",
)

Ids = Union[Sequence[str], FrozenSet[str]]
Select = Union[str, Ids, Mapping[str, Ids]]


def coverage_file(root: str) -> str:
    """Where a shard leaves the coverage data of a root, in its folder; not hidden: uploads leave that out."""
    return posixpath.normpath("coverage/%s/coverage.data" % root)


def worst_outcome(outcomes: Iterable[str]) -> str:
    """Return the worst of some outcomes; raises ValueError on none or on an unknown one."""
    return min(outcomes, key=OUTCOMES.index)


def function_id(nodeid: str) -> str:
    """Strip the parameters of a node id: `a/test_x.py::TestA::test_b[1-2]` -> `a/test_x.py::TestA::test_b`.

    The path may hold brackets of its own, the parameter part may hold `::`.
    """
    path, separator, rest = nodeid.partition("::")
    return path + separator + rest.partition("[")[0]


def selects(select: Select, nodeid: str) -> bool:
    """Whether a unit with this `select` ("all" | [ids] | {"except": [ids]}) runs the item `nodeid`.

    An id names a function (all its parameters), one item exactly, or a class (all below it).
    """
    if isinstance(select, str):
        return True
    if isinstance(select, Mapping):
        return not _named(select["except"], nodeid)
    return _named(select, nodeid)


def indexed(select: Select) -> Select:
    """The same selection with sets in place of lists, for files of thousands of tests."""
    if isinstance(select, str):
        return select
    if isinstance(select, Mapping):
        return {"except": frozenset(select["except"])}
    return frozenset(select)


def _named(ids: Ids, nodeid: str) -> bool:
    function = function_id(nodeid)
    if nodeid in ids or function in ids:
        return True
    parts = function.split("::")
    return any("::".join(parts[:depth]) in ids for depth in range(1, len(parts)))


def count_outcomes(outcomes: Iterable[str]) -> Dict[str, int]:
    """Count outcomes in the order of OUTCOMES, without those that did not occur."""
    seen: List[str] = list(outcomes)
    return {name: seen.count(name) for name in OUTCOMES if name in seen}
