"""Frames in a log between the output of hostile tests."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.results import frames

NONCE = "4fd1c0"
NOTE = {"kind": "note", "text": "hello"}


def frame(record: object = NOTE, nonce: str = NONCE) -> str:
    return f"gpuci-frame {nonce} {json.dumps(record)}\n"


@pytest.mark.parametrize(
    ("log", "records", "torn", "damaged"),
    [
        pytest.param("", 0, False, 0, id="empty"),
        pytest.param("hello\n" + frame() + "bye\n" + frame(), 2, False, 0, id="between output"),
        pytest.param("..F" + frame(), 1, False, 0, id="behind output without a line end"),
        pytest.param(frame().replace("\n", "\r\n"), 1, False, 0, id="line ends of a terminal"),
        pytest.param(frame(nonce="guess"), 0, False, 0, id="another nonce"),
        pytest.param(frame(nonce=NONCE + "0"), 0, False, 0, id="a longer nonce"),
        pytest.param(frame() + frame()[:-4], 1, True, 0, id="torn last frame"),
        pytest.param(frame([]) + frame(), 1, False, 1, id="not a record"),
    ],
)
def test_reads_frames(log: str, records: int, torn: bool, damaged: int) -> None:
    read = frames.parse(log, NONCE)
    assert (len(read.records), read.torn, read.damaged) == (records, torn, damaged)


def test_an_empty_nonce_is_refused() -> None:
    with pytest.raises(ValueError, match="nonce"):
        frames.parse(frame(nonce=""), "")


@given(st.text().filter(lambda text: NONCE not in text))
def test_no_output_is_a_frame(output: str) -> None:
    assert frames.parse(output, NONCE).records == ()
