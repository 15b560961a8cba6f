"""`gpuci run`: plan a tree, run the plan on this machine, report."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuci.commands.common import (
    Tree,
    add_plan_arguments,
    add_tree_arguments,
    find_tests,
    load_tree,
    plan_tests,
    unmatched_packages,
)
from gpuci.commands.output import page_style, say, short, show, show_document
from gpuci.config import document as config_document
from gpuci.errors import ConfigError
from gpuci.execution.directories import keep_newest, new_directory, read_document, write_document, write_text
from gpuci.execution.local import devices, python
from gpuci.execution.local.run import LocalRun, Options
from gpuci.model import Plan, Report, ShardRun
from gpuci.planning import document as plan_document
from gpuci.reporting import document as report_document
from gpuci.reporting import markdown, terminal
from gpuci.reporting.progress import Progress
from gpuci.reporting.text import duration, plural
from gpuci.results.build import build_report
from gpuci_node.contract import EXIT_CODES


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser("run", help="plan the tests and run them on this machine")
    add_tree_arguments(parser)
    add_plan_arguments(parser)
    parser.add_argument("--backend", choices=["local"], default="local", help="where to run (default: local)")
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


@dataclass(frozen=True)
class _Run:
    """A plan with the place where its results go."""

    tree: Tree
    plan: Plan
    out: Path
    name: str
    python: str
    warnings: tuple[str, ...]


def main(args: argparse.Namespace) -> int:
    """Run; the exit code is the verdict's."""
    started = time.monotonic()
    run = _prepare(args)
    setup_seconds = time.monotonic() - started
    shard_runs = _execute(args, run)
    report = build_report(
        run.plan,
        shard_runs,
        seconds=time.monotonic() - started - setup_seconds,
        setup_seconds=setup_seconds,
        warnings=run.warnings,
    )
    _publish(args, run, report)
    return EXIT_CODES[report.verdict]


def _prepare(args: argparse.Namespace) -> _Run:
    tree = load_tree(args)
    plan = _given_plan(args) if args.plan else plan_tests(args, tree, find_tests(tree))
    if args.plan:
        tree = Tree(tree.root, config_document.from_document(plan.config))
    name = time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(2)
    out = new_directory(tree.root, name, args.out)
    write_document(out / "plan.json", plan_document.to_document(plan))
    say(_plan_line(plan))
    for root in plan.roots:
        if root.gpu_isolation != "mask":
            say(f"{root.path}: every test process sees all GPUs ({root.gpu_isolation}: {root.because})")
    chosen, because = python.choose(tree.config.node.python, tree.root)
    say(f"tests run with {chosen} ({because})")
    return _Run(tree, plan, out, name, chosen, tuple(unmatched_packages(tree)))


def _given_plan(args: argparse.Namespace) -> Plan:
    if any((args.shards, args.durations, args.expression, args.packages, args.config, args.event)):
        raise ConfigError(
            "--plan goes without --shards, --durations, --packages, --config, --event and -k",
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


def _execute(args: argparse.Namespace, run: _Run) -> list[ShardRun]:
    config = run.tree.config
    shared_out = devices.share_out(devices.detect(), wanted=_widest(run), asked=args.gpus, jobs=args.jobs)
    if shared_out.pretended and run.plan.shards:
        pretended = plural(len(shared_out.sets[0]), "pretended device")
        say(f"no GPU here: each shard gets {'' if args.gpus else 'up to '}{pretended}")
    if len(run.plan.shards) > args.jobs == 1:
        say("shards run one after another (more at once: --jobs)")
    cpu_workers = config.node.cpu_workers or min(8, os.cpu_count() or 1)
    progress = Progress(run.plan, sys.stderr, environ=os.environ)
    with tempfile.TemporaryDirectory(prefix=f"gpuci-{run.name}-", ignore_cleanup_errors=True) as scratch:
        options = Options(
            run.tree.root,
            run.out,
            run.name,
            run.python,
            shared_out,
            cpu_workers,
            Path(scratch).resolve(),
            whole_sets=args.gpus is not None,
        )
        try:
            return LocalRun(run.plan, config, options, progress).run()
        finally:
            progress.close()


def _widest(run: _Run) -> int:
    profiles: Sequence[str | None] = [shard.profile for shard in run.plan.shards] or [None]
    return max(run.tree.config.profile(profile).gpus for profile in profiles)


def _publish(args: argparse.Namespace, run: _Run, report: Report) -> None:
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
