"""Reconcile and render a large run: python bench/reconcile.py [TESTS]. Prints seconds of one core."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from gpuci.model import Plan, Shard, ShardRun, Unit
from gpuci.reporting import document, markdown, terminal
from gpuci.results.build import build_report
from gpuci.results.reconcile import reconcile

PER_FILE = 20


def make_run(tests: int) -> tuple[Plan, list[ShardRun]]:
    """Files of 20 tests in two units each, over 12 shards; every hundredth test fails."""
    units: list[Unit] = []
    targets: list[str] = []
    records: dict[int, list[dict[str, Any]]] = {index: [] for index in range(1, 13)}
    of_shard: dict[int, list[str]] = {index: [] for index in records}
    for number in range(tests // PER_FILE):
        file = f"packages/p{number % 7}/tests/test_{number}.py"
        ids = [f"{file}::test_{n}" for n in range(PER_FILE)]
        targets += ids
        for select, own in (({"except": ids[15:]}, ids[:15]), (ids[15:], ids[15:])):
            unit = Unit(f"u{len(units)}", ".", file, select, "normal", 1, "default", 1.0, 900.0)
            index = len(units) % 12 + 1
            units.append(unit)
            of_shard[index].append(unit.id)
            records[index] += unit_records(unit, ids, own)
    shards = tuple(Shard(index, "default", tuple(ids), 1.0) for index, ids in of_shard.items())
    plan = Plan({}, None, "manual", (), tuple(targets), tuple(units), shards, (), (), 1.0, 1.0, 0)
    return plan, [ShardRun(index, tuple(rows), {"verdict": "failed"}) for index, rows in records.items()]


def unit_records(unit: Unit, ids: list[str], own: list[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"kind": "collected", "unit": unit.id, "file": unit.file, "ids": ids}]
    for place, nodeid in enumerate(own):
        outcome = "failed" if place == 7 and unit.id.endswith("0") else "passed"
        seconds = {"setup": 0.1, "call": 0.2, "teardown": 0.1}
        rows.append({"kind": "start", "unit": unit.id, "nodeid": nodeid})
        rows.append(
            {"kind": "end", "unit": unit.id, "nodeid": nodeid, "outcome": outcome, "seconds": seconds}
        )
    return rows


def main() -> int:
    """Time each step once."""
    tests = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    plan, runs = make_run(tests)
    print(f"{tests} tests, {len(plan.units)} units, {sum(len(run.records) for run in runs)} records")
    began = time.process_time()
    reconcile(plan, runs)
    print(f"reconcile      {time.process_time() - began:6.2f} s")
    began = time.process_time()
    report = build_report(plan, runs, seconds=1.0, setup_seconds=0.0)
    print(f"build_report   {time.process_time() - began:6.2f} s")
    for name, render in (
        ("terminal", terminal.render),
        ("markdown", markdown.render),
        ("document", lambda report: str(document.to_document(report))),
    ):
        began = time.process_time()
        text = render(report)
        print(f"{name:<14} {time.process_time() - began:6.2f} s  {len(text)} characters")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
