"""Hostile text is made harmless, harmless text stays as it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuci.reporting import text

HOSTILE = st.text(
    st.one_of(
        st.sampled_from("\x1b\r\n\t\x07\x9b\x9c\u202e\u2066\u200b\u2028\u3000[]#:`|<>@&;m0 \\/a界\ud800"),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        pytest.param("plain text: a::b #1 [x]", "plain text: a::b #1 [x]", id="harmless"),
        pytest.param("über 界 é", "über 界 é", id="other scripts"),
        pytest.param("a\nb\n", "a\nb\n", id="lines stay"),
        pytest.param("a\tb", "a   b", id="tab"),
        pytest.param("\x1b[31mred\x1b[0m", "red", id="colour"),
        pytest.param("\x9b31mred\x9b0m", "red", id="colour with an 8-bit CSI"),
        pytest.param("\x1b[2J\x1b[1;1Hx", "x", id="clear and move"),
        pytest.param("\x1b]0;title\x07x", "x", id="window title"),
        pytest.param("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "click", id="OSC 8 link"),
        pytest.param("\x1bPq#0\x1b\\x", "x", id="device control string"),
        pytest.param("\x1b]0;no end\nnext", "\nnext", id="a string without end costs its line only"),
        pytest.param("x\x1b", "x\\x1b", id="escape alone"),
        pytest.param("\x1b\x1b[0m[31m", "\\x1b[31m", id="escape made by removing another"),
        pytest.param("10%\r50%\r100%", "100%", id="progress bar"),
        pytest.param("done\r\nnext", "done\nnext", id="Windows line end"),
        pytest.param("x\r", "x", id="return at the end"),
        pytest.param("a\x08\x00", "a\\x08\\x00", id="control characters"),
        pytest.param("a\u202eb\u2066c", "a\\u202eb\\u2066c", id="bidi override"),
        pytest.param("a\u200bb\ufeff", "a\\u200bb\\ufeff", id="unseen characters"),
        pytest.param("a\u2028b\x85c\x0bd", "a\\u2028b\\x85c\\x0bd", id="other line ends"),
        pytest.param("\ud800", "\\ud800", id="lone surrogate"),
        pytest.param("##[error]x ##[group]y", "## [error]x ## [group]y", id="old workflow command anywhere"),
        pytest.param("##\x1b[0m[error]x", "## [error]x", id="old command made by removing a colour"),
        pytest.param("::error::x", "|::error::x", id="workflow command"),
        pytest.param("a\n  ::set-output::x", "a\n  |::set-output::x", id="workflow command after blanks"),
        pytest.param("\u3000::x", "\u3000|::x", id="workflow command after a wide blank"),
        pytest.param("\x1b[1m::add-mask::x", "|::add-mask::x", id="workflow command behind a colour"),
        pytest.param("a ::error::x", "a ::error::x", id="not at the start: no command"),
    ],
)
def test_clean(raw: str, clean: str) -> None:
    assert text.clean(raw) == clean


@given(HOSTILE)
def test_clean_is_harmless(raw: str) -> None:
    clean = text.clean(raw)
    assert "##[" not in clean
    assert not any(line.strip().startswith("::") for line in clean.splitlines())
    assert all(char.isprintable() or char.isspace() for char in clean)
    assert not set(clean) & set("\x1b\r\x9b\x07\u202e\u2066\u2028")
    assert clean.encode().decode() == clean


@given(HOSTILE)
def test_clean_twice_is_clean_once(raw: str) -> None:
    assert text.clean(text.clean(raw)) == text.clean(raw)


@given(st.text(st.sampled_from("abc XYZ.,_-()=é界\n")))
def test_harmless_text_stays(raw: str) -> None:
    assert text.clean(raw) == raw


@given(HOSTILE)
def test_one_line_is_one_line(raw: str) -> None:
    assert len(text.one_line(raw).splitlines()) <= 1


@given(HOSTILE, st.integers(0, 60))
def test_clipped_text_fits(raw: str, width: int) -> None:
    line = text.one_line(raw)
    for clipped in (text.clip(line, width), text.clip_middle(line, width)):
        assert text.width_of(clipped) <= width
        assert len(clipped) <= width
        assert clipped == line or text.width_of(line) > width


@pytest.mark.parametrize(
    ("function", "width", "clipped"),
    [
        (text.clip, 10, "pkg/tes..."),
        (text.clip_middle, 10, "pkg...beta"),
        (text.clip, 2, ".."),
        (text.clip_middle, 3, "..."),
    ],
)
def test_clip(function: object, width: int, clipped: str) -> None:
    assert callable(function)
    assert function("pkg/tests/a.py::beta", width) == clipped


@given(HOSTILE, st.integers(12, 60))
def test_wrapped_lines_fit_and_keep_every_word(raw: str, width: int) -> None:
    line = text.one_line(raw)
    lines = text.wrap(line, width, first="- ", rest="  ")
    assert all(text.width_of(one) <= width for one in lines)
    assert "".join(one[2:] for one in lines).replace(" ", "") == "".join(line.split())


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("see tests/test_a.py::test_ring_of_all", ["see", "tests/test_a.py::", "test_ring_of_all"]),
        ("see tests/test_a_ring_of_all", ["see", "tests/test_a_ring_of", "_all"]),
    ],
)
def test_a_long_word_is_cut_where_a_name_ends(line: str, lines: list[str]) -> None:
    assert text.wrap(line, 20) == lines


def test_a_whole_word_can_be_copied() -> None:
    assert text.wrap("see tests/test_a.py::test_ring_of_all", 20, whole=True, rest="  ") == [
        "see",
        "  tests/test_a.py::test_ring_of_all",
    ]


@pytest.mark.parametrize(
    ("raw", "count", "shown"),
    [
        ("", 3, ([], 0, 0)),
        ("\n\n", 3, ([], 0, 0)),
        ("a\nb\n", 3, (["a", "b"], 0, 0)),
        ("\na\nb\n\nc\n\n", 2, (["", "c"], 2, 0)),
        ("a", 0, ([], 1, 0)),
    ],
)
def test_of_output_the_last_lines_are_shown(raw: str, count: int, shown: tuple[list[str], int, int]) -> None:
    assert text.excerpt(raw, count) == shown


CRASH = """\
tests/test_a.py .Fatal Python error: Segmentation fault

Thread 0x00007fc5e0000000 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Current thread 0x00007fc5ebe92b80 (most recent call first):
  File "/tree/tests/test_a.py", line 7 in test_crashes
  File "/env/_pytest/python.py", line 194 in pytest_pyfunc_call
  File "<frozen runpy>", line 88 in _run_code

Current thread's C stack trace (most recent call first):
  Binary file "/usr/lib/libc.so.6", at pthread_kill+0x12d [0x7f]
  <truncated rest of calls>

Extension modules: numpy.core (total: 1)
"""


def test_of_a_stack_dump_the_newest_calls_are_shown() -> None:
    shown = text.excerpt(CRASH, 2)
    assert [line.split()[-1] for line in shown.lines] == ["first):", "test_crashes"]
    assert (shown.above, shown.below) == (5, 8)


def test_of_a_stack_dump_the_frames_of_pytest_are_left_out() -> None:
    shown = text.excerpt(CRASH, 40)
    assert shown.lines[-1].endswith("test_crashes")
    assert (shown.above, shown.below) == (5, 8)


def test_all_of_a_stack_dump_can_be_had() -> None:
    assert text.excerpt(CRASH, None) == (CRASH.rstrip().split("\n"), 0, 0)


def test_output_behind_a_stack_dump_is_the_end_again() -> None:
    assert text.excerpt(CRASH + "E   assert 0\n", 1) == (["E   assert 0"], 15, 0)


@pytest.mark.parametrize(
    ("line", "clipped"),
    [
        ('  File "/tree/tests/test_a.py", line 7 in test_b', "  File ...e 7 in test_b"),
        ("/tree/tests/test_a.py:7: AssertionError", "/tree/t...ssertionError"),
        ("E       assert left == right", "E       assert left ..."),
    ],
)
def test_a_place_keeps_its_end(line: str, clipped: str) -> None:
    assert text.clip_output(line, 23) == clipped


@given(HOSTILE)
def test_inline_code_holds_no_markdown(raw: str) -> None:
    inner = text.inline_code(raw).removeprefix("<code>").removesuffix("</code>")
    without = re.sub(r"&#\d+;", "", inner)
    assert not set(without) & set("\\`*_{}[]()<>#+!|~&@:\"'=$^.\n\r")


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("a b-c/d", "<code>a b-c/d</code>"),
        ("</code>@all", "<code>&#60;/code&#62;&#64;all</code>"),
        ("x|y", "<code>x&#124;y</code>"),
        ("", "<code>&#32;</code>"),
    ],
)
def test_inline_code(raw: str, code: str) -> None:
    assert text.inline_code(raw) == code


@given(HOSTILE)
@example("a\n```\nb")
@example("`````")
def test_nothing_closes_a_fence(raw: str) -> None:
    opening, *body, closing = text.fence(raw).split("\n")
    ticks = opening.removesuffix("text")
    assert closing == ticks
    assert set(ticks) == {"`"}
    assert not any(ticks in line for line in body)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.00 s"),
        (0.004, "0.00 s"),
        (9.99, "9.99 s"),
        (9.996, "10.0 s"),
        (59.9, "59.9 s"),
        (59.96, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.6, "1 h 00 min"),
        (7384, "2 h 03 min"),
    ],
)
def test_duration(seconds: float, words: str) -> None:
    assert text.duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "1 MiB"),
        (2**20 - 1, "1 MiB"),
        (300 * 2**20, "300 MiB"),
        (1023 * 2**20, "1023 MiB"),
        (2**30 - 1, "1.0 GiB"),
        (int(12.34 * 2**30), "12.3 GiB"),
        (640 * 2**30, "640.0 GiB"),
    ],
)
def test_size(count: int, words: str) -> None:
    assert text.size(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "1 s"), (9.4, "9 s"), (99.4, "99 s"), (99.5, "2 min"), (3569, "59 min"), (3571, "1 h 00 min")],
)
def test_an_estimate_is_rough(seconds: float, words: str) -> None:
    assert text.about(seconds) == words
