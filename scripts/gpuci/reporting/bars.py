"""The state of a running shard and its line of progress. Pure; the clock is passed in."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpuci.model import Plan
from gpuci.reporting.text import about, clip, clip_middle, duration, one_line, width_of
from gpuci.results.journal import is_number
from gpuci.results.ownership import CPU_POOL, Ownership
from gpuci.results.verdict import shard_name
from gpuci_node.contract import RED_OUTCOMES, selects, worst_outcome

BAR = 20
_NAME_WIDTH = 12
# Below this share of finished tests the plan's figure is the better estimate.
_TRUSTED_SHARE = 0.1


class _Failure(NamedTuple):
    """A test that failed, for one line."""

    nodeid: str
    outcome: str
    message: str

    def line(self, shard: str, width: int) -> str:
        """The end of a node id is what tells tests apart, so it is kept; then what fits of the message."""
        head = f"{self.outcome.upper().replace('_', ' ')} ({shard}) "
        name = head + clip_middle(one_line(self.nodeid), width - len(head))
        message = one_line(self.message)
        return clip(f"{name}: {message}" if message and width_of(name) + 3 < width else name, width)


class ShardProgress:
    """What is known of one shard: fed with records of its journal, asked for a line of text.

    `units` are the units that the shard runs, `expected_seconds` is the plan's figure for it.
    """

    def __init__(self, index: int, units: tuple[str, ...], expected_seconds: float, own: Ownership) -> None:
        self.index = index
        self.expected_seconds = expected_seconds
        self.began: float | None = None
        self._own = own
        self._tests = {unit: own.units[unit].tests for unit in units}
        self._ended: dict[str, str] = {}
        self._running: dict[str, float] = {}
        self._failures: list[_Failure] = []
        self._state = ""

    def pause(self, state: str) -> None:
        """Nothing runs now, `state` says why (`waiting (Resources)`); until the next job begins."""
        self._state = one_line(state)
        self._running.clear()

    @property
    def done(self) -> int:
        """Tests that ended."""
        return len(self._ended)

    @property
    def total(self) -> int:
        """Tests of the shard: planned ones until their file is collected, then the real ones."""
        return max(sum(self._tests.values()), self.done)

    @property
    def red(self) -> int:
        """Tests that failed so far."""
        return sum(outcome in RED_OUTCOMES for outcome in self._ended.values())

    @property
    def running(self) -> int:
        """Tests that run now."""
        return len(self._running)

    @property
    def longest(self) -> tuple[str, float] | None:
        """The test that runs longest now, and when it began."""
        return min(self._running.items(), key=lambda item: item[1], default=None)

    def feed(self, record: dict[str, Any]) -> None:
        """Take one record (as `journal.read_record` gives it); those of other shards' units are ignored."""
        if self.began is None and is_number(record.get("t")):
            self.began = record["t"]
        kind, unit = record["kind"], record.get("unit")
        if kind == "job":  # a new try: what ran in the last one does not run any more
            self.pause("")
        if not isinstance(unit, str) or unit not in self._tests:
            return
        if kind == "collected":
            select = self._own.selects[unit]
            self._tests[unit] = sum(selects(select, nodeid) for nodeid in record["ids"])
        elif kind == "start":
            self._running[record["nodeid"]] = record.get("t", 0.0)
        elif kind == "end":
            self._end(record["nodeid"], record)

    def _end(self, nodeid: str, record: dict[str, Any]) -> None:
        self._running.pop(nodeid, None)
        outcome = record["outcome"]
        before = self._ended.get(nodeid)
        self._ended[nodeid] = outcome if before is None else worst_outcome([before, outcome])
        if "::" not in nodeid:  # the file as a whole: it stands for all tests of the unit
            self._tests[record["unit"]] = 1
        if outcome in RED_OUTCOMES and before not in RED_OUTCOMES:
            self._failures.append(_Failure(nodeid, outcome, record.get("message", "")))

    def take_failures(self, width: int) -> list[str]:
        """One clean line of at most `width` columns for each test that failed since the last call."""
        taken, self._failures = self._failures, []
        return [failure.line(shard_name(self.index), width) for failure in taken]

    def seconds_left(self, now: float) -> float | None:
        """An estimate: the pace so far, the plan's figure at first; None if nothing can be said."""
        if self.began is None or self._state or self.done >= self.total:
            return None
        elapsed = max(0.0, now - self.began)
        if self.done < _TRUSTED_SHARE * self.total:
            left = self.expected_seconds - elapsed
            return left if left > 0 else None
        return elapsed * (self.total - self.done) / self.done

    def counts(self, now: float) -> list[str]:
        """The parts of a line in words, most important first: `2 failed`, `8 running`, `est. 12 s left`."""
        left = self.seconds_left(now)
        parts = [
            self._state,
            f"{self.red} failed" if self.red else "",
            f"{self.running} running" if self.running else "",
            f"est. {about(left)} left" if left is not None else "",
            "waiting" if self.began is None and not self._state else "",
        ]
        return [part for part in parts if part]

    def line(self, now: float, width: int) -> str:
        """One line of at most `width` columns; what does not fit is left out, the last part first."""
        share = self.done / self.total if self.total else 0.0
        size = min(BAR, max(0, width - 24))
        filled = int(share * size)
        bar = f" [{'=' * filled}{' ' * (size - filled)}]" if size >= 4 else ""
        line = f"{shard_name(self.index):<8}{bar} {f'{self.done}/{self.total}':>9}"[:width]
        for part in self.counts(now):
            if len(line) + 2 + len(part) <= width:
                line = f"{line}  {part}"
        return line + self._longest_running(now, width - len(line))

    def _longest_running(self, now: float, room: int) -> str:
        """The test that runs longest now, if there is room for it."""
        longest = self.longest
        if longest is None:
            return ""
        nodeid, began = longest
        took = duration(max(0.0, now - began))
        left = room - len(took) - 4
        if left < _NAME_WIDTH:
            return ""
        name = clip_middle(one_line(nodeid), left)
        return f"  {name}  {took}" if width_of(name) <= left else ""


def shards_of(plan: Plan, *, elsewhere: bool = False) -> list[ShardProgress]:
    """The shards of a plan, and its cpu pool if that does not run elsewhere."""
    own = Ownership(plan)
    shards = [ShardProgress(shard.index, shard.units, shard.expected_seconds, own) for shard in plan.shards]
    if plan.cpu_units and not elsewhere:
        longest = max(own.units[unit].expected_seconds for unit in plan.cpu_units)
        shards.append(ShardProgress(CPU_POOL, plan.cpu_units, longest, own))
    return shards
