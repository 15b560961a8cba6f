"""What a test process may say: honest records pass, and nothing that a test writes to the pipe does harm."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.results import journal
from gpuci_node.supervisor import records
from gpuci_node.supervisor.effects import Exit, Start, Write
from gpuci_node.supervisor.engine import Engine

DEEP = "[" * 100_000
HUGE = "1" + "0" * 400
SIZE = '{"kind":"end","task":1,"nodeid":"x","outcome":"passed","peak_memory_bytes":%s}'
START = '{"kind":"start","task":1,"nodeid":"x","file":"f","line":1,"timeout":%s}'

# Lines that a test could write, none of which is a record.
FORGED = {
    "no json": "{",
    "no object": "[1]",
    "no kind": "{}",
    "kind of another type": '{"kind":["end"]}',
    "no such kind": '{"kind":"deadline"}',
    "nested without end": DEEP,
    "nested text": '{"kind":"broken","text":' + "[" * 500 + "]" * 500 + "}",
    "a field is missing": '{"kind":"start"}',
    "endless limit": START % "Infinity",
    "limit that is no number": START % "NaN",
    "limit beyond a float": START % HUGE,
    "negative limit": START % "-1",
    "limit in words": START % '"soon"',
    "no node id": '{"kind":"end","task":1,"nodeid":"","outcome":"passed"}',
    "node id of another type": '{"kind":"end","task":1,"nodeid":["x"],"outcome":"passed"}',
    "no such outcome": '{"kind":"end","task":1,"nodeid":"x","outcome":"splendid"}',
    "outcome of another side": '{"kind":"end","task":1,"nodeid":"x","outcome":"elsewhere"}',
    "seconds in words": '{"kind":"end","task":1,"nodeid":"x","outcome":"passed","seconds":"many"}',
    "memory in words": SIZE % '"1 GiB"',
    "negative memory": SIZE % "-1",
    "memory beyond a float": SIZE % HUGE,
    "memory as a flag": SIZE % "true",
    "use as a number": '{"kind":"end","task":1,"nodeid":"x","outcome":"passed","cuda_used":1}',
    "negative seconds": '{"kind":"end","task":1,"nodeid":"x","outcome":"passed","seconds":{"call":-1}}',
    "need in words": '{"kind":"deferred","task":1,"nodeid":"x","gpus":"x","alone":false,"because":"m"}',
    "alone as a list": '{"kind":"deferred","task":1,"nodeid":"x","gpus":2,"alone":[],"because":"m"}',
    "ids of another type": '{"kind":"collected","file":"f","ids":null,"marks":{},"deselected":[]}',
    "note of another type": '{"kind":"note","topic":[],"level":{},"text":3}',
    "no task": '{"kind":"end","nodeid":"x","outcome":"passed"}',
    "task of another type": '{"kind":"end","task":"1","nodeid":"x","outcome":"passed"}',
    "findings without a path": '{"kind":"ready","findings":[{"reason":"x"}]}',
    "findings of another type": '{"kind":"ready","findings":"none"}',
    "collecting nothing": '{"kind":"collecting","file":""}',
    "reason of another type": '{"kind":"broken","text":[3]}',
}


@pytest.mark.parametrize("line", FORGED.values(), ids=FORGED)
def test_what_is_no_record(line: str) -> None:
    assert records.read(records.load(line)) is None


def test_unknown_fields_are_dropped() -> None:
    said = {"kind": "end", "task": 1, "nodeid": "x", "outcome": "passed", "unit": 3, "slot": None}
    assert records.read(said) == {"kind": "end", "task": 1, "nodeid": "x", "outcome": "passed"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NODEID = "test_a.py::test_1"
# By field, so that a good part of what is drawn passes.
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "nodeid": st.sampled_from([NODEID, "test_a.py", "x"]) | JSON,
    "outcome": st.sampled_from(["passed", "failed", "skipped"]) | JSON,
    "timeout": st.sampled_from([1, 1e9, 10**400, float("nan")]) | JSON,
    "gpus": st.sampled_from([None, 0, 2, 10**9]) | JSON,
    "alone": st.booleans() | JSON,
    "ids": st.just([NODEID]) | JSON,
    "marks": st.just({}) | JSON,
    "deselected": st.just([]) | JSON,
    "errors": st.just([{"nodeid": "test_a.py", "message": "m"}]) | JSON,
    "skipped": st.just([]) | JSON,
    "seconds": st.just({"call": 1.0}) | JSON,
    "peak_memory_bytes": st.sampled_from([None, 0, 2**40, 10**15, -1, True]) | JSON,
    "cuda_used": st.sampled_from([None, True, False, 0]) | JSON,
    "line": st.just(1) | JSON,
    "level": st.just("info") | JSON,
    **{name: st.text(max_size=5) | JSON for name in ("file", "message", "because", "text", "topic")},
}
KINDS = [
    *("collected", "start", "end", "deferred", "gpu_skip", "beyond_node", "early_cuda", "interrupted"),
    *("broken", "note", "record", "exit"),
]
SAID = JSON | st.fixed_dictionaries({"kind": st.sampled_from(KINDS) | JSON}, optional=FIELDS)
JOB = {
    "run": "r1",
    "event": "manual",
    "paths": {"root": "/tree", "out": "/out"},
    "node": {"name": "n1", "gpus": ["0", "1"], "workers_per_gpu": 1, "cpu_workers": 0},
    "settings": {
        "pytest_args": [],
        "pythonpath": [],
        "isolate": "file",
        "env": {},
        "fork": True,
        "engine": "gpuci",
        "preload": [],
        "recycle_after_files": None,
    },
    "markers": [],
    "roots": [{"path": ".", "config_file": None, "args": [], "gpu_isolation": "mask"}],
    "units": [
        {
            "id": "u1",
            "root": ".",
            "file": "test_a.py",
            "select": "all",
            "mode": "normal",
            "gpus": 1,
            "expected_seconds": 1.0,
            "timeout_seconds": 60.0,
        }
    ],
}


@given(st.lists(st.lists(SAID, max_size=6), min_size=1, max_size=4))
def test_whatever_test_processes_say_the_engine_goes_on_and_its_journal_can_be_read(
    said: list[list[Any]],
) -> None:
    engine = Engine(JOB)
    written: list[dict[str, Any]] = []
    for words in said:
        effects = engine.fill(0.0)
        for start in [effect for effect in effects if isinstance(effect, Start)]:
            effects = [effect for word in words for effect in engine.on_record(start.id, word, 1.0)]
            effects += engine.on_exit(start.id, Exit(0, None, ""), 2.0)
            written += [effect.record for effect in effects if isinstance(effect, Write)]
    assert all(journal.read_record(json.dumps(record)) for record in written)


def test_forged_records_cost_no_test_its_outcome(run_tree: Any) -> None:
    body = (
        f"LINES = {list(FORGED.values())!r}\n"
        "import os\n"
        "def test_forge():\n"
        "    for fd in range(3, 64):\n"
        "        try:\n"
        "            if os.readlink(f'/proc/self/fd/{fd}').startswith('pipe:'):\n"
        "                os.write(fd, ('\\n'.join(LINES) + '\\n').encode())\n"
        "        except OSError: continue\n"
        "def test_after(): pass\n"
    )
    ran = run_tree({"test_a.py": body, "test_b.py": "def test_1(): pass\n"})
    assert ran.outcomes == dict.fromkeys(
        ["test_a.py::test_forge", "test_a.py::test_after", "test_b.py::test_1"], "passed"
    )
    assert (ran.report.verdict, ran.runs[0].problem) == ("passed", "")
    assert [note["topic"] for note in ran.records("note")] == ["bad_record"]
