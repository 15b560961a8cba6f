"""Behind scripts/run_gpu_shard.py: shards of a plan as jobs of a cluster, their logs on standard output."""

from __future__ import annotations

import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

from gpuci.commands.backends import delivery_notes, login_of
from gpuci.commands.output import complain, say, short, show
from gpuci.commands.shard_input import ShardInput, read
from gpuci.config import document as config_document
from gpuci.config.model import Config
from gpuci.errors import ConfigError, GpuciError
from gpuci.execution.delivery.archive import Archive, archive
from gpuci.execution.delivery.snapshot import committed, snapshot
from gpuci.execution.directories import new_directory, read_document, write_document
from gpuci.execution.slurm import names
from gpuci.execution.slurm.check import check as check_jobs
from gpuci.execution.slurm.clean_up import clean_up
from gpuci.execution.slurm.launch import Identity
from gpuci.execution.slurm.registry import registry_credential
from gpuci.execution.slurm.run import Options, SlurmRun
from gpuci.execution.transport.connection import Connection
from gpuci.model import Plan, ShardRun, ShardState
from gpuci.planning import document as plan_document
from gpuci.reporting import document as report_document
from gpuci.reporting import terminal
from gpuci.reporting.heartbeat import Heartbeat
from gpuci.reporting.live_log import LiveLog
from gpuci.results.build import build_report
from gpuci.results.verdict import shard_name
from gpuci_node.contract import EXIT_CODES

_TRIES = (1, 2)


class LogPrinter:
    """Shows what shards do: their logs, a heartbeat, what Slurm says."""

    def __init__(self, plan: Plan, on_actions: bool) -> None:
        units = {unit.id: unit for unit in plan.units}
        token = secrets.token_hex(16) if on_actions else ""
        self._logs = {
            shard.index: LiveLog(
                [units[unit] for unit in shard.units], name=shard_name(shard.index), token=token
            )
            for shard in plan.shards
        }
        self._heartbeat = Heartbeat(plan)

    def feed(self, shard: int, record: dict[str, Any]) -> None:
        """A record of a shard."""
        self._heartbeat.feed(shard, record)
        self._print(self._logs[shard].feed(record))

    def state(self, shard: int, state: ShardState) -> None:
        """What Slurm says of a shard."""
        self._heartbeat.state(shard, state)

    def tick(self, now: float) -> None:
        """Time went by (epoch seconds)."""
        line = self._heartbeat.tick(now)
        if line:
            self._print([text for log in self._logs.values() for text in log.flush()])
            self._print([line])

    def close(self) -> None:
        """What is left to show."""
        for log in self._logs.values():
            self._print(log.finish())

    def _print(self, lines: list[str]) -> None:
        if lines:
            show("".join(f"{line}\n" for line in lines))


def run(environ: dict[str, str]) -> int:
    """Run the shards; the exit code is their verdict's.

    Raises GpuciError for input that makes no sense. From there on there is a report, whatever happens: who
    reads the results of all shards has to know what became of this one.
    """
    given = read(environ)
    started = time.monotonic()
    plan, config = _plan_and_config(given)
    out = new_directory(Path(given.out), "", given.out)
    printer = LogPrinter(plan, given.on_actions)
    notes: list[str] = []
    try:
        runs = _execute(given, plan, config, out, printer, environ, notes)
    except GpuciError as error:
        complain(error)
        runs = never_began(plan, error.verdict, error.what)
    except KeyboardInterrupt:  # SlurmRun takes signals itself
        runs = never_began(plan, "cancelled", "the run was stopped before it began")
    printer.close()
    seconds = time.monotonic() - started
    report = build_report(plan, runs, seconds=seconds, setup_seconds=0.0, elsewhere=True, warnings=notes)
    write_document(out / "report.json", report_document.to_document(report))
    show(terminal.render(report, width=100, colour=False))
    say(f"{report.verdict.replace('_', ' ')}; results: {short(out)}")
    return EXIT_CODES[report.verdict]


def never_began(plan: Plan, verdict: str, reason: str) -> list[ShardRun]:
    """What there is to report of shards when the cluster could not be used at all."""
    return [ShardRun(shard.index, (), {"verdict": verdict, "reason": reason}) for shard in plan.shards]


def clean(environ: dict[str, str]) -> int:
    """For a step that always runs: end what is left of these shards, by their names alone."""
    given = read({"GPUCI_OUT": "-", "GPUCI_TREE": "-", **environ})
    plan, config = _plan_and_config(given)
    indices = [shard.index for shard in plan.shards]
    all_names = [
        names.job_name(given.repository, given.run, given.attempt, index, number)
        for index in indices
        for number in _TRIES
    ]
    with tempfile.TemporaryDirectory(prefix="gpuci-") as scratch:
        login = login_of(config, Path.cwd(), environ)
        with Connection(login, Path(scratch), say) as connection:
            done = clean_up(connection, config.slurm["shared-dir"], all_names, say)
    return EXIT_CODES["passed" if done else "infra"]


def _plan_and_config(given: ShardInput) -> tuple[Plan, Config]:
    """The plan, with nothing but the shards that are ours."""
    plan = plan_document.from_document(read_document(Path(given.plan), then="run calculate-shards first"))
    config = config_document.from_document(plan.config)
    if not given.shard:
        return plan, config
    if given.shard not in {shard.index for shard in plan.shards}:
        raise ConfigError(f"there is no shard {given.shard}: the plan has {len(plan.shards)}")
    return plan.only(given.shard), config


def _execute(
    given: ShardInput,
    plan: Plan,
    config: Config,
    out: Path,
    printer: LogPrinter,
    environ: dict[str, str],
    notes: list[str],
) -> list[ShardRun]:
    """What is to be said of the tree goes to `notes` before anything can fail at the cluster."""
    identity = Identity(
        given.repository, given.run, given.attempt, given.sha or plan.sha or "", given.approver
    )
    check_jobs(config)
    with tempfile.TemporaryDirectory(prefix="gpuci-", ignore_cleanup_errors=True) as scratch:
        packed = _archive(given, plan, Path(scratch), notes)
        options = Options(
            out, identity, tuple(shard.index for shard in plan.shards), registry_credential(config)
        )
        connection = Connection(login_of(config, Path.cwd(), environ), Path(scratch), say)
        return SlurmRun(plan, config, options, connection, printer, say).run(packed)


def _archive(given: ShardInput, plan: Plan, scratch: Path, notes: list[str]) -> Archive:
    tree = Path(given.tree)
    taken = committed(tree, given.sha, given.subdirectory) if given.sha else snapshot(tree, scratch)
    packed = archive(taken, scratch / "tree.tar")
    notes += delivery_notes(taken, packed, plan)
    for note in notes:
        say(note)
    return packed
