"""Progress on a terminal, in a log, in hostile hands. What counts is the screen of a small emulator."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import termios
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.model import Plan, Shard, ShardState, Unit
from gpuci.reporting.progress import Progress
from gpuci.reporting.text import width_of

PLAN = Plan(
    config={},
    sha=None,
    event="manual",
    roots=(),
    targets=(),
    units=(
        Unit("u", ".", "a.py", {"except": ["a.py::other"]}, "normal", 1, "default", 10.0, 900.0, tests=2),
        Unit("v", ".", "b.py", "all", "normal", 1, "default", 20.0, 900.0, tests=4),
        Unit("c", ".", "c.py", "all", "cpu", 0, "default", 2.0, 900.0, tests=1),
    ),
    shards=(Shard(1, "default", ("u",), 10.0), Shard(2, "default", ("v",), 20.0)),
    cpu_units=("c",),
    skipped=(),
    makespan_seconds=20.0,
    lower_bound_seconds=20.0,
    unknown_durations=0,
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal, with a screen that obeys what we send."""

    encoding = "utf-8"

    def __init__(self, live: bool = True, columns: int = 80, lines: int = 24) -> None:
        super().__init__()
        self.live, self.size = live, (columns, lines)

    def isatty(self) -> bool:
        return self.live

    def screen(self) -> list[str]:
        rows: list[str] = [""]
        row = 0
        for piece in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+|\x1b", self.getvalue()):
            if piece == "\n":
                row += 1
                rows += [""] * (row + 1 - len(rows))
            elif up := re.fullmatch(r"\x1b\[(\d+)A", piece):
                row -= int(up[1])
                assert row >= 0, "moved above the first line"
            elif piece == "\x1b[J":
                rows[row:] = [""]
            elif not piece.startswith(("\x1b", "\r")):
                rows[row] += piece
        return rows


def progress(stream: Terminal, elsewhere: bool = True, **environ: str) -> Progress:
    return Progress(
        PLAN, stream, environ={"TERM": "xterm", **environ}, elsewhere=elsewhere, size=lambda: stream.size
    )


def end(unit: str, nodeid: str, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    return {"kind": "end", "t": 5.0, "unit": unit, "nodeid": nodeid, "outcome": outcome, **more}


def start(unit: str, nodeid: str, t: float) -> dict[str, Any]:
    return {"kind": "start", "t": t, "unit": unit, "nodeid": nodeid}


JOB = {"kind": "job", "t": 0.0}


def test_bars_are_redrawn_in_place_and_failures_stay_above() -> None:
    stream = Terminal()
    bars = progress(stream)
    bars.feed(1, JOB)
    bars.tick(0.0)
    bars.feed(1, start("u", "a.py::slow", 1.0))
    bars.feed(2, end("v", "b.py::bad", "failed", message="assert 0"))
    bars.tick(5.0)
    bars.feed(1, end("u", "a.py::slow"))
    bars.tick(6.0)
    bars.close()
    failure, first, second, last = stream.screen()
    assert failure == "FAILED (shard 2) b.py::bad: assert 0"
    assert first == "shard 1  [==========          ]       1/2  est. 6 s left"
    assert second == "shard 2  [=====               ]       1/4  1 failed  est. 3 s left"
    assert last == ""


def test_what_is_said_meanwhile_stays_above_the_bars() -> None:
    stream = Terminal()
    bars = progress(stream)
    bars.say(["before"])
    bars.tick(0.0)
    bars.say(["shard 1: passed", "  of two lines"])
    bars.tick(1.0)
    bars.close()
    assert stream.screen()[:3] == ["before", "shard 1: passed", "  of two lines"]
    assert [line[:7] for line in stream.screen()[3:]] == ["shard 1", "shard 2", ""]


def test_in_a_log_what_is_said_is_lines() -> None:
    stream = Terminal(live=False)
    bars = progress(stream)
    bars.tick(0.0)
    bars.say(["shard 1: passed"])
    assert stream.getvalue() == "shard 1: passed\n"


def test_a_bar_shows_the_test_that_runs_longest() -> None:
    stream = Terminal(columns=100)
    bars = progress(stream)
    bars.feed(1, start("u", "a.py::slow", 1.0))
    bars.feed(1, start("u", "a.py::quick", 4.0))
    bars.tick(5.0)
    assert stream.screen()[0].endswith("2 running  est. 6 s left  a.py::slow  4.00 s")


def test_the_cursor_comes_back_once() -> None:
    stream = Terminal()
    bars = progress(stream)
    bars.tick(0.0)
    bars.close()
    bars.close()
    bars.tick(9.0)
    text = stream.getvalue()
    assert text.startswith("\x1b[?25l")
    assert text.endswith("\x1b[?25h")
    assert text.count("\x1b[?25h") == 1


def test_close_without_a_tick_writes_nothing() -> None:
    stream = Terminal()
    progress(stream).close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)]
)
def test_no_color(environ: dict[str, str], coloured: bool) -> None:
    stream = Terminal()
    bars = Progress(PLAN, stream, environ={"TERM": "xterm", **environ}, size=lambda: stream.size)
    bars.feed(1, end("u", "a.py::t", "failed"))
    bars.tick(1.0)
    assert ("\x1b[31m" in stream.getvalue()) is coloured


@pytest.mark.parametrize(
    ("live", "term"), [(False, "xterm"), (True, "dumb"), (False, "dumb")], ids=["piped", "dumb", "both"]
)
def test_a_log_gets_lines_and_nothing_but_text(live: bool, term: str) -> None:
    stream = Terminal(live=live)
    bars = progress(stream, TERM=term)
    bars.feed(1, JOB)
    for now in range(65):
        if now == 10:
            bars.feed(1, end("u", "a.py::t", "failed", message="\x1b[31mno\r\n::error::"))
        bars.tick(float(now))
    bars.close()
    assert stream.getvalue().split("\n") == [
        "FAILED (shard 1) a.py::t: no |::error::",
        "1/6 tests; shard 1: 1/2, 1 failed, est. 30 s left; shard 2: 0/4, waiting",
        "1/6 tests; shard 1: 1/2, 1 failed, est. 60 s left; shard 2: 0/4, waiting",
        "",
    ]


def test_a_failure_of_the_last_moment_is_written_on_close() -> None:
    stream = Terminal(live=False)
    bars = progress(stream)
    bars.tick(0.0)
    bars.feed(1, end("u", "a.py::t", "failed"))
    bars.close()
    assert stream.getvalue() == "FAILED (shard 1) a.py::t\n"


@pytest.mark.parametrize(
    ("records", "counts"),
    [
        pytest.param([], "0/2", id="as planned"),
        pytest.param(
            [
                {
                    "kind": "collected",
                    "unit": "u",
                    "ids": ["a.py::t[1]", "a.py::t[2]", "a.py::new", "a.py::other"],
                }
            ],
            "0/3",
            id="collected: the unit's own tests",
        ),
        pytest.param([end("u", "a.py", "collection_error")], "1/1", id="the file as a whole"),
        pytest.param([end("u", "a.py::t"), end("u", "a.py::t")], "1/2", id="one test twice"),
        pytest.param([end("u", f"a.py::t{n}") for n in range(5)], "5/5", id="more than planned"),
        pytest.param([end("v", "b.py::t")], "0/2", id="another shard's unit"),
        pytest.param([{"kind": "note", "text": "x"}], "0/2", id="a note"),
    ],
)
def test_counts(records: list[dict[str, Any]], counts: str) -> None:
    stream = Terminal()
    bars = progress(stream)
    for record in records:
        bars.feed(1, record)
    bars.tick(1.0)
    bar = next(line for line in stream.screen() if line.startswith("shard 1"))
    assert f" {counts} " in bar + " "


def test_a_new_try_forgets_what_ran() -> None:
    stream = Terminal()
    bars = progress(stream)
    bars.feed(1, start("u", "a.py::t", 1.0))
    bars.feed(1, JOB)
    bars.tick(2.0)
    assert "running" not in stream.getvalue()


@pytest.mark.parametrize(
    ("before", "line"),
    [
        pytest.param([], "0/2  waiting (Resources)", id="before its first job"),
        pytest.param(
            [JOB, start("u", "a.py::t", 1.0), end("u", "a.py::t", "failed"), start("u", "a.py::x", 1.0)],
            "1/2  waiting (Resources)  1 failed",
            id="before its second: nothing runs, and what ended stays",
        ),
    ],
)
def test_a_shard_in_the_queue_says_what_it_waits_for(before: list[dict[str, Any]], line: str) -> None:
    stream = Terminal()
    bars = progress(stream)
    for record in before:
        bars.feed(1, record)
    bars.state(1, ShardState("waiting", "Resources"))
    bars.state(9, ShardState("waiting"))
    bars.tick(1.0)
    shown = next(line for line in stream.screen() if line.startswith("shard 1"))
    assert " ".join(shown.split("]")[1].split()) == " ".join(line.split())
    bars.feed(1, JOB)
    bars.tick(2.0)
    assert "Resources" not in "".join(stream.screen())


@pytest.mark.parametrize(("elsewhere", "shown"), [(True, False), (False, True)])
def test_the_cpu_pool_has_a_bar_if_it_runs_here(elsewhere: bool, shown: bool) -> None:
    stream = Terminal()
    progress(stream, elsewhere=elsewhere).tick(0.0)
    assert ("cpu pool" in stream.getvalue()) is shown


def test_a_low_terminal_counts_what_it_does_not_show() -> None:
    stream = Terminal(lines=4)
    bars = progress(stream, elsewhere=False)
    bars.tick(0.0)
    assert stream.screen()[1] == "and 2 more shards"


def test_a_terminal_that_gets_narrower_is_cleared_of_broken_bars() -> None:
    stream = Terminal(columns=100)
    bars = progress(stream)
    bars.feed(1, start("u", "a.py::" + "x" * 99, 0.0))
    bars.tick(1.0)
    assert max(map(len, stream.screen())) == 99
    stream.size = (50, 24)
    written = len(stream.getvalue())
    bars.tick(2.0)
    assert stream.getvalue()[written:].startswith("\r\x1b[3A\x1b[J")  # 99 columns broke into two lines


NAMES = st.text(st.one_of(st.sampled_from("\x1b\r\n:[]#界\u202e"), st.characters()), min_size=1)


@given(st.lists(st.tuples(NAMES, NAMES), max_size=4), st.integers(1, 120), st.booleans())
def test_hostile_names_stay_text_and_fit(tests: list[tuple[str, str]], columns: int, live: bool) -> None:
    stream = Terminal(live=live, columns=columns)
    bars = progress(stream, NO_COLOR="1")
    bars.tick(0.0)
    for name, message in tests:
        bars.feed(1, start("u", name, 1.0))
        bars.tick(40.0)
        bars.feed(1, end("u", name, "failed", message=message))
    bars.tick(80.0)
    bars.close()
    text = re.sub(r"\x1b\[(?:\?25[lh]|\d+A|J)|\r", "", stream.getvalue()) if live else stream.getvalue()
    assert "\x1b" not in text
    assert "##[" not in text
    assert not any(line.strip().startswith("::") for line in text.split("\n"))
    assert not live or all(width_of(line) <= max(1, columns - 1) for line in stream.screen())


class Broken(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_broken_stream_ends_the_progress_not_the_run() -> None:
    bars = progress(Broken())
    bars.tick(0.0)
    bars.feed(1, end("u", "a.py::t", "failed"))
    bars.tick(1.0)
    bars.close()


def test_a_stream_without_the_character_gets_an_escape() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    bars = Progress(PLAN, stream, environ={})
    bars.feed(1, end("u", "a.py::é", "failed"))
    bars.tick(0.0)
    assert raw.getvalue() == b"FAILED (shard 1) a.py::\\xe9\n"


def test_records_of_unknown_shards_are_ignored() -> None:
    stream = Terminal()
    bars = progress(stream)
    bars.feed(9, end("u", "a.py::t", "failed"))
    bars.tick(0.0)
    assert "FAILED" not in stream.getvalue()


def read(master: int) -> str:
    try:
        return os.read(master, 1 << 16).decode()
    except OSError:  # the other end is closed, and all that it wrote is read
        return ""


def test_on_a_real_terminal() -> None:
    """The size comes from the terminal, before and after a resize."""
    master, slave = os.openpty()
    try:
        with open(slave, "w", encoding="utf-8", closefd=True) as stream:
            bars = Progress(PLAN, stream, environ={"TERM": "xterm"}, elsewhere=True)
            for columns in (100, 40):
                fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                bars.feed(1, start("u", "a.py::" + "x" * 200, 0.0))
                bars.tick(1000.0 - columns)
            bars.close()
        shown = "".join(iter(lambda: read(master), ""))
    finally:
        os.close(master)
    lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "", shown).split("\n")
    assert max(map(len, lines)) == 99
    assert max(map(len, lines[-3:])) <= 39
    assert shown.endswith("\x1b[?25h")


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (81, "FAILED (shard 1) packages/data/tests/test_memory.py::test_copy: assert 0 == 1"),
        (70, "FAILED (shard 1) packages/data/tests/test_memory.py::test_copy: as..."),
        (51, "FAILED (shard 1) packages/d...memory.py::test_copy"),
        (12, "FAILED (..."),
    ],
)
def test_of_a_failure_the_name_goes_before_the_message(columns: int, line: str) -> None:
    stream = Terminal(columns=columns)
    bars = progress(stream)
    nodeid = "packages/data/tests/test_memory.py::test_copy"
    bars.feed(1, end("u", nodeid, "failed", message="assert 0 == 1"))
    bars.tick(1.0)
    assert stream.screen()[0] == line
