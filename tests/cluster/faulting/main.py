"""The body of `tests/cluster/faults`: rows, repetitions, a ledger that resumes, a table."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.cluster.bed.place import Place  # noqa: E402
from tests.cluster.faulting import (  # noqa: E402, F401
    mutants,
    rows_files,
    rows_link,
    rows_runner,
    rows_slurm,
    table,
)
from tests.cluster.faulting.ledger import Ledger, commit, latest  # noqa: E402
from tests.cluster.faulting.rows import ROWS  # noqa: E402
from tests.cluster.faulting.runner import Product  # noqa: E402
from tests.cluster.faulting.session import Session, Task  # noqa: E402

EXPECTED = Path(__file__).resolve().parents[1] / "faults.expected.json"


def expected() -> dict[str, dict[str, Any]]:
    """The expected column by row, or row:variant."""
    document: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text())
    return document


def main(arguments: Sequence[str]) -> int:
    """Run; 0 if all is as expected, and for a mutant if it was caught."""
    options = _options(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts background jobs deaf to SIGINT
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="gpuci-product-") as directory:
        product = _product(options.mutant, Path(directory))
        return _run(options, product)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/cluster/faults", allow_abbrev=False)
    parser.add_argument(
        "--bed", type=Path, required=True, metavar="DIR", help="a bed that runs (tests/cluster/up DIR)"
    )
    parser.add_argument("--rows", default="", metavar="A,B", help="these only (default: all)")
    parser.add_argument(
        "--times", type=int, default=0, metavar="N", help="repetitions (default: the row's own)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="of the first repetition (default: 1)"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="J", help="runs at once (default: 2)")
    parser.add_argument(
        "--out", type=Path, default=Path("faults.jsonl"), metavar="FILE", help="the results so far"
    )
    parser.add_argument("--mutant", choices=mutants.MUTANTS, default="", help="break the product first")
    parser.add_argument("--list", action="store_true", help="the rows, and what each plants")
    return parser.parse_args(arguments)


def _product(mutant: str, directory: Path) -> Product:
    return Product(mutants.copy(directory, mutant), _python(), commit(ROOT), mutant)


def _python() -> str:
    """The Python of the clone's own environment, which its launcher makes on first use."""
    subprocess.run([str(ROOT / "gpuci"), "--help"], stdin=-3, stdout=-3, check=True)
    return str(ROOT / ".venv/bin/python")


def _run(options: argparse.Namespace, product: Product) -> int:
    names = (
        options.rows.split(",")
        if options.rows
        else list(mutants.MUTANTS[product.mutant].rows if product.mutant else ROWS)
    )
    if unknown := [name for name in names if name not in ROWS]:
        print(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}", file=sys.stderr)
        return 2
    if options.list:
        print(
            "".join(f"{name:20} {(ROWS[name].plant.__doc__ or '').splitlines()[0]}\n" for name in names),
            end="",
        )
        return 0
    ledger, wanted = Ledger(options.out), expected()
    tasks = list(_tasks(names, options.times, options.seed))
    there = {(key[2], key[3]) for key in latest(ledger.read()) if key[:2] == (product.commit, product.mutant)}
    todo = [task for task in tasks if (task.row.name, task.seed) not in there]
    print(f"{len(tasks)} runs, {len(tasks) - len(todo)} of them in {options.out}", file=sys.stderr)
    count = iter(range(1, len(todo) + 1))

    def done(result: dict[str, Any]) -> None:
        ledger.append(result)
        print(_line(next(count), len(todo), result, wanted), file=sys.stderr, flush=True)

    keep = options.out.with_suffix(".red")
    session = Session(
        Place(options.bed.absolute()), product, keep, lambda one: bool(table.differences(one, wanted)), done
    )
    if todo:
        session.run(todo, options.jobs)
    return _verdict(ledger, tasks, product, wanted)


def _tasks(names: Sequence[str], times: int, seed: int) -> Iterator[Task]:
    """Repetition by repetition, so that every row has run once early."""
    rows = [ROWS[name] for name in names]
    for repetition in range(1, max(times or row.times for row in rows) + 1):
        for row in rows:
            if repetition <= (times or row.times):
                yield Task(row, seed + repetition - 1, row.variant(repetition))


def _line(number: int, of: int, result: dict[str, Any], wanted: dict[str, dict[str, Any]]) -> str:
    red = table.differences(result, wanted)
    words = " ".join(f"{key}={value}" for key, value in result["observed"].items())
    what = f"{table.label(result)} seed {result['seed']}, {result['seconds']} s"
    text = f"{number}/{of} {'RED ' if red else ''}{what}: {words}"
    return "\n".join([text, *(f"    {part[:600]}" for part in red)])


def _verdict(
    ledger: Ledger, tasks: Sequence[Task], product: Product, wanted: dict[str, dict[str, Any]]
) -> int:
    runs = {(task.row.name, task.seed) for task in tasks}
    results = [
        result
        for key, result in latest(ledger.read()).items()
        if key[:2] == (product.commit, product.mutant) and key[2:] in runs
    ]
    order = {name: number for number, name in enumerate(ROWS)}
    results.sort(key=lambda result: (order[result["row"]], result["variant"], result["seed"]))
    print(table.render(results, wanted))
    red = {result["row"] for result in results if table.differences(result, wanted)}
    if not product.mutant:
        return 1 if red else 0
    missed = {result["row"] for result in results} - red
    said = f"not seen by {', '.join(sorted(missed))}" if missed else "caught"
    print(f"mutant `{product.mutant}` ({mutants.MUTANTS[product.mutant].what}): {said}")
    return 1 if missed else 0


if __name__ == "__main__":
    os.umask(0o022)
    raise SystemExit(main(sys.argv[1:]))
