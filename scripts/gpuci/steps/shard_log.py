"""What shards do while they run, as lines on standard output: their logs, and how far they are."""

from __future__ import annotations

import secrets
from typing import Any

from gpuci.commands.output import show_log
from gpuci.model import Plan, ShardState
from gpuci.reporting.heartbeat import Heartbeat
from gpuci.reporting.live_log import LiveLog
from gpuci.results.verdict import shard_name


class LogPrinter:
    """Listens to a run. `on_actions`: in the form for GitHub Actions, where no test can give a command."""

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
            show_log(lines)
