"""How near to the best possible the node's schedule is: random mixes of units, on a virtual clock.

    python3 bench/node_schedule.py [--mixes 500] [--error 0] [--real 20] [--python PYTHON]

Each mix (seeded) has 20 to 120 units of 1, 2, 4 or 8 GPUs, serial and isolated ones, in 1 to 3 roots, with
durations of a heavy tail, for a node of 8 GPUs. The real engine runs it with stub processes that take no
time to start. With --error S a unit takes exp(N(0, S)) times what was expected. The makespan is compared
with a lower bound: what fills the node one after the other, then the greatest of area, longest unit and the
units that can't run side by side (`lower_bound`). The distribution of the ratios is printed. Goal: median
within 8 %.

--real N also runs N of the mixes on this machine, with files that sleep, scaled to a bound of --seconds;
what the processes cost is part of those. Any Python with pytest will do (default: this one).
"""

from __future__ import annotations

import heapq
import random
import statistics
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import node_runs
from bench.node_runs import File

from gpuci_node.supervisor import effects
from gpuci_node.supervisor.engine import Engine

GPUS = 8
KINDS = (("normal", 1), ("normal", 2), ("normal", 4), ("normal", 8), ("isolated", 1), ("serial", 8))
BIN = 0.02  # of the histogram


@dataclass(frozen=True)
class Work:
    """A unit: `seconds` is what it takes, `expected` what the node is told."""

    name: str
    root: str
    mode: str
    gpus: int
    seconds: float
    expected: float

    @property
    def file(self) -> str:
        """Where its test is."""
        return f"{self.root}/test_{self.name}.py"


def main() -> int:
    """Print the distribution on the virtual clock, then the real runs."""
    parser = node_runs.parser(__doc__, needs_torch=False)
    parser.add_argument("--mixes", type=int, default=500)
    parser.add_argument("--error", type=float, default=0.0, metavar="S")
    parser.add_argument("--real", type=int, default=0, metavar="N")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    mixes = [mix(seed, arguments.error) for seed in range(arguments.mixes)]
    ratios = [VirtualNode(works).run() / lower_bound(works) for works in mixes]
    print(f"{len(mixes)} mixes on a virtual clock: makespan / lower bound")
    print("\n".join(distribution(ratios)))
    worst = sorted(range(len(mixes)), key=ratios.__getitem__)[-3:]
    print("  worst: " + ", ".join(f"seed {seed} ({ratios[seed]:.2f})" for seed in reversed(worst)))
    if not arguments.real:
        return 0
    return 0 if really(mixes[: arguments.real], ratios, arguments.python, arguments.seconds) else 1


def mix(seed: int, error: float) -> list[Work]:
    """The units of one mix: how many there are of each kind differs from mix to mix."""
    source = random.Random(seed)
    weights = [source.uniform(4, 10), *(source.uniform(0, 2) for _kind in KINDS[1:])]
    roots = [f"root{number}" for number in range(source.randint(1, 3))]
    works = []
    for number in range(source.randint(20, 120)):
        mode, gpus = source.choices(KINDS, weights)[0]
        expected = source.lognormvariate(2.0, 1.0)
        seconds = expected * source.lognormvariate(0.0, error)
        works.append(Work(str(number), source.choice(roots), mode, gpus, seconds, expected))
    return works


# -- the lower bound -------------------------------------------------------------------------------


def lower_bound(works: Sequence[Work]) -> float:
    """No schedule of these units on 8 GPUs is shorter. Units are rigid and not interrupted."""
    whole = [work for work in works if work.mode == "serial" or work.gpus == GPUS]
    rest = sorted((work for work in works if work not in whole), key=lambda work: -work.seconds)
    area = sum(work.seconds * work.gpus for work in rest) / GPUS
    longest = rest[0].seconds if rest else 0.0
    apart = max(one_after_another([w for w in rest if w.gpus >= least]) for least in (1, 2, 4))
    return sum(work.seconds for work in whole) + max(area, longest, apart)


def one_after_another(longest_first: Sequence[Work]) -> float:
    """Two of the units at the front that are together wider than the node can't overlap in time.

    (If all did, there would be one moment at which all run: intervals of a line that meet in pairs have a
    point in common.) So the makespan is at least the sum of the two shortest of them.
    """
    width = 0
    for place, work in enumerate(longest_first):
        width += work.gpus
        if width > GPUS:
            return longest_first[place].seconds + longest_first[place - 1].seconds
    return 0.0


# -- the virtual clock -----------------------------------------------------------------------------


# What a stub process does: (seconds until it, record); the answer to `next` is sent back. It ends when it
# returns, and waits to be told something where it yields None.
Play = Generator[tuple[float, dict[str, Any]] | None, Any, None]


@dataclass
class Stub:
    """A process; its next record, unless that is its end; what it was told since the last."""

    play: Play
    record: dict[str, Any] | None = None
    told: Any = None
    waits: bool = False


class VirtualNode:
    """The engine with stub processes; all that speaks its protocol is here."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = {work.file: work for work in works}
        self._engine = Engine(job(works))
        self._stubs: dict[str, Stub] = {}
        self._due: list[tuple[float, int, str]] = []
        self._sequence = 0
        self._clock = 0.0

    def run(self) -> float:
        """Run everything; return the makespan in virtual seconds."""
        makespan = 0.0
        self._apply(self._engine.fill(self._clock))
        while not self._engine.finished:
            self._clock, _sequence, name = heapq.heappop(self._due)
            if self._step(name) == "end":
                makespan = self._clock
            self._apply(self._engine.fill(self._clock))
        return makespan

    def _step(self, name: str) -> str:
        """Deliver what a process has to say, its end included; return the kind of the record."""
        record = self._stubs[name].record
        if record is None:
            del self._stubs[name]
            self._apply(self._engine.on_exit(name, effects.Exit(0, None, ""), self._clock))
            return "exit"
        self._apply(self._engine.on_record(name, record, self._clock))
        self._advance(name)
        return str(record["kind"])

    def _advance(self, name: str) -> None:
        stub = self._stubs[name]
        told, stub.told = stub.told, None
        try:
            upcoming = stub.play.send(told)
        except StopIteration:
            upcoming = (0.0, {})
        stub.waits = upcoming is None
        if upcoming is not None:
            after, record = upcoming
            stub.record = record or None
            self._sequence += 1
            heapq.heappush(self._due, (self._clock + after, self._sequence, name))

    def _apply(self, wanted: effects.Effects) -> None:
        for effect in wanted:
            if isinstance(effect, effects.Start):
                self._stubs[effect.id] = Stub(self._play(effect))
                self._advance(effect.id)
            elif isinstance(effect, effects.Tell):
                self._stubs[effect.id].told = effect.message
                if self._stubs[effect.id].waits:
                    self._advance(effect.id)
            elif not isinstance(effect, effects.Write):
                raise SystemExit(f"the engine wants {effect} of a process that does as it is told")

    def _play(self, start: effects.Start) -> Play:
        spec = start.spec
        if spec["role"] == "worker":
            forked_from_template = start.parent is not None and not start.parent.startswith("base")
            yield from self._worker(spec, collects=not forked_from_template)
            return
        if spec["role"] == "template":
            yield from self._collect(spec["files"])
        yield 0.0, {"kind": "ready", "findings": []}
        yield None

    def _collect(self, files: Sequence[str]) -> Play:
        for file in files:
            fields: dict[str, Any] = {"marks": {}, "deselected": [], "errors": [], "skipped": []}
            yield 0.0, {"kind": "collected", "file": file, "ids": [f"{file}::test_sleeps"], **fields}

    def _worker(self, spec: dict[str, Any], collects: bool) -> Play:
        """One unit after the other: its only test, before whose end the next unit is asked for."""
        if collects:
            yield from self._collect(spec["files"])
        unit = spec["unit"]
        while unit is not None:
            task, file, answer = unit["task"], unit["file"], None
            test = {"task": task, "nodeid": f"{file}::test_sleeps"}
            yield 0.0, {"kind": "start", **test, "timeout": 1e9, "file": file, "line": 1}
            if spec["more"]:
                answer = yield self._works[file].seconds, {"kind": "next"}
            after = 0.0 if spec["more"] else self._works[file].seconds
            yield after, {"kind": "end", **test, "outcome": "passed", "message": ""}
            unit = (answer or {}).get("unit")


def job(works: Sequence[Work]) -> dict[str, Any]:
    """What the node is told of a mix: the document that a real run gets."""
    return node_runs.job_document(files_of(works), gpus=GPUS)


def files_of(works: Sequence[Work]) -> list[File]:
    """The units as test files that sleep."""
    text = "import time\ndef test_sleeps(): time.sleep({:.3f})\n"
    return [
        File(work.file, text.format(work.seconds), work.mode, work.gpus, work.expected, work.root)
        for work in works
    ]


# -- for real --------------------------------------------------------------------------------------


def really(mixes: Sequence[Sequence[Work]], virtual: Sequence[float], python: str, seconds: float) -> bool:
    """Run mixes with sleeping files, each scaled to a bound of so many seconds; whether each was right."""
    print(f"\nfor real, {seconds:g} s each: units, wall time / bound (on the virtual clock)")
    ratios = []
    for works, expected in zip(mixes, virtual, strict=False):
        scale = seconds / lower_bound(works)
        scaled = [
            replace(work, seconds=work.seconds * scale, expected=work.expected * scale) for work in works
        ]
        files = files_of(scaled)
        with node_runs.tree(files, {}) as root:
            ran = node_runs.on_node(root, files, python, gpus=GPUS)
        if ran.count("passed") != len(works) or ran.seconds < seconds:
            print(f"  {len(works):4} units  NO FIGURE: {ran.count('passed')} passed in {ran.seconds:.2f} s")
            continue
        ratios.append(ran.seconds / seconds)
        print(f"  {len(works):4} units  {ratios[-1]:.3f}  ({expected:.3f})", flush=True)
    if ratios:
        print(f"  median of {len(ratios)}: {statistics.median(ratios):.3f}")
    return len(ratios) == len(mixes)


# -- the table -------------------------------------------------------------------------------------


def distribution(ratios: Sequence[float]) -> list[str]:
    """Quantiles, and a histogram of text."""
    tenths = statistics.quantiles(ratios, n=10, method="inclusive")
    marks = (("min", min(ratios)), ("10 %", tenths[0]), ("median", tenths[4]), ("90 %", tenths[8]))
    lines = ["  " + "  ".join(f"{name} {value:.3f}" for name, value in (*marks, ("max", max(ratios))))]
    bins: dict[int, int] = {}
    for ratio in ratios:
        place = int((ratio - 1.0) / BIN + 1e-9)
        bins[place] = bins.get(place, 0) + 1
    most = max(bins.values())
    for place in range(max(bins) + 1):
        number = bins.get(place, 0)
        bar = "#" * round(50 * number / most)
        lines.append(f"  {1 + place * BIN:.2f} to {1 + (place + 1) * BIN:.2f} {number:5} {bar}".rstrip())
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
