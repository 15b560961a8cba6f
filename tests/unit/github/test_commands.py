"""Workflow commands as text, read back by the runner's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runner_log import Command, read_log, read_values

from gpuci.github import commands
from gpuci.reporting.live_log import MATCHERS

TEXT = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["::error::x", "##[error]x", "a\r::stop-commands::t", "%0A::debug::", "%250A", "a,b=c:d", "\n##[group]"]
)


@pytest.mark.parametrize(
    ("text", "properties", "line"),
    [
        ("a", {}, "::error::a"),
        ("", {"title": "", "line": 0}, "::error::"),
        ("50 %\r\n", {"title": "a:b,c", "line": 3}, "::error title=a%3Ab%2Cc,line=3::50 %25%0D%0A"),
    ],
)
def test_a_command_is_one_line(text: str, properties: dict[str, str | int], line: str) -> None:
    assert commands.command("error", text, **properties) == line


@given(text=TEXT, title=TEXT, file=TEXT, kind=st.sampled_from(["error", "warning", "notice"]))
def test_an_annotation_is_the_one_command_of_its_line(text: str, title: str, file: str, kind: str) -> None:
    log = read_log(commands.annotation(kind, text, title=title, file=file, line=3))
    (told,) = log.commands
    assert (told.name, log.text) == (kind, [])
    assert told.properties.keys() <= {"title", "file", "line"}
    assert read_log(told.data).commands == []
    assert told.properties.get("file", "") == (file if file.isprintable() else "")


def test_a_long_annotation_is_cut_and_shows_it() -> None:
    (told,) = read_log(commands.annotation("error", "x" * 5000, title="y" * 300)).commands
    assert (len(told.data), told.data[-4:]) == (4096, "x...")
    assert told.properties["title"] == "y" * 252 + "..."


def test_matchers_are_removed_by_their_owners() -> None:
    log = read_log(commands.remove_matchers(MATCHERS))
    assert log.commands == [Command("remove-matcher", {"owner": owner}, "") for owner in MATCHERS]


@given(st.dictionaries(st.from_regex("[a-z-]+", fullmatch=True), TEXT, max_size=4))
def test_values_come_out_as_they_went_in(values: dict[str, str]) -> None:
    text = "".join(
        commands.key_value(name, value, f"gpuci-{place:032x}")
        for place, (name, value) in enumerate(values.items())
    )
    assert read_values(text) == {name: value.removesuffix("\r") for name, value in values.items()}


def test_a_delimiter_that_stands_in_the_value_is_refused() -> None:
    with pytest.raises(ValueError, match="delimiter"):
        commands.key_value("a", "x\nEOF\nadmin=true", "EOF")


@pytest.mark.parametrize(("text", "size"), [("ab", 6), ("\u00e9", 4), ("\U0001f600", 6), ("\udc80", 4)])
def test_outputs_are_counted_in_utf_16(text: str, size: int) -> None:
    assert commands.output_size("n", text) == size


@given(st.lists(TEXT, max_size=20).map("\n".join), st.integers(len(commands.SUMMARY_CUT), 600))
def test_a_summary_fits_and_leaves_room_to_say_that_more_is_missing(markdown: str, room: int) -> None:
    text, whole = commands.summary_that_fits(markdown, room)
    assert len(text.encode()) <= room - (len(commands.SUMMARY_CUT) if whole else 0)
    if whole:
        assert text == markdown
    else:
        head = text.removesuffix(commands.SUMMARY_CUT)
        assert head != text
        assert (markdown + "\n").startswith(head)
