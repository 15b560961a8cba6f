"""Journals as nodes leave them: whole, torn, damaged, forged."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.results import journal

END = {"kind": "end", "unit": "u1", "nodeid": "a.py::t", "outcome": "passed", "seconds": {"call": 0.5}}
NOTE = {"kind": "note", "level": "info", "text": "hello"}


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def verdict_for(data: bytes) -> dict[str, object]:
    return {"journal": {"lines": data.count(b"\n"), "sha256": hashlib.sha256(data).hexdigest()}}


@pytest.mark.parametrize(
    ("data", "records", "torn", "damaged"),
    [
        pytest.param(b"", 0, False, 0, id="empty"),
        pytest.param(lines(END, NOTE), 2, False, 0, id="whole"),
        pytest.param(lines(END, NOTE)[:-1], 2, False, 0, id="last line complete, its end missing"),
        pytest.param(lines(END, NOTE)[:-9], 1, True, 0, id="torn last line"),
        pytest.param(lines(END) + b"\x00\xff\n" + lines(NOTE), 2, False, 1, id="binary in the middle"),
        pytest.param(lines(END) + b"\n\n" + lines(NOTE), 2, False, 0, id="blank lines"),
        pytest.param(b"[" * 100_000 + b"\n", 0, False, 1, id="nested too deep"),
        pytest.param(b'{"kind":"end"}\n', 0, False, 1, id="required fields missing"),
    ],
)
def test_reads_what_is_there(data: bytes, records: int, torn: bool, damaged: int) -> None:
    read = journal.parse(data)
    assert (len(read.records), read.torn, read.damaged) == (records, torn, damaged)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"kind": 3}, id="kind is a number"),
        pytest.param({"kind": None}, id="no kind"),
        pytest.param({"nodeid": ""}, id="empty node id"),
        pytest.param({"nodeid": ["a"]}, id="node id is a list"),
        pytest.param({"outcome": "great"}, id="unknown outcome"),
        pytest.param({"outcome": "elsewhere"}, id="an outcome that no node can see"),
        pytest.param({"outcome": ["passed"]}, id="outcome is a list"),
        pytest.param({"seconds": {"call": float("nan")}}, id="not a number of seconds"),
        pytest.param({"seconds": {"call": -1}}, id="negative seconds"),
        pytest.param({"seconds": {"call": 10**400}}, id="more seconds than a float holds"),
        pytest.param({"seconds": {"call": True}}, id="true seconds"),
        pytest.param({"seconds": 3}, id="seconds without phases"),
        pytest.param({"line": 1.5}, id="half a line"),
        pytest.param({"gpus": "01"}, id="gpus are a text"),
        pytest.param({"slot": 1}, id="slot is a number"),
        pytest.param({"message": None}, id="message is null"),
        pytest.param({"t": "now"}, id="time is a text"),
        pytest.param({"unplanned": 1}, id="flag is a number"),
    ],
)
def test_a_record_with_a_wrong_field_is_no_record(change: dict[str, object]) -> None:
    assert journal.read_record(json.dumps(END)) == END
    assert journal.read_record(json.dumps({**END, **change})) is None


def test_unknown_kinds_and_fields_pass() -> None:
    later = {"kind": "peak", "bytes": 3}
    assert journal.read_record(json.dumps(later)) == later
    assert journal.read_record(json.dumps({**END, "cuda": True})) == {**END, "cuda": True}


@given(st.binary(max_size=200))
def test_never_raises(data: bytes) -> None:
    read = journal.parse(data)
    assert len(read.records) <= data.count(b"\n") + 1


@given(cut=st.integers(0, 400))
def test_a_cut_journal_gives_a_prefix_of_its_records(cut: int) -> None:
    data = lines(END, NOTE, END, NOTE)
    whole = journal.parse(data).records
    part = journal.parse(data[:cut])
    assert part.records == whole[: len(part.records)]
    assert len(part.records) >= data[:cut].count(b"\n")


@pytest.mark.parametrize(
    ("left", "verdict", "says"),
    [
        pytest.param(lines(END, NOTE), verdict_for(lines(END, NOTE)), "", id="they agree"),
        pytest.param(lines(END), None, "", id="no verdict: nothing to disagree with"),
        pytest.param(
            lines(END), verdict_for(lines(END, NOTE)), "has 1 lines, the verdict counts 2", id="lost"
        ),
        pytest.param(lines(NOTE), verdict_for(lines(END)), "hash differs", id="changed"),
        pytest.param(lines(END), {}, "which journal", id="verdict without journal"),
        pytest.param(lines(END), {"journal": 3}, "which journal", id="verdict with a wrong journal"),
        pytest.param(
            lines([]), verdict_for(lines([])), "1 lines of the journal are not records", id="damaged"
        ),
    ],
)
def test_problem(left: bytes, verdict: dict[str, object] | None, says: str) -> None:
    found = journal.problem(left, verdict)
    assert says in found
    assert bool(found) == bool(says)
