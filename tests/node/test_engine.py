"""The node's scheduler with stub test processes on a virtual clock: what it promises for every plan.

The stubs do what real test processes do: collect, run, crash, hang, leave, defer, skip for lack of GPUs.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci_node.slots import Slot, SlotTable
from gpuci_node.supervisor.effects import Dump, Exit, Kill, Start, Tell, Write
from gpuci_node.supervisor.engine import Engine

LIMIT = 10.0


def job(
    units: list[dict[str, Any]], gpus: int = 8, workers_per_gpu: int = 1, isolate: str = "file"
) -> dict[str, Any]:
    return {
        "run": "r1",
        "event": "manual",
        "paths": {"root": "/tree", "out": "/out"},
        "node": {
            "name": "n1",
            "gpus": [str(gpu) for gpu in range(gpus)],
            "workers_per_gpu": workers_per_gpu,
            "cpu_workers": 0 if gpus else 2,
        },
        "settings": {
            **{"pytest_args": [], "pythonpath": [], "isolate": isolate, "env": {}},
            **{"fork": True, "preload": [], "recycle_after_files": None},
        },
        "markers": [],
        "roots": [
            {"path": path, "config_file": None, "args": [], "gpu_isolation": "mask"} for path in (".", "b")
        ],
        "units": units,
    }


def unit(name: str, gpus: int = 1, mode: str = "normal", seconds: float = 1.0) -> dict[str, Any]:
    return {
        "id": name,
        "root": ".",
        "file": f"test_{name}.py",
        "select": "all",
        "mode": mode,
        "gpus": gpus,
        "profile": "default",
        "expected_seconds": seconds,
        "timeout_seconds": LIMIT,
    }


@dataclass
class Script:
    """What the tests of one file do, by node id: an outcome, or one of the faults below.

    `importing` is what happens when the file is imported: nothing, a fault, or a reason not to fork.
    """

    tests: dict[str, str]
    importing: str = ""


FAULTS = ("crash", "leave", "hang", "exit_request", "defer", "defer_alone", "gpu_skip")
PLAIN = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
FAULT_OUTCOMES = {"crash": "failed", "leave": "failed", "hang": "failed", "exit_request": "failed"}
IMPORTING = ("", "", "", "cuda", "port", "error_beside_others", "crash", "hang")
PARENTS = ("", "", "base crashes", "base is refused", "template crashes", "conftest is refused", "unborn")

Event = tuple[str, Any]
Play = Generator[Event, Any, None]


def record(kind: str, **fields: Any) -> Event:
    return "record", {"kind": kind, **fields}


@dataclass
class Stub:
    """A process: its events, one by one; what it is told between them goes into the generator."""

    start: Start
    play: Play
    told: Any = None
    upcoming: Event = ("", None)

    def advance(self) -> None:
        told, self.told = self.told, None
        self.upcoming = self.play.send(told)

    @property
    def gpus(self) -> list[str]:
        return list(self.start.spec.get("gpus", ()))


class Actor:
    """What the processes of one world do."""

    def __init__(self, scripts: dict[str, Script], parents: str) -> None:
        self.scripts = scripts
        self.parents = parents

    def play(self, start: Start) -> Play:
        if start.parent is not None and self.parents == "unborn":
            yield "exit", Exit(None, None, "", born=False)
        role = start.spec["role"]
        yield from {"base": self.base, "template": self.template, "worker": self.worker}[role](start)

    def base(self, start: Start) -> Play:
        if self.parents == "base crashes":
            yield "exit", Exit(None, "SIGSEGV", "")
        refused = self.parents == "base is refused"
        yield record("ready", findings=[{"reason": "a thread", "path": ""}] if refused else [])
        if not refused:
            yield "wait", None
        yield "exit", Exit(0, None, "")

    def template(self, start: Start) -> Play:
        if self.parents == "template crashes":
            yield "exit", Exit(None, "SIGSEGV", "")
        yield from self.collect(start, beside=True)
        findings = [
            {"reason": self.scripts[file].importing, "path": file}
            for file in start.spec["files"]
            if self.scripts[file].importing in ("cuda", "port")
        ]
        if self.parents == "conftest is refused":
            findings.append({"reason": "reads the worker's name", "path": "conftest.py"})
        yield record("ready", findings=findings)
        if not findings:
            yield "wait", None
        yield "exit", Exit(0, None, "")

    def collect(self, start: Start, beside: bool) -> Play:
        for file in start.spec["files"]:
            yield record("collecting", file=file)
            if beside and self.scripts[file].importing == "crash":
                yield "exit", Exit(None, "SIGSEGV", "")
            if beside and self.scripts[file].importing == "hang":
                yield "hang", None
        for file in start.spec["files"]:
            failed = beside and self.scripts[file].importing == "error_beside_others"
            errors = [{"nodeid": file, "message": "import file mismatch"}] if failed else []
            fields = {"marks": {}, "deselected": [], "errors": errors, "skipped": []}
            yield record("collected", file=file, ids=list(self.scripts[file].tests), **fields)

    def worker(self, start: Start) -> Play:
        spec = start.spec
        if start.parent is None or start.parent.startswith("base"):
            yield from self.collect(start, beside=len(spec["files"]) > 1)
            narrow = len(spec["gpus"]) < len(spec["job_gpus"])
            cuda = any(self.scripts[file].importing == "cuda" for file in spec["files"])
            if cuda and narrow and not spec["mask_from_start"]:
                yield record("early_cuda")
                yield "exit", Exit(5, None, "")
        unit = spec["unit"]
        while unit is not None:
            unit = yield from self.unit(spec, unit)
        yield "exit", Exit(0, None, "")

    def unit(self, spec: dict[str, Any], unit: dict[str, Any]) -> Generator[Event, Any, Any]:
        """Run one unit; return the next one, None at the end."""
        task, script = unit["task"], self.scripts[unit["file"]]
        if spec["more"] and len(spec["files"]) > 1 and script.importing == "error_beside_others":
            return (yield from self.ask(spec))
        staying = []
        for nodeid in script.tests:
            if unit["only"] is None or nodeid in unit["only"]:
                deferral = self.deferral(spec, nodeid, script.tests[nodeid])
                if deferral is None:
                    staying.append(nodeid)
                else:
                    yield record("deferred", task=task, nodeid=nodeid, because="a_mark", **deferral)
        answer = None
        for nodeid in staying[: unit["limit"]]:
            yield record("start", task=task, nodeid=nodeid, timeout=LIMIT, file="f", line=1)
            what = script.tests[nodeid]
            if what in FAULT_OUTCOMES:
                yield from ending(what)
            if nodeid == staying[-1]:
                answer = yield from self.ask(spec)
            if what == "gpu_skip" and len(spec["gpus"]) < len(spec["job_gpus"]):
                yield record("gpu_skip", task=task, nodeid=nodeid, message="needs 8 GPUs")
            else:
                yield record("end", task=task, nodeid=nodeid, outcome=plain(what), message="")
        return answer if staying else (yield from self.ask(spec))

    def ask(self, spec: dict[str, Any]) -> Generator[Event, Any, Any]:
        if not spec["more"]:
            return None
        told = yield record("next")
        assert told is not None, "a worker that asks gets an answer at once"
        return told.get("unit")

    def deferral(self, spec: dict[str, Any], nodeid: str, what: str) -> dict[str, Any] | None:
        if what == "defer" and len(spec["gpus"]) < len(spec["job_gpus"]):
            return {"gpus": 8, "alone": False}
        if what == "defer_alone" and not spec["alone"] and spec["job_gpus"]:
            return {"gpus": None, "alone": True}
        return None


def plain(what: str) -> str:
    return what if what in PLAIN else "passed"


def ending(what: str) -> Play:
    if what == "hang":
        yield "hang", None
    if what == "exit_request":
        yield record("interrupted", text="Exit: bye")
        yield "exit", Exit(2, None, "")
    yield "exit", Exit(None, "SIGSEGV", "tail") if what == "crash" else Exit(0, None, "")


class World:
    """Runs an engine over stub processes in random order; holds it to the rules of devices and slots."""

    def __init__(
        self, document: dict[str, Any], scripts: dict[str, Script], seed: int = 1, parents: str = ""
    ) -> None:
        self.engine = Engine(document)
        self.actor = Actor(scripts, parents)
        self.random = random.Random(seed)
        self.lanes = document["node"]["workers_per_gpu"]
        self.stubs: dict[str, Stub] = {}
        self.journal: list[dict[str, Any]] = []
        self.starts: list[Start] = []
        self.first_gpu: dict[str, set[str]] = defaultdict(set)
        self.clock = 0.0

    def run(self) -> None:
        for _step in range(20_000):
            self.apply(self.engine.fill(self.clock))
            if self.engine.finished:
                assert not self.stubs
                return
            assert self.stubs, "units wait although nothing runs"
            self.step()
        raise AssertionError("the engine does not come to an end")

    def step(self) -> None:
        ready = [name for name, stub in self.stubs.items() if stub.upcoming[0] in ("record", "exit")]
        if not ready:
            deadline = self.engine.next_deadline()
            assert deadline is not None, "a process hangs without a deadline"
            self.clock = max(self.clock, deadline)
            self.apply(self.engine.on_deadline(self.clock))
            return
        name = self.random.choice(ready)
        stub = self.stubs[name]
        kind, content = stub.upcoming
        self.clock += self.random.random() * 0.01
        if kind == "record":
            self.apply(self.engine.on_record(name, content, self.clock))
            if stub.upcoming[1] is content:  # not killed for what it said
                stub.advance()
        else:
            del self.stubs[name]
            self.apply(self.engine.on_exit(name, content, self.clock))

    def apply(self, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Write):
                self.journal.append(effect.record)
            elif isinstance(effect, Start):
                self.started(effect)
            elif isinstance(effect, Tell):
                self.tell(self.stubs[effect.id], effect.message)
            elif isinstance(effect, Kill):
                self.stubs[effect.id].upcoming = ("exit", Exit(None, "SIGKILL", "stack"))
            else:
                assert isinstance(effect, Dump)

    def tell(self, stub: Stub, message: dict[str, Any]) -> None:
        stub.told = message
        if stub.upcoming[0] == "wait":
            stub.advance()

    def started(self, start: Start) -> None:
        assert start.id not in self.stubs
        assert start.parent is None or start.parent in self.stubs, "a parent that is gone"
        self.starts.append(start)
        stub = self.stubs[start.id] = Stub(start, self.actor.play(start))
        stub.advance()
        self.check_devices()
        if stub.gpus:
            self.first_gpu[start.env["PYTEST_XDIST_WORKER"]].add(stub.gpus[0])

    def check_devices(self) -> None:
        workers = [stub for stub in self.stubs.values() if stub.start.spec["role"] == "worker"]
        used = Counter(gpu for stub in workers for gpu in stub.gpus)
        assert all(count <= self.lanes for count in used.values()), used
        names = [stub.start.env["PYTEST_XDIST_WORKER"] for stub in workers]
        assert len(names) == len(set(names)), names
        for stub in workers:
            if stub.start.spec["alone"] or len(stub.gpus) > 1:
                assert all(used[gpu] == 1 for gpu in stub.gpus), "a wide or serial unit shares a device"

    def ends(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for written in self.journal:
            if written["kind"] == "end":
                found[written["nodeid"]].append(written["outcome"])
        return found


UNITS = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, 2, 4, 8]),
        st.sampled_from(["normal", "normal", "isolated", "serial"]),
        st.floats(0.1, 100),
        st.lists(st.sampled_from(PLAIN + FAULTS), min_size=0, max_size=6),
        st.sampled_from(IMPORTING),
        st.sampled_from([".", ".", "b"]),
    ),
    max_size=12,
)


@settings(max_examples=300)
@given(
    mix=UNITS,
    lanes=st.sampled_from([1, 1, 2, 3]),
    isolate=st.sampled_from(["file", "test"]),
    parents=st.sampled_from(PARENTS),
    recycle=st.sampled_from([None, 1, 2]),
    seed=st.integers(0, 10_000),
)
def test_every_test_ends_once_and_no_device_is_used_twice(
    mix: list[tuple[int, str, float, list[str], str, str]],
    lanes: int,
    isolate: str,
    parents: str,
    recycle: int | None,
    seed: int,
) -> None:
    units, scripts, expected = [], {}, {}
    for number, (gpus, mode, seconds, tests, importing, root) in enumerate(mix):
        one = {**unit(f"u{number}", 8 if mode == "serial" else gpus, mode, seconds), "root": root}
        units.append(one)
        script = Script({f"{one['file']}::test_{i}": what for i, what in enumerate(tests)}, importing)
        scripts[one["file"]] = script
        expected.update(
            {nodeid: [FAULT_OUTCOMES.get(what, plain(what))] for nodeid, what in script.tests.items()}
        )
    document = job(units, workers_per_gpu=lanes, isolate=isolate)
    document["settings"]["recycle_after_files"] = recycle
    world = World(document, scripts, seed, parents)
    world.run()
    for file, outcomes in world.ends().items():
        if file in scripts:  # what hangs beside others is not tried again by itself
            assert (scripts[file].importing, outcomes) == ("hang", ["collection_error"])
            for nodeid in scripts[file].tests:
                del expected[nodeid]
    assert {nodeid: ends for nodeid, ends in world.ends().items() if "::" in nodeid} == expected
    assert all(len(gpus) == 1 for gpus in world.first_gpu.values()), "a worker's name moved to another device"


def run_script(tests: dict[str, str], **more: Any) -> World:
    one = unit("a", **more)
    world = World(job([one]), {one["file"]: Script(tests)})
    world.run()
    return world


def notes(world: World, topic: str) -> list[dict[str, Any]]:
    return [record for record in world.journal if record.get("topic") == topic]


def test_a_test_that_needs_more_gpus_than_planned_runs_on_them_and_that_is_said() -> None:
    world = run_script({"a::wide": "defer", "a::narrow": "passed"})
    ends = {record["nodeid"]: record["gpus"] for record in world.journal if record["kind"] == "end"}
    assert ends == {"a::narrow": ["0"], "a::wide": [str(gpu) for gpu in range(8)]}
    (note,) = notes(world, "need_differs")
    assert (note["nodeid"], note["planned"], note["gpus"]) == ("a::wide", 1, 8)


def test_a_skip_for_lack_of_gpus_runs_again_with_all_and_leaves_one_record() -> None:
    world = run_script({"a::big": "gpu_skip"})
    assert world.ends() == {"a::big": ["passed"]}
    assert [note["nodeid"] for note in notes(world, "gpu_skip")] == ["a::big"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("crash", "killed by SIGSEGV"),
        ("leave", "the test process left with exit code 0"),
        ("exit_request", "Exit: bye"),
        ("hang", "no end within its limit of 10 s: killed"),
    ],
)
def test_a_fault_is_the_outcome_of_the_test_in_flight_and_the_rest_of_the_file_runs(
    fault: str, message: str
) -> None:
    world = run_script({"a::before": "passed", "a::bad": fault, "a::after": "passed"})
    assert world.ends() == {"a::before": ["passed"], "a::bad": ["failed"], "a::after": ["passed"]}
    (bad,) = [record for record in world.journal if record.get("outcome") == "failed"]
    assert bad["message"] == message


def test_what_is_said_between_kill_and_death_counts_and_a_test_that_the_kill_met_runs_again() -> None:
    ids = [f"test_a.py::test_{number}" for number in range(4)]
    engine = Engine(without_parents(job([unit("a")])))
    start = start_of(engine)

    def said(kind: str, number: int) -> list[Any]:
        more = {"timeout": 10, "file": "test_a.py", "line": 1} if kind == "start" else {"outcome": "passed"}
        record = {"kind": kind, "task": 1, "nodeid": ids[number], "message": "", **more}
        return engine.on_record(start.id, record, 1.0)

    effects = engine.on_record(start.id, {**COLLECTED, "ids": ids}, 1.0) + said("start", 0)
    effects += engine.on_deadline(20.0) + engine.on_deadline(40.0)
    assert [type(effect) for effect in effects[-2:]] == [Dump, Kill]
    for kind, number in (("end", 0), ("start", 1), ("end", 1), ("start", 2)):
        effects += said(kind, number)
    effects += engine.on_exit(start.id, Exit(None, "SIGKILL", ""), 41.0)
    written = [effect.record for effect in effects if isinstance(effect, Write)]
    ends = [(record["nodeid"], record["outcome"]) for record in written if record["kind"] == "end"]
    assert ends == [(ids[0], "failed"), (ids[1], "passed")]
    (second,) = [effect for effect in effects if isinstance(effect, Start)]
    assert second.spec["unit"]["only"] == ids[2:]


def without_parents(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "settings": {**document["settings"], "fork": False}}


def start_of(engine: Engine) -> Start:
    first, *_rest = engine.fill(0.0)
    assert isinstance(first, Start)
    return first


def drive(records: list[dict[str, Any]], end: Exit) -> list[dict[str, Any]]:
    """The journal of one unit whose process says this and ends so."""
    engine = Engine(without_parents(job([unit("a")])))
    start = start_of(engine)
    effects = [effect for record in records for effect in engine.on_record(start.id, record, 1.0)]
    effects += engine.on_exit(start.id, end, 2.0)
    return [effect.record for effect in effects if isinstance(effect, Write)]


COLLECTED = {
    "kind": "collected",
    "file": "test_a.py",
    "ids": ["test_a.py::test_1"],
    "marks": {},
    "deselected": [],
    "errors": [],
    "skipped": [],
}


def test_a_process_that_dies_before_it_collected_makes_its_file_a_collection_error() -> None:
    (end,) = drive([], Exit(4, None, "ImportError while loading conftest"))
    assert (end["nodeid"], end["outcome"]) == ("test_a.py", "collection_error")
    assert "ImportError" in end["output"]


def test_without_progress_there_is_no_second_process() -> None:
    *_, end = drive([COLLECTED], Exit(3, None, "INTERNALERROR"))
    assert (end["nodeid"], end["outcome"]) == ("test_a.py::test_1", "not_finished")


def test_a_test_without_a_result_is_not_tried_again_when_the_next_one_begins() -> None:
    ids = ["test_a.py::test_1", "test_a.py::test_2"]
    starts = [
        {"kind": "start", "task": 1, "nodeid": nodeid, "timeout": 1, "file": "test_a.py", "line": 1}
        for nodeid in ids
    ]
    end = {"kind": "end", "task": 1, "nodeid": ids[1], "outcome": "passed", "message": ""}
    written = drive([{**COLLECTED, "ids": ids}, *starts, end], Exit(0, None, ""))
    ends = [(record["nodeid"], record["outcome"]) for record in written if record["kind"] == "end"]
    assert ends == [(ids[0], "not_finished"), (ids[1], "passed")]


def test_an_error_of_collection_is_no_progress() -> None:
    broken = {**COLLECTED, "errors": [{"nodeid": "test_a.py::TestA", "message": "bad class"}]}
    ends = [record for record in drive([broken], Exit(3, None, "INTERNALERROR")) if record["kind"] == "end"]
    assert [(end["nodeid"], end["outcome"]) for end in ends] == [
        ("test_a.py::TestA", "collection_error"),
        ("test_a.py::test_1", "not_finished"),
    ]


def test_a_bad_end_after_the_last_test_is_a_warning() -> None:
    end = {"kind": "end", "task": 1, "nodeid": "test_a.py::test_1", "outcome": "passed", "message": ""}
    *_, last = drive([COLLECTED, end], Exit(None, "SIGABRT", ""))
    assert (last["kind"], last["topic"], last["level"]) == ("note", "process_end", "warning")


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "exit"},
        {"kind": "start"},
        {"kind": "start", "task": 2, "nodeid": "x", "timeout": 1, "file": "x", "line": 1},
        {"kind": "ready", "findings": []},
        {"kind": "start", "task": 1, "nodeid": 3, "timeout": "soon", "file": None, "line": None},
        {"kind": "collected", "ids": None},
        {"kind": "end", "task": 1, "nodeid": "test_a.py::test_1", "outcome": "splendid"},
        {"kind": ["end"]},
        {},
    ],
    ids=repr,
)
def test_a_record_that_makes_no_sense_does_no_harm(record: dict[str, Any]) -> None:
    """A test may find the descriptor and write to it: it forges its own results at most."""
    written = drive([COLLECTED, record], Exit(0, None, ""))
    assert [one["outcome"] for one in written if one["kind"] == "end"] == ["not_finished"]


def test_after_a_stop_nothing_starts_and_nothing_is_recorded() -> None:
    engine = Engine(without_parents(job([unit("a"), unit("b")])))
    first = start_of(engine)
    engine.stop()
    assert engine.on_record(first.id, COLLECTED, 1.0) == []
    assert engine.on_exit(first.id, Exit(None, "SIGKILL", ""), 1.0) == []
    assert engine.fill(2.0) == []


def test_a_long_queue_is_not_walked_for_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard may have thousands of units, and each of them thousands of records."""
    asked: list[int] = []
    take = SlotTable.take

    def counted(table: SlotTable, gpus: int, alone: bool = False) -> Slot | None:
        asked.append(gpus)
        return take(table, gpus, alone)

    monkeypatch.setattr(SlotTable, "take", counted)
    units = [unit(f"u{number}", gpus) for number in range(100) for gpus in (1, 2, 8)]
    scripts = {one["file"]: Script({f"{one['file']}::test_1": "passed"}) for one in units}
    world = World(job([{**one, "id": f"{one['id']}-{one['gpus']}"} for one in units]), scripts)
    world.run()
    assert len(asked) <= 4 * len(units)  # at each end: what starts, and one refusal for each width


def names(world: World, role: str) -> list[str]:
    return [start.id for start in world.starts if start.spec["role"] == role]


def started_base(engine: Engine) -> Start:
    """The base of an engine, ready."""
    base = start_of(engine)
    engine.on_record(base.id, {"kind": "ready", "findings": []}, 0.0)
    return base


def starts_of(effects: list[Any]) -> list[Start]:
    return [effect for effect in effects if isinstance(effect, Start)]


def test_a_file_whose_record_was_lost_runs_in_a_process_of_its_own() -> None:
    """A record that is too long is dropped on its way."""
    engine = Engine(job([unit("a"), unit("b")]))
    base, template = started_base(engine), start_of(engine)
    assert template.spec["files"] == ["test_a.py", "test_b.py"]
    engine.on_record(template.id, COLLECTED, 0.0)
    (note,) = engine.on_record(template.id, {"kind": "ready", "findings": []}, 0.0)
    assert isinstance(note, Write)
    assert note.record["text"] == "test_b.py runs in a process of its own: its record was lost"
    files = {start.spec["files"][0]: start.parent for start in starts_of(engine.fill(0.0))}
    assert files == {"test_a.py": template.id, "test_b.py": base.id}


def test_narrow_units_take_what_a_wide_one_that_waits_for_its_template_leaves() -> None:
    wide = {**unit("wide", gpus=4), "root": "b"}
    engine = Engine(
        job([wide, {**unit("other"), "root": "b"}, *(unit(f"i{n}", mode="isolated") for n in range(9))])
    )
    started_base(engine)
    started = [start for start in starts_of(engine.fill(0.0)) if start.spec["role"] == "worker"]
    assert sorted(start.spec["gpus"][0] for start in started) == ["4", "5", "6", "7"]


def test_a_worker_keeps_its_session_while_a_longer_unit_elsewhere_waits_for_its_template() -> None:
    units = [unit(f"u{n}", seconds=2.0) for n in range(6)]
    units += [{**unit(f"long{n}", seconds=100.0), "root": "b"} for n in range(2)]
    scripts = {one["file"]: Script({f"{one['file']}::test_1": "passed"}) for one in units}
    world = World(job(units, gpus=2), scripts)

    def never(start: Start) -> Play:
        yield "wait", None
        yield "exit", Exit(0, None, "")

    play = world.actor.play
    world.actor.play = lambda start: (  # type: ignore[method-assign]
        never(start) if (start.spec["role"], start.spec["root"]) == ("template", "b") else play(start)
    )
    while sum(record["kind"] == "end" for record in world.journal) < 6:
        world.apply(world.engine.fill(world.clock))
        world.step()
    assert len(names(world, "worker")) == 2  # one a slot


def test_a_base_that_leaves_has_a_limit_for_that() -> None:
    engine = Engine(job([unit("a"), unit("b")]))
    base = start_of(engine)
    engine.on_record(base.id, {"kind": "ready", "findings": [{"reason": "a thread", "path": ""}]}, 0.0)
    assert engine.next_deadline() is not None


FORGED = (
    {"kind": "early_cuda"},
    {"kind": "deferred", "task": 1, "nodeid": "test_a.py::test_1", "gpus": 8, "alone": True, "because": "m"},
    {
        "kind": "deferred",
        "task": 1,
        "nodeid": "test_a.py::test_2",
        "gpus": None,
        "alone": False,
        "because": "m",
    },
    {"kind": "deferred", "task": 1, "nodeid": "test_a.py::test_2", "gpus": 1, "alone": False, "because": "m"},
    {"kind": "gpu_skip", "task": 1, "nodeid": "test_a.py::test_2", "message": "no GPU"},
    {"kind": "collecting", "file": "test_a.py"},
    {**COLLECTED, "ids": []},
    {"kind": "unusable", "text": "x"},
    {"kind": "ready", "findings": []},
)


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: forged["kind"])
def test_a_record_at_the_wrong_time_is_a_bad_one(forged: dict[str, Any]) -> None:
    """Else a test could have itself started again for ever, or end the run for all."""
    ids = ["test_a.py::test_1", "test_a.py::test_2"]
    start = {"kind": "start", "task": 1, "nodeid": ids[0], "timeout": 1, "file": "test_a.py", "line": 1}
    *_, note, end = drive([{**COLLECTED, "ids": ids}, start, forged], Exit(0, None, ""))
    assert note["topic"] == "bad_record"
    assert (end["nodeid"], end["outcome"]) == (ids[0], "failed")
