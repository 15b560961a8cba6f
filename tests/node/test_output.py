"""What test processes print: cut into lines, without pytest's own report, up to a limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuci_node.processes import REPORTER_BEGIN, REPORTER_END
from gpuci_node.supervisor.output import LONGEST, STACKS, Allowance, Printed, unmarked


def allowed(size: int) -> Allowance:
    allowance = Allowance()
    allowance.give(size)
    return allowance


def printed(chunks: list[bytes], size: int = 1 << 30) -> tuple[str, int]:
    """What comes of some chunks, and how much was dropped."""
    allowance, output = allowed(size), Printed()
    text = "".join(output.feed(chunk, allowance) for chunk in chunks)
    return text + output.end(allowance), output.dropped


@given(st.lists(st.binary(max_size=9) | st.just(b"\n") | st.just("ä€\n".encode())))
def test_nothing_is_lost_however_the_stream_is_cut(chunks: list[bytes]) -> None:
    data = unmarked(b"".join(chunks))
    assert printed([unmarked(chunk) for chunk in chunks]) == (data.decode("utf-8", "replace"), 0)


def test_a_character_that_two_reads_share_is_whole() -> None:
    data = "größe\n".encode()
    assert printed([data[:3], data[3:]]) == ("größe\n", 0)


def test_lines_come_as_they_end() -> None:
    allowance, output = allowed(100), Printed()
    assert output.feed(b"one\ntw", allowance) == "one\n"
    assert output.feed(b"o\n", allowance) == "two\n"


def test_a_line_without_end_comes_in_pieces() -> None:
    allowance, output = allowed(1 << 30), Printed()
    assert output.feed(b"x" * (LONGEST + 5), allowance) == "x" * LONGEST
    assert output.end(allowance) == "x" * 5


def test_what_is_beyond_the_limit_is_counted() -> None:
    assert printed([b"12345\n", b"12345\n", b"1\n"], size=8) == ("12345\n1\n", 6)


def test_stacks_are_more_than_the_limit() -> None:
    allowance, output = allowed(4), Printed()
    assert output.feed(b"12345\n", allowance) == ""
    allowance.give(STACKS)
    assert output.feed(b"12345\n", allowance) == "12345\n"


def test_where_nothing_is_wanted_nothing_is_kept_or_counted() -> None:
    allowance, output = Allowance(), Printed()
    assert output.feed(b"text\nrest", allowance) == output.end(allowance) == ""
    assert output.dropped == 0


MARKED = (
    b"a\n"
    + REPORTER_BEGIN
    + b"== header\n2 of 3\n"
    + REPORTER_END
    + b"b\n"
    + REPORTER_BEGIN
    + b"."
    + REPORTER_END
)


@given(st.integers(0, len(MARKED)))
def test_pytests_report_is_left_out_however_the_stream_is_cut(cut: int) -> None:
    assert printed([MARKED[:cut], MARKED[cut:]]) == ("a\nb\n", 0)


def test_the_tail_of_a_crash_has_all_of_it() -> None:
    assert unmarked(MARKED) == b"a\n== header\n2 of 3\nb\n."
