"""`gpuci run`: plan a tree, run the plan here or on a cluster, report."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from pathlib import Path
from typing import Any

from gpuci.commands.backends import BACKENDS, Run, check, execute
from gpuci.commands.changed_tree import add_base_argument, find_due
from gpuci.commands.common import (
    Tree,
    add_plan_arguments,
    add_tree_arguments,
    load_tree,
    plan_tests,
    unmatched_packages,
)
from gpuci.commands.output import page_style, say, short, show, show_document
from gpuci.config import document as config_document
from gpuci.errors import ConfigError
from gpuci.execution.directories import (
    discard_unbegun,
    keep_newest,
    new_directory,
    read_document,
    write_document,
    write_text,
)
from gpuci.model import Plan, Report
from gpuci.planning import document as plan_document
from gpuci.reporting import document as report_document
from gpuci.reporting import markdown, terminal
from gpuci.reporting.text import duration, plural
from gpuci.results.build import build_report
from gpuci_node.contract import EXIT_CODES


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "run", help="plan the tests and run them, on this machine or on a Slurm cluster"
    )
    add_tree_arguments(parser)
    add_plan_arguments(parser)
    add_base_argument(parser)
    parser.add_argument("--backend", choices=BACKENDS, default="local", help="where to run (default: local)")
    parser.add_argument("--plan", metavar="F", help="run this plan.json instead of making one")
    parser.add_argument("--out", metavar="DIR", help="new directory for results (default: below ROOT/.gpuci)")
    parser.add_argument(
        "--gpus", type=_positive, metavar="N", help="GPUs per shard; pretended where there are none"
    )
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="shards at once (default: 1)")
    parser.add_argument("--json", action="store_true", help="print report.json on standard output")
    parser.set_defaults(main=main)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a number from 1 on")
    return int(text)


def main(args: argparse.Namespace) -> int:
    """Run; the exit code is the verdict's."""
    started = time.monotonic()
    run = _prepare(args)
    setup_seconds = time.monotonic() - started
    if args.base and not run.plan.units and not run.plan.skipped:
        _publish(args, run, Report("passed", "no test can be affected", {}, (), (), sha=run.plan.sha))
        return EXIT_CODES["passed"]
    try:
        shard_runs, notes = execute(args, run)
    except BaseException:
        discard_unbegun(run.out)
        raise
    report = build_report(
        run.plan,
        shard_runs,
        seconds=time.monotonic() - started - setup_seconds,
        setup_seconds=setup_seconds,
        elsewhere=args.backend == "slurm",
        warnings=(*run.warnings, *notes),
    )
    _publish(args, run, report)
    return EXIT_CODES[report.verdict]


def _prepare(args: argparse.Namespace) -> Run:
    tree = load_tree(args)
    given = _given_plan(args) if args.plan else None
    if given:
        tree = Tree(tree.root, config_document.from_document(given.config))
    check(args, tree)
    plan = given or plan_tests(args, tree, find_due(args, tree))
    name = time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)
    out = new_directory(tree.root, name, args.out)
    write_document(out / "plan.json", plan_document.to_document(plan))
    say(_plan_line(plan))
    for root in plan.roots:
        if root.gpu_isolation != "mask":
            say(f"{root.path}: every test process sees all GPUs ({root.gpu_isolation}: {root.because})")
    return Run(tree, plan, out, name, tuple(unmatched_packages(tree)))


def _given_plan(args: argparse.Namespace) -> Plan:
    if any((args.shards, args.durations, args.expression, args.packages, args.config, args.event, args.base)):
        raise ConfigError(
            "--plan goes without --shards, --durations, --packages, --config, --event, --base and -k",
            why="the plan decided on them",
            then="leave them out, or make a plan with them: `gpuci plan --json`",
        )
    return plan_document.from_document(read_document(Path(args.plan), then="make one: `gpuci plan --json`"))


def _plan_line(plan: Plan) -> str:
    cpu = " and the cpu pool" if plan.cpu_units else ""
    unknown = plan.unknown_durations
    known = "" if unknown == 0 else f", {plural(unknown, 'duration')} unknown"
    makespan = duration(plan.makespan_seconds)
    return f"planned {plural(len(plan.shards), 'shard')}{cpu} (makespan {makespan}{known})"


def _publish(args: argparse.Namespace, run: Run, report: Report) -> None:
    """Tell first, write then: on a full disk a person still sees the result."""
    document = report_document.to_document(report)
    if args.json:
        show_document(document)
    else:
        show(terminal.render(report, **page_style(sys.stdout)))
    write_document(run.out / "report.json", document)
    write_text(run.out / "summary.md", markdown.render(report))
    say(f"{report.verdict.replace('_', ' ')}; results: {short(run.out)}")
    keep_newest(run.tree.root / ".gpuci" / "runs")
