"""What the commands say gets out, is harmless, and fails for no reader."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest

from gpuci.commands.output import complain, say, show, show_document, show_log
from gpuci.errors import ConfigError, GpuciError


@pytest.fixture
def unread() -> Iterator[TextIO]:
    """A pipe whose reader has left (`| head`); closing it fails unless what is in it went elsewhere."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:
        yield stream


def test_a_reader_that_left_is_no_error(unread: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", unread)
    show("the report\n")
    show("more of it\n")


def test_nobody_has_to_listen(unread: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", unread)
    say("found 3 tests")
    complain(ConfigError("no tests", then="write some"))


def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(GpuciError, match="standard output can't be written: No space left"):
            show("the report\n")


def test_what_a_stream_cannot_hold_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1"))
    show("\xfc \u2192 \udcff\n")
    assert raw.getvalue() == b"\xfc \\u2192 \\udcff\n"


def test_an_error_is_a_page_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    path = "very/long/" * 9
    complain(
        ConfigError("it " * 30 + "is", why="\x1b[31mred\x1b[0m", then=f"look at {path} and " + "on " * 20)
    )
    assert capsys.readouterr().err.splitlines() == [
        "error: " + ("it " * 24).rstrip(),
        "  " + "it " * 6 + "is",
        "  why:  red",
        "  then: look at",
        f"        {path}",
        "        and " + ("on " * 20).rstrip(),
    ]


@pytest.mark.parametrize(
    "tell", [say, lambda text: complain(GpuciError(text)), show], ids=["say", "complain", "show"]
)
@pytest.mark.parametrize("blanks", range(60, 90))
def test_no_line_is_a_command_wherever_it_is_broken(
    tell: Callable[[str], None], blanks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    tell("x" * blanks + " ::error::a ##[add-matcher]b\n ::debug::d")
    out = "".join(capsys.readouterr())
    assert not re.search(r"(?:^|[\r\n])\s*::|##\[", out)
    assert "add-matcher" in out


def test_a_line_ends_at_a_carriage_return_too(capsys: pytest.CaptureFixture[str]) -> None:
    show("a\r::error::b\r\n\t::error::c\r\r::error::d")
    assert capsys.readouterr().out == "a\r|::error::b\r\n\t|::error::c\r\r|::error::d"


def test_a_document_is_no_command_and_stays_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"::error::": ["##[error]x", "####[a", "::debug::", "#"]}
    show_document(document)
    out = capsys.readouterr().out
    assert json.loads(out) == document
    assert "##[" not in out
    assert not re.search(r"^\s*::", out, re.MULTILINE)


def test_lines_of_a_log_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    show_log(["::group::a", "b", "::endgroup::"])
    assert capsys.readouterr().out == "::group::a\nb\n::endgroup::\n"
