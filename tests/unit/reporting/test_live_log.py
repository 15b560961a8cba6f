"""The log of a running shard: what stands where, and that no line of it is a test's command."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuci.model import Unit
from gpuci.reporting.live_log import KEPT_LINES, LOOSE_LINES, MATCHERS, LiveLog, closing, opening
from gpuci.reporting.text import width_of

TOKEN = "0123456789abcdef"
Record = dict[str, Any]


def unit(name: str, file: str, select: Any = "all") -> Unit:
    return Unit(name, ".", file, select, "normal", 1, "default", 1.0, 900.0)


UNITS = (unit("u", "a.py", {"except": ["a.py::wide"]}), unit("w", "a.py", ["a.py::wide"]), unit("v", "b.py"))


def collected(name: str, file: str, *names: str) -> Record:
    return {"kind": "collected", "unit": name, "file": file, "ids": [f"{file}::{one}" for one in names]}


def start(name: str, nodeid: str, slot: str = "gw0") -> Record:
    return {"kind": "start", "unit": name, "nodeid": nodeid, "slot": slot}


def end(name: str, nodeid: str, outcome: str = "passed", **more: Any) -> Record:
    return {
        "kind": "end",
        "unit": name,
        "nodeid": nodeid,
        "outcome": outcome,
        "seconds": {"call": 1.5},
        **more,
    }


def output(slot: str, text: str) -> Record:
    return {"kind": "output", "slot": slot, "text": text}


def told(records: list[Record], **more: Any) -> list[str]:
    log = LiveLog(UNITS, **more)
    return [line for record in records for line in log.feed(record)] + log.finish()


def test_a_block_is_printed_when_its_last_test_ended() -> None:
    log = LiveLog(UNITS)
    quiet = [
        collected("u", "a.py", "one", "two", "wide"),
        start("u", "a.py::one"),
        start("v", "b.py::x", "gw1"),
        end("u", "a.py::one"),
        start("u", "a.py::two"),
        end("u", "a.py::two", "skipped"),
        collected("w", "a.py", "one", "two", "wide"),
        collected("v", "b.py", "x"),
        start("w", "a.py::wide"),
    ]
    assert [line for record in quiet for line in log.feed(record)] == []
    assert log.feed(end("w", "a.py::wide", "xfailed")) == [
        "a.py (1 passed, 1 xfailed, 1 skipped, 4.50 s)",
        "│ passed          1.50 s  one",
        "│ skipped         1.50 s  two",
        "│ xfailed         1.50 s  wide",
    ]
    assert log.finish() == ["b.py (1 without a result, 0.00 s)", "│ no result               x"]
    assert log.finish() == []


def test_on_actions_a_block_is_a_group_and_commands_are_stopped_in_it() -> None:
    records = [
        collected("v", "b.py", "x"),
        start("v", "b.py::x"),
        output("gw0", "::error::no\n"),
        end("v", "b.py::x"),
    ]
    assert told(records, token=TOKEN) == [
        "::group::b.py (1 passed, 1.50 s)",
        *(f"::remove-matcher owner={owner}::" for owner in MATCHERS),
        f"::stop-commands::{TOKEN}",
        "│ gw0: |::error::no",
        "│ passed          1.50 s  x",
        f"::{TOKEN}::",
        "::endgroup::",
    ]


def test_a_failure_is_told_at_once_outside_of_the_fold() -> None:
    log = LiveLog(UNITS, name="shard 3", token=TOKEN)
    log.feed(collected("v", "b.py", "x", "y"))
    more = {"slot": "gw1", "gpus": ["3"], "message": "assert 0", "output": "\n".join(map(str, range(30)))}
    lines = log.feed(end("v", "b.py::x", "failed", **more))
    assert (
        lines[-24:]
        == [
            f"::stop-commands::{TOKEN}",
            "FAILED shard 3: b.py::x (gw1, GPU 3, 1.50 s)",
            "│ assert 0",
            "│ (10 lines above)",
            *(f"│ {n}" for n in range(10, 30)),
            f"::{TOKEN}::",
        ][-24:]
    )
    again = log.feed(end("v", "b.py::y", "error", seconds={}))
    assert again == [
        f"::stop-commands::{TOKEN}",
        "ERROR shard 3: b.py::y",
        f"::{TOKEN}::",
        "::group::b.py (1 failed, 1 error, 1.50 s)",
        f"::stop-commands::{TOKEN}",
        "│ failed          1.50 s  x",
        "│ error           0.00 s  y",
        f"::{TOKEN}::",
        "::endgroup::",
    ]


@pytest.mark.parametrize(
    ("records", "lines"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([collected("v", "b.py")], [], id="an empty file"),
        pytest.param(
            [end("v", "b.py", "collection_error", message="no module")],
            [
                "COLLECTION ERROR b.py (1.50 s)",
                "│ no module",
                "b.py (1 collection error, 1.50 s)",
                "│ collection error    1.50 s  b.py",
            ],
            id="not importable",
        ),
        pytest.param(
            [collected("v", "b.py", "x"), end("v", "b.py::x"), end("v", "b.py::x", "error")],
            [
                "b.py (1 passed, 1.50 s)",
                "│ passed          1.50 s  x",
                "ERROR b.py::x (1.50 s)",
                "b.py (1 error, 3.00 s)",
                "│ error           1.50 s  x",
            ],
            id="a second end: the worst counts",
        ),
        pytest.param(
            [
                collected("v", "b.py", "x"),
                start("v", "b.py::x"),
                {"kind": "note", "text": "t", "level": "info"},
            ],
            ["b.py (1 without a result, 0.00 s)", "│ no result               x"],
            id="the job ended; information is left out",
        ),
        pytest.param(
            [collected("w", "a.py", "wide"), end("w", "a.py::wide")],
            ["a.py (1 passed, 1.50 s)", "│ passed          1.50 s  wide"],
            id="another unit of the file never came",
        ),
        pytest.param([end("x", "b.py::x")], [], id="another shard's unit"),
        pytest.param([{"kind": "other"}], [], id="a kind that nobody knows"),
        pytest.param(
            [{"kind": "job", "node": "gpu003", "slots": 8}], ["│ runs on gpu003, 8 slots"], id="the job"
        ),
        pytest.param(
            [{"kind": "note", "level": "warning", "text": "a\n::b", "nodeid": "b.py::x"}],
            ["│ warning: b.py::x: a |::b"],
            id="a warning",
        ),
        pytest.param(
            [{"kind": "verdict", "verdict": "queue_timeout", "reason": "Resources"}],
            ["│ queue timeout (Resources)"],
            id="a verdict",
        ),
        pytest.param([output("gw7", "a\nb\n")], ["│ gw7: a", "│ gw7: b"], id="a slot that runs nothing"),
        pytest.param([{"kind": "output", "text": "a"}], ["│ a"], id="no slot"),
    ],
)
def test_lines(records: list[Record], lines: list[str]) -> None:
    assert told(records) == lines


@pytest.mark.parametrize("count", [KEPT_LINES - 1, KEPT_LINES, KEPT_LINES + 1, 3 * KEPT_LINES])
def test_what_a_file_prints_is_kept_up_to_a_limit(count: int) -> None:
    records = [collected("v", "b.py", "x"), start("v", "b.py::x")]
    records += [output("gw0", f"line {n}\n") for n in range(count)]
    lines = told([*records, end("v", "b.py::x")])
    assert sum(": line " in line for line in lines) == min(count, KEPT_LINES)
    assert sum("left out" in line for line in lines) == (count > KEPT_LINES)


def test_what_belongs_to_no_file_waits_a_little() -> None:
    log = LiveLog(UNITS)
    assert [log.feed(output("base", "x")) for _ in range(LOOSE_LINES - 1)] == [[]] * (LOOSE_LINES - 1)
    assert log.feed(output("base", "x")) == ["│ base: x"] * LOOSE_LINES
    log.feed(output("base", "y"))
    assert log.flush() == ["│ base: y"]
    assert log.flush() == []


@pytest.mark.parametrize("token", ["", "short", "0123456789abcde:", "0123456789abcde\n", "é" * 20])
def test_a_token_that_can_be_met_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="random"):
        opening(token)


def test_matchers_are_removed_before_commands_stop() -> None:
    assert opening(TOKEN, matchers=["python"]) == [
        "::remove-matcher owner=python::",
        f"::stop-commands::{TOKEN}",
    ]
    assert closing(TOKEN) == [f"::{TOKEN}::"]


# -- hostile text -------------------------------------------------------------------------------------

HOSTILE = st.one_of(
    st.sampled_from(
        [
            "::error::x",
            "  ::stop-commands::x",
            f"::{TOKEN}::",
            "##[error]x",
            "###[group]",
            "a ##[add-mask]b",
            "#\x1b[0m#[x]",
            "\r::set-output name=a::b",
            "a\u2028::error::",
            "a\x85::error::",
            "a\x0b::error::x",
            "\x1b]0;title\x07::x::",
            "\ud800",
            "%0A::error::x",
            "x" * 500,
            "│ ::x::",
        ]
    ),
    st.text(st.one_of(st.sampled_from("\x1b\r\n\t :#[]%\u2028\u202e│界"), st.characters()), max_size=60),
)
NODEIDS = st.one_of(st.sampled_from(["a.py", "a.py::t", "b.py::x"]), HOSTILE.map("b.py::{}".format), HOSTILE)
RECORDS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["job", "collected", "start", "end", "note", "output", "verdict"]),
        "unit": st.sampled_from(["u", "v", "w", "x"]),
        "nodeid": NODEIDS,
        "ids": st.lists(NODEIDS, max_size=3),
        "outcome": st.sampled_from(["passed", "failed", "not_finished", "collection_error"]),
        "text": HOSTILE,
        "message": HOSTILE,
        "output": HOSTILE,
        "slot": HOSTILE,
        "gpus": st.lists(HOSTILE, max_size=2),
        "node": HOSTILE,
        "reason": HOSTILE,
        "verdict": st.sampled_from(["passed", "infra"]),
        "level": st.sampled_from(["info", "warning", "error"]),
        "seconds": st.just({"call": 0.5}),
    }
)
FILES = st.sampled_from(["b.py", "::group::x", "100%0A::x.py", "a ##[x].py", "x" * 300 + ".py"])


class Runner:
    """What a runner of GitHub Actions makes of lines: commands, unless they are stopped."""

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.groups = 0

    def take(self, line: str) -> None:
        assert "##[" not in line
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", line)
        line.encode()
        if not line.strip().startswith("::"):
            assert self.stopped, f"text of tests where commands are heard: {line!r}"
            return
        if self.stopped:
            assert line == f"::{self.stopped}::"
            self.stopped = None
            return
        command, _, data = line[2:].partition("::")
        if command == "stop-commands":
            self.stopped = data
        elif command == "group":
            self.groups += 1
            assert self.groups == 1, "a group in a group"
            assert not re.search("%(?!25)", data)
        elif command == "endgroup":
            self.groups -= 1
        else:
            assert command in {f"remove-matcher owner={owner}" for owner in MATCHERS}


@given(st.lists(RECORDS, max_size=12), HOSTILE, FILES)
@settings(max_examples=300)
def test_no_test_gives_a_runner_a_command(records: list[Record], name: str, file: str) -> None:
    log = LiveLog((unit("u", "a.py"), unit("v", file)), name=name, token=TOKEN)
    runner = Runner()
    for lines in [*map(log.feed, records), log.flush(), log.finish()]:
        for line in lines:
            runner.take(line)
        assert runner.stopped is None, "others print between our lines"
        assert runner.groups == 0


@given(st.lists(RECORDS, max_size=12), HOSTILE, FILES, st.integers(20, 300))
@settings(max_examples=300)
def test_without_a_runner_there_are_no_commands_at_all(
    records: list[Record], name: str, file: str, width: int
) -> None:
    log = LiveLog((unit("u", "a.py"), unit("v", file)), name=name, width=width)
    lines = [line for record in records for line in log.feed(record)] + log.finish()
    for line in lines:
        assert not line.strip().startswith("::")
        assert "##[" not in line
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", line)
        assert width_of(line) <= width


@given(st.lists(st.tuples(st.sampled_from("uvw"), st.integers(0, 3), st.sampled_from(["passed", "failed"]))))
def test_each_end_is_told_once(ends: list[tuple[str, int, str]]) -> None:
    files = {"u": "a.py", "w": "a.py", "v": "b.py"}
    records = [end(name, f"{files[name]}::t{n}", outcome) for name, n, outcome in ends]
    lines = told(records)
    assert sum(bool(re.match(r"│ (passed|failed) ", line)) for line in lines) == len(ends)
    assert sum(line.startswith("FAILED ") for line in lines) == sum(
        outcome == "failed" for *_, outcome in ends
    )
