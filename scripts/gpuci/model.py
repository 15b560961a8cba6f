"""The values that flow between the stages. Pure; JSON forms are in `documents.py`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from gpuci_node.contract import Select


@dataclass(frozen=True)
class Marker:
    """A mark as read from source. Arguments are source text; `line` is that of the definition it is on."""

    name: str
    args: tuple[str, ...] = ()
    kwargs: tuple[tuple[str, str], ...] = ()
    line: int = 0
    some: bool = False  # holds for some parameters only (`pytest.param(…, marks=…)`)


@dataclass(frozen=True)
class TestTarget:
    """A test function or method as read from source.

    `nodeid` is ROOT-relative, without parameters. `test_class` is `A` or `A::B`. `kind` is the
    document's `class`: cpu, gpu, either or unknown. `gpus` is the number of GPUs it needs (0: none).
    `opaque` says why the reading is not certain. `skip` says why it is not run, or is None.
    """

    __test__ = False  # keeps pytest from collecting it

    nodeid: str
    test_path: str
    test_class: str | None
    test_function: str | None
    test_method: str | None
    root: str
    line: int = 0
    run_mode: str = "normal"
    runs_on: str | None = None
    skip: str | None = None
    gpus: int = 1
    kind: str = "unknown"
    timeout: float | None = None
    markers: tuple[Marker, ...] = ()
    opaque: str | None = None


@dataclass(frozen=True)
class Root:
    """A directory that pytest treats as its own.

    `path` is ROOT-relative ("." is ROOT). `config_file` is ROOT-relative or None. `args` are the
    directories, relative to the root, that pytest is given; empty: its own default (testpaths).
    `files` are ROOT-relative test files in pytest's order. `opaque` maps a file to the reason why it
    is planned whole. `gpu_isolation` is "mask" or "worker-index", `because` says why.
    """

    path: str
    config_file: str | None = None
    args: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    opaque: dict[str, str] = field(default_factory=dict)
    gpu_isolation: str = "mask"
    because: str = ""


@dataclass(frozen=True)
class SourceError:
    """A file that can't be read as Python. It is still planned: pytest will report it."""

    path: str
    line: int
    message: str


@dataclass(frozen=True)
class Manifest:
    """Everything that discovery found, in a stable order."""

    targets: tuple[TestTarget, ...] = ()
    roots: tuple[Root, ...] = ()
    errors: tuple[SourceError, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All test files, root by root."""
        return tuple(path for root in self.roots for path in root.files)


@dataclass(frozen=True)
class Unit:
    """The smallest thing a node starts: the tests of a file that share (mode, GPUs, profile), or some."""

    id: str
    root: str
    file: str
    select: Select
    mode: str
    gpus: int
    profile: str
    expected_seconds: float
    timeout_seconds: float
    tests: int = 0
    longest_timeout_seconds: float = 0.0  # that a mark gives a test of its file, 0: none

    @property
    def longest_test_seconds(self) -> float:
        """No test of it may take longer, as far as source tells."""
        return max(self.timeout_seconds, self.longest_timeout_seconds)


@dataclass(frozen=True)
class Shard:
    """The units that one Slurm job runs; `index` counts from 1."""

    index: int
    profile: str
    units: tuple[str, ...]
    expected_seconds: float


@dataclass(frozen=True)
class SkippedTest:
    """A test that the plan leaves out, and why; reported as `skipped`."""

    nodeid: str
    because: str


@dataclass(frozen=True)
class LearnedNeed:
    """What a node found out of a test: it needs `gpus` GPUs (1 or more), and with `alone` the whole node.

    `because` says how that was seen. `mark` is the mark that asks for it, empty if the test skipped on fewer
    GPUs and ran on these. `planned` is the number that the plan of the run had given it, None if that plan
    knew the need.
    """

    gpus: int
    alone: bool = False
    because: str = ""
    mark: str = ""
    planned: int | None = None


@dataclass(frozen=True)
class Plan:
    """All shards of a run, with the resolved configuration (no secret in it).

    `needs` are those that earlier runs learned of tests in its files, by function id or node id.
    """

    config: dict[str, Any]
    sha: str | None
    event: str
    roots: tuple[Root, ...]
    targets: tuple[str, ...]
    units: tuple[Unit, ...]
    shards: tuple[Shard, ...]
    cpu_units: tuple[str, ...]
    skipped: tuple[SkippedTest, ...]
    makespan_seconds: float
    lower_bound_seconds: float
    unknown_durations: int
    notes: tuple[str, ...] = ()
    needs: dict[str, LearnedNeed] = field(default_factory=dict)

    def shard(self, index: int) -> Shard:
        """The shard of that index; raises KeyError."""
        return {shard.index: shard for shard in self.shards}[index]

    def only(self, index: int) -> Plan:
        """The plan of one shard alone, what other jobs do left out; raises KeyError."""
        shard = self.shard(index)
        units = tuple(unit for unit in self.units if unit.id in shard.units)
        return replace(self, shards=(shard,), units=units, cpu_units=(), skipped=())


@dataclass(frozen=True)
class TestResult:
    """What became of a node id.

    `seconds`: set-up, call and teardown. `shard`: an index, 0: the cpu pool. `peak_memory_bytes`: of GPUs,
    added up over the devices; it and `cuda_used` are None where the node could not tell.
    """

    __test__ = False

    nodeid: str
    outcome: str
    seconds: float = 0.0
    shard: int | None = None
    attempt: int = 1
    slot: str | None = None
    gpus: tuple[str, ...] = ()
    file: str = ""
    line: int | None = None
    message: str = ""
    output: str = ""
    unplanned: bool = False
    peak_memory_bytes: int | None = None
    cuda_used: bool | None = None


@dataclass(frozen=True)
class ShardRun:
    """One try of one shard as its backend saw it.

    `index` 0 is the cpu pool. `records` are the journal's (or, when it is lost, the log's frames).
    `verdict` is the document verdict.json, or None if the node never wrote one. `problem` says what is
    wrong with the channel (journal and verdict disagree, disk full), or is empty. `node` is its name, for
    nodes that died before they said it. `fate` is the verdict that counts in place of the node's, because
    the backend knows better (`preempted`, `queue_timeout`), with its `reason`; empty: the node's counts.
    """

    index: int
    records: tuple[dict[str, Any], ...]
    verdict: dict[str, Any] | None
    wall_seconds: float = 0.0
    queue_seconds: float = 0.0
    attempt: int = 1
    problem: str = ""
    node: str = ""
    fate: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ShardState:
    """Where a shard is while a backend has it: `phase`, since when (epoch seconds), and a word more about it.

    Phases: planned, submitted, waiting, running, ended. `text` is the queue's reason while it waits, the node
    while it runs, the verdict when it ended.
    """

    phase: str = "planned"
    text: str = ""
    since: float | None = None


@dataclass(frozen=True)
class TryReport:
    """What one try of a shard came to. `tests` is the number of tests whose result it brought."""

    attempt: int
    verdict: str
    reason: str = ""
    node: str = ""
    wall_seconds: float = 0.0
    queue_seconds: float = 0.0
    tests: int = 0


@dataclass(frozen=True)
class ShardReport:
    """A row of the report's shard table. Times in seconds; GPU-seconds are slots x time.

    `history` are all tries, the last one too. `rescued` is the number of tests whose first result came from a
    try behind the first. `gpus` is the number of GPUs that its job has for itself while it runs.
    """

    index: int
    verdict: str
    planned_seconds: float
    wall_seconds: float
    queue_seconds: float = 0.0
    tries: int = 1
    node: str = ""
    tests: int = 0
    gpu_seconds_used: float = 0.0
    gpu_seconds_idle: float = 0.0
    reason: str = ""
    history: tuple[TryReport, ...] = ()
    rescued: int = 0
    gpus: int = 0


@dataclass(frozen=True)
class Report:
    """The result of a run: what report.json holds and every rendering shows.

    `needs` is what nodes learned, in this run and before it, by function id or node id. `coverage` are the
    data files that pytest-cov left, relative to the run's directory. `notes` say what made a run slower than
    it could be, and changed no result. `usd_per_gpu_hour` is the configured price of a GPU, None: no price.
    `earlier_gpu_seconds` are GPUs times seconds of jobs whose results later attempts of the run replaced.
    """

    verdict: str
    reason: str
    counts: dict[str, int]
    tests: tuple[TestResult, ...]
    shards: tuple[ShardReport, ...]
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    setup_seconds: float = 0.0
    sha: str | None = None
    needs: dict[str, LearnedNeed] = field(default_factory=dict)
    coverage: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usd_per_gpu_hour: float | None = None
    earlier_gpu_seconds: float = 0.0
