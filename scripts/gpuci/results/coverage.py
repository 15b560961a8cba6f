"""The coverage data files that the shards of a run left. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gpuci.model import Plan, ShardRun
from gpuci.results.ownership import shard_folder
from gpuci_node.contract import coverage_file


def coverage_files(plan: Plan, runs: Iterable[ShardRun]) -> tuple[str, ...]:
    """Paths relative to the run's directory, as the nodes noted them.

    Tests can forge notes, so only the names that a node gives count.
    """
    possible = {coverage_file(root.path) for root in plan.roots}
    named = {
        (run.index, run.attempt, record["text"])
        for run in runs
        for record in run.records
        if record["kind"] == "note" and record.get("topic") == "coverage" and record["text"] in possible
    }
    return tuple(f"{shard_folder(index, attempt)}/{file}" for index, attempt, file in sorted(named))
