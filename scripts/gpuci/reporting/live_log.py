"""A shard's records while it runs -> lines for the log of a job, a block per file. Pure.

On GitHub Actions a block is a group, and workflow commands are stopped around everything that tests can
write (docs.github.com, "Workflow commands for GitHub Actions"). Groups are commands too, so stopping and
grouping alternate. Everywhere what tests wrote stands behind a gutter, a line at a time: only that holds for
`##[`, which works anywhere in a line and can't be stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpuci.model import Unit
from gpuci.reporting.summary import label
from gpuci.reporting.text import clean, clip, clip_middle, duration, excerpt, gutter, one_line, plural
from gpuci.results.journal import Record
from gpuci_node.contract import OUTCOMES, RED_OUTCOMES, indexed, selects, worst_outcome

WIDTH = 240
FAILURE_LINES = 20  # of a failing test's output
KEPT_LINES = 200  # that the tests of one file print past pytest's capture
LOOSE_LINES = 20  # that are held back until something else is printed
# Problem matchers of the setup actions: they would make annotations of what tests print.
MATCHERS = (
    "csc", "eslint-compact", "eslint-stylish", "go", "java", "javac", "jest", "msvc", "php", "phpunit",
    "python", "rustc", "tsc",
)  # fmt: skip


def opening(token: str, *, matchers: Iterable[str] = MATCHERS) -> list[str]:
    """Lines before text of tests: what follows is no workflow command until `closing(token)`.

    `token` is random and known to no test; raises ValueError for one that could be met by chance.
    """
    if len(token) < 16 or not (token.isascii() and token.isalnum()):
        raise ValueError("a token that stops commands has at least 16 random letters and digits")
    return [*(f"::remove-matcher owner={owner}::" for owner in matchers), f"::stop-commands::{token}"]


def closing(token: str) -> list[str]:
    """Lines behind text of tests: workflow commands are heard again."""
    return [f"::{token}::"]


@dataclass
class _Block:
    """What is known of a file: which units did not say yet what they hold, and the tests that are due."""

    file: str
    silent: set[str] = field(default_factory=set)
    due: dict[str, None] = field(default_factory=dict)
    running: dict[str, None] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    lines: list[str] = field(default_factory=list)  # not printed yet
    printed_output: int = 0

    @property
    def complete(self) -> bool:
        return not self.silent and not self.running and self.due.keys() <= self.outcomes.keys()

    def end(self, nodeid: str, outcome: str, seconds: float) -> None:
        known = [outcome, *([self.outcomes[nodeid]] if nodeid in self.outcomes else [])]
        self.outcomes[nodeid] = worst_outcome(known)
        self.running.pop(nodeid, None)
        self.seconds += seconds
        self.lines.append(f"{label(outcome):<12} {duration(seconds):>9}  {_name(nodeid)}")

    def output(self, lines: Sequence[str]) -> None:
        """Keep what tests print, up to a limit, which is told once."""
        room = KEPT_LINES - self.printed_output
        self.lines += lines[: max(0, room)]
        if 0 <= room < len(lines):
            self.lines.append(f"(more of what this file's tests print is left out here: {KEPT_LINES} lines)")
        self.printed_output += len(lines)

    def title(self) -> str:
        """`path (1 failed, 2 passed, 3.20 s)`."""
        counts = Counter(self.outcomes.values())
        parts = [f"{counts[name]} {label(name)}" for name in OUTCOMES if counts[name]]
        lost = len(self.due.keys() - self.outcomes.keys())
        parts += [f"{lost} without a result"] if lost else []
        return f"{one_line(self.file)} ({', '.join([*parts, duration(self.seconds)])})"


class LiveLog:
    """Feed it the records of one try of a shard, and print the lines that it returns, in that order.

    `units` are those of the try. `name` says whose records these are (`shard 3`). A `token`, which must be
    random, turns on the form for GitHub Actions. No line is longer than `width` columns.
    """

    def __init__(self, units: Sequence[Unit], *, name: str = "", token: str = "", width: int = WIDTH) -> None:
        self._name = name
        self._token = token
        self._width = width
        self._matchers: Sequence[str] = MATCHERS
        self._units = {unit.id: (unit.file, indexed(unit.select)) for unit in units}
        self._blocks = {unit.file: _Block(unit.file) for unit in units}
        for unit in units:
            self._blocks[unit.file].silent.add(unit.id)
        self._at: dict[str, _Block] = {}  # by slot
        self._loose: list[str] = []

    def feed(self, record: Record) -> list[str]:
        """Take a record as `journal.read_record` gives it; those of other units are ignored."""
        kind = record["kind"]
        if kind == "output":
            return self._output(record)
        if kind in {"job", "note", "verdict"}:
            self._loose += _remark(self._name, record)
            return self.flush()
        unit = record.get("unit")
        if kind not in {"collected", "start", "end"} or unit not in self._units:
            return []
        file, select = self._units[unit]
        block = self._blocks[file]
        lines: list[str] = []
        if kind == "collected":
            block.silent.discard(unit)
            block.due.update((nodeid, None) for nodeid in record["ids"] if selects(select, nodeid))
        elif kind == "start":
            block.running[record["nodeid"]] = None
            self._at[record.get("slot", "")] = block
        else:
            lines = self._end(block, record)
        return [*lines, *(self._print(block) if block.complete and block.lines else [])]

    def flush(self) -> list[str]:
        """What belongs to no file and is held back: call it now and then, so that it is not held for long."""
        loose, self._loose = self._loose, []
        return self._stopped(gutter(loose, self._width)) if loose else []

    def finish(self) -> list[str]:
        """At the end of the job: the blocks of files that are not complete."""
        lines = self.flush()
        for block in self._blocks.values():
            if block.lines or block.running:
                block.lines += [f"{'no result':<12} {'':>9}  {_name(nodeid)}" for nodeid in block.running]
                block.running.clear()
                lines += self._print(block)
        return lines

    def _end(self, block: _Block, record: Record) -> list[str]:
        outcome, nodeid = record["outcome"], record["nodeid"]
        block.end(nodeid, outcome, float(sum(record.get("seconds", {}).values())))
        if "::" not in nodeid:  # the file as a whole
            block.silent.discard(record["unit"])
        if outcome not in RED_OUTCOMES:
            return []
        shown = excerpt(clean(record.get("output", "")), FAILURE_LINES).told()
        message = one_line(record.get("message", ""))
        told = gutter([*([message] if message else []), *shown], self._width)
        return [*self.flush(), *self._stopped([clip(_headline(self._name, record), self._width), *told])]

    def _output(self, record: Record) -> list[str]:
        slot = record.get("slot", "")
        head = f"{one_line(slot)}: " if slot else ""
        lines = [f"{head}{line}" for line in clean(record["text"]).rstrip("\n").split("\n")]
        block = self._at.get(slot)
        if block is not None and block.running:
            block.output(lines)
            return []
        self._loose += lines
        return self.flush() if len(self._loose) >= LOOSE_LINES else []

    def _print(self, block: _Block) -> list[str]:
        """The lines of a block that are not printed yet, as a group."""
        told, block.lines = gutter(block.lines, self._width), []
        title = clip_middle(block.title(), self._width)
        if not self._token:
            return [*self.flush(), title, *told]
        # In a command's data % begins an escape, such as that of a line end.
        head = f"::group::{title.replace('%', '%25')}"
        return [*self.flush(), head, *self._stopped(told), "::endgroup::"]

    def _stopped(self, lines: Sequence[str]) -> list[str]:
        """Lines that tests had a part in."""
        if not self._token:
            return list(lines)
        matchers, self._matchers = self._matchers, ()  # once removed they stay so
        return [*opening(self._token, matchers=matchers), *lines, *closing(self._token)]


def _name(nodeid: str) -> str:
    """What tells a test apart in its file; the file itself has its path."""
    path, _, rest = nodeid.partition("::")
    return one_line(rest or path)


def _headline(name: str, record: Record) -> str:
    """`FAILED shard 3: a.py::test_x[1] (gw3, GPU 3, 1.20 s)`."""
    gpus = record.get("gpus", [])
    devices = f"{'GPU' if len(gpus) == 1 else 'GPUs'} {' '.join(gpus)}" if gpus else ""
    seconds = sum(record.get("seconds", {}).values())
    where = ", ".join(filter(None, [record.get("slot", ""), devices, duration(seconds) if seconds else ""]))
    text = f"{name}: {record['nodeid']}" if name else record["nodeid"]
    outcome = label(record["outcome"]).upper()
    return one_line(f"{outcome} {text} ({where})" if where else f"{outcome} {text}")


def _remark(name: str, record: Record) -> list[str]:
    """What is said of a job as a whole: where it runs, what went wrong, what it came to."""
    if record["kind"] == "job":
        text = f"runs on {record.get('node', 'a node')}, {plural(record.get('slots', 0), 'slot')}"
    elif record["kind"] == "verdict":
        reason = record.get("reason")
        text = label(str(record.get("verdict"))) + (f" ({reason})" if reason else "")
    elif record.get("level") in {"warning", "error"}:
        about = record.get("nodeid", "")
        text = f"{record['level']}: {about + ': ' if about else ''}{record['text']}"
    else:
        return []
    return [one_line(f"{name}: {text}" if name else text)]
