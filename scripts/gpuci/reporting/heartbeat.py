"""The state of many shards in one line of a log, now and then. Pure; the clock is passed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuci.model import Plan, ShardState
from gpuci.reporting.bars import ShardProgress, shards_of
from gpuci.reporting.summary import label
from gpuci.reporting.text import about, clip, clip_middle, duration, one_line, width_of
from gpuci.results.journal import Record
from gpuci.results.verdict import shard_names

WIDTH = 160
EVERY_SECONDS = 30.0
SOONEST_SECONDS = 5.0  # between two lines, however much changes
_NAME_WIDTH = 20
PHASES = ("running", "waiting", "submitted", "ended", "planned")


def words(state: ShardState, now: float) -> str:
    """`waiting (Resources) 4 min`, `running on gpu003`, `passed`; one clean line."""
    text = one_line(state.text)
    if state.phase == "running":
        return f"running on {text}" if text else "running"
    if state.phase == "ended":
        return label(text) or "ended"
    took = "" if state.since is None else f" {about(max(0.0, now - state.since))}"
    return f"{state.phase} ({text}){took}" if text else f"{state.phase}{took}"


@dataclass
class _Group:
    """Shards in one state, which is told once, as that of the one that is in it longest."""

    state: ShardState
    indexes: list[int] = field(default_factory=list)


class Heartbeat:
    """Feed it records and states, ask it with each tick for a line: empty most of the time.

    A line comes each 30 seconds, and soon after a shard changed its state. It has at most `width` columns,
    and nothing in it is a command or moves a cursor.
    """

    def __init__(self, plan: Plan, *, elsewhere: bool = False, width: int = WIDTH) -> None:
        """`elsewhere`: the cpu units do not run here."""
        self._shards = {shard.index: shard for shard in shards_of(plan, elsewhere=elsewhere)}
        self._states = dict.fromkeys(self._shards, ShardState())
        self._width = width
        self._last: float | None = None
        self._changed = False

    def feed(self, shard: int, record: Record) -> None:
        """Take a record of a shard's journal, as `journal.read_record` gives it."""
        if shard in self._shards:
            self._shards[shard].feed(record)

    def state(self, shard: int, state: ShardState) -> None:
        """A shard is in this state now."""
        before = self._states.get(shard)
        if before is None:
            return
        self._states[shard] = state
        self._changed |= (before.phase, before.text) != (state.phase, state.text)
        if state.phase != "running":
            self._shards[shard].pause("")

    def tick(self, now: float) -> str:
        """The line that is due at this time (epoch seconds, which may jump), or nothing."""
        if self._last is None:
            self._last = now - EVERY_SECONDS if self._changed else now
        passed = abs(now - self._last)
        if passed < (SOONEST_SECONDS if self._changed else EVERY_SECONDS):
            return ""
        self._last, self._changed = now, False
        return self.line(now)

    def line(self, now: float) -> str:
        """`96/512 tests, 3 failed; 4-11 running; 1-3 waiting (Priority) 4 min; 12 passed; longest ...`."""
        shards = self._shards.values()
        red = sum(shard.red for shard in shards)
        head = f"{sum(shard.done for shard in shards)}/{sum(shard.total for shard in shards)} tests"
        parts = [f"{head}, {red} failed" if red else head]
        parts += [
            f"{shard_names(group.indexes)} {words(group.state, now)}" for group in _groups(self._states)
        ]
        line = clip("; ".join(parts), self._width)
        return line + _longest(shards, now, self._width - width_of(line))


def _groups(states: Mapping[int, ShardState]) -> list[_Group]:
    """Shards in the same state, in the order of PHASES; nodes are told apart only where there is one."""
    groups: dict[tuple[str, str], _Group] = {}
    for index, state in sorted(states.items(), key=lambda entry: (entry[0] == 0, entry[0])):
        key = (state.phase, "" if state.phase == "running" else state.text)
        group = groups.setdefault(key, _Group(state))
        group.indexes.append(index)
        if len(group.indexes) > 1:
            known = [each.since for each in (group.state, state) if each.since is not None]
            group.state = ShardState(*key, min(known, default=None))
    return sorted(groups.values(), key=lambda group: PHASES.index(group.state.phase))


def _longest(shards: Iterable[ShardProgress], now: float, room: int) -> str:
    """The test that runs longest, if there is room for it: the end of a line."""
    running = [longest for longest in (shard.longest for shard in shards) if longest is not None]
    if not running:
        return ""
    nodeid, began = min(running, key=lambda entry: entry[1])
    head, took = "; longest ", f" {duration(max(0.0, now - began))}"
    left = room - len(head) - len(took)
    if left < _NAME_WIDTH:
        return ""
    return f"{head}{clip_middle(one_line(nodeid), left)}{took}"
