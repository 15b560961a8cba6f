"""Behind scripts/run_gpu_shard.py: shards of a plan as jobs of a cluster, their logs on standard output.

Standard library only: the plan carries the resolved configuration.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuci.commands.backends import delivery_notes, login_of
from gpuci.commands.output import complain, say, short, show
from gpuci.config.model import Config
from gpuci.errors import GpuciError
from gpuci.execution.delivery.archive import Archive, archive
from gpuci.execution.delivery.snapshot import Snapshot, committed, snapshot
from gpuci.execution.directories import new_directory, write_document
from gpuci.execution.slurm.check import check as check_jobs
from gpuci.execution.slurm.interrupts import Interrupts
from gpuci.execution.slurm.launch import Identity
from gpuci.execution.slurm.limits import limits_of
from gpuci.execution.slurm.registry import registry_credential
from gpuci.execution.slurm.run import Options, SlurmRun
from gpuci.execution.transport.connection import Connection
from gpuci.github.step import Step
from gpuci.model import Plan, Report, ShardRun
from gpuci.reporting import document as report_document
from gpuci.reporting import shard_text, terminal
from gpuci.repository.fetch import Repository
from gpuci.results import runs_document
from gpuci.results.build import build_report
from gpuci.steps import shard_input
from gpuci.steps.admission import approver
from gpuci.steps.shard_input import ShardInput
from gpuci.steps.shard_log import LogPrinter
from gpuci.steps.shard_plan import plan_and_config, with_secrets
from gpuci_node.contract import EXIT_CODES

VARIABLES = shard_input.VARIABLES


@dataclass
class _Work:
    """What is to be run, and what is to be said of it at the end."""

    step: Step
    given: ShardInput
    environ: Mapping[str, str]
    plan: Plan
    config: Config
    out: Path
    notes: list[str] = field(default_factory=list)
    nothing_left: bool = True  # on the cluster, as far as is known


def run(step: Step) -> int:
    """Run the shards; the exit code is their verdict's.

    Raises GpuciError for input that makes no sense. From there on there is a report, whatever happens: who
    reads the results of all shards has to know what became of this one.
    """
    environ = with_secrets(step)
    given = shard_input.read(environ)
    started = time.monotonic()
    plan, config = plan_and_config(given)
    work = _Work(step, given, environ, plan, config, new_directory(Path(given.out), "", given.out))
    runs = _runs(work)
    with Interrupts():  # what is left takes moments, and a second signal must not cost the report
        report = build_report(
            plan,
            runs,
            seconds=time.monotonic() - started,
            setup_seconds=0.0,
            elsewhere=True,
            warnings=work.notes,
            part=bool(given.shard),
        )
        _leave(work, runs, report)
    return EXIT_CODES[report.verdict]


def never_began(plan: Plan, verdict: str, reason: str) -> list[ShardRun]:
    """What there is to report of shards when the cluster could not be used at all."""
    return [ShardRun(shard.index, (), {"verdict": verdict, "reason": reason}) for shard in plan.shards]


def _runs(work: _Work) -> list[ShardRun]:
    printer = LogPrinter(work.plan, work.given.on_actions)
    try:
        return _execute(work, printer)
    except GpuciError as error:
        _complain(work.step, error)
        return never_began(work.plan, error.verdict, error.what)
    except KeyboardInterrupt:  # SlurmRun takes signals itself
        return never_began(work.plan, "cancelled", "the run was stopped before it began")
    finally:
        printer.close()


def _complain(step: Step, error: GpuciError) -> None:
    complain(error)
    if step.on_actions:
        step.error(error.words(), title="gpuci run-gpu-shard")


def _execute(work: _Work, printer: LogPrinter) -> list[ShardRun]:
    """What is to be said of the tree goes to `notes` before anything can fail at the cluster."""
    given, plan, config = work.given, work.plan, work.config
    check_jobs(config)
    who = approver(work.step, given.event, given.sha)
    identity = Identity(given.repository, given.run, given.attempt, given.sha or plan.sha or "", who)
    say(shard_text.limits(limits_of(plan, config)))
    with tempfile.TemporaryDirectory(prefix="gpuci-", ignore_cleanup_errors=True) as scratch:
        packed = _archive(work, Path(scratch))
        options = Options(
            work.out, identity, tuple(shard.index for shard in plan.shards), registry_credential(config)
        )
        connection = Connection(login_of(config, Path.cwd(), work.environ), Path(scratch), say)
        running = SlurmRun(plan, config, options, connection, printer, say)
        try:
            return running.run(packed)
        finally:
            work.nothing_left = running.nothing_left


def _archive(work: _Work, scratch: Path) -> Archive:
    taken = _taken(work, scratch)
    packed = archive(taken, scratch / "tree.tar")
    work.notes += delivery_notes(taken, packed, work.plan)
    for note in work.notes:
        say(note)
    return packed


def _taken(work: _Work, scratch: Path) -> Snapshot:
    """The tree to deliver: a directory as it lies there, or a commit, which is fetched if it isn't here."""
    given = work.given
    if not given.sha:
        return snapshot(Path(given.tree), scratch)
    if given.tree:
        return committed(Path(given.tree), given.sha, given.root)
    repository = Repository(scratch / "repository", say=say)
    repository.fetch(f"{given.server_url}/{given.repository}", work.step.secret("TOKEN"), [given.sha])
    return committed(repository.directory, given.sha, given.root)


def _leave(work: _Work, runs: list[ShardRun], report: Report) -> None:
    """Files for who puts all shards together; the log, the summary and the outputs for people."""
    sha = work.given.sha or work.plan.sha
    write_document(work.out / "runs.json", runs_document.to_document(sha, runs))
    write_document(work.out / "report.json", report_document.to_document(report))
    show(terminal.render(report, width=100, colour=False))
    if not work.step.on_actions:  # nobody can open a runner's files, and the verdict stands above
        say(f"{report.verdict.replace('_', ' ')}; results: {short(work.out)}")
    else:
        work.step.summary(shard_text.markdown(report))
        work.step.output("verdict", report.verdict)
        work.step.output("nothing-left", "true" if work.nothing_left else "false")
