"""A job's log in pieces of any size, and what a job left, held against it."""

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuci.execution.log import LogReader
from gpuci.execution.outputs import read_outputs
from gpuci.results.journal import REPLACED, is_record

NONCE = "0123456789abcdef"
JOURNAL: list[dict[str, Any]] = [
    {"kind": "job", "node": "gpu001"},
    {"kind": "start", "unit": "u1", "nodeid": "a.py::test_ä"},
    {"kind": "end", "unit": "u1", "nodeid": "a.py::test_ä", "outcome": "passed"},
]
LINES = [json.dumps(record).encode() + b"\n" for record in JOURNAL]
DATA = b"".join(LINES)


def frame(record: dict[str, Any], nonce: str = NONCE) -> bytes:
    return f"gpuci-frame {nonce} {json.dumps(record)}\n".encode()


def verdict(data: bytes = DATA, **fields: Any) -> dict[str, Any]:
    journal = {"lines": data.count(b"\n"), "sha256": hashlib.sha256(data).hexdigest()}
    return {"verdict": "passed", "journal": journal, **fields}


LOG = b"".join(
    [
        "gpuci: schön\n".encode(),
        frame(JOURNAL[0]),
        b"\xff\x00 rubbish without an end",
        frame(JOURNAL[1]),
        frame({"kind": "output", "slot": "gw0", "text": "hello"}),
        frame({"kind": "end", "unit": "u1", "nodeid": "a.py::test_b", "outcome": "failed"}, "another nonce"),
        frame(JOURNAL[2]),
        frame({"kind": "verdict", **verdict()}),
        frame({"kind": "over", "code": 0}),
    ]
)


def fed(data: bytes = LOG) -> LogReader:
    log = LogReader(NONCE)
    log.feed(data)
    return log


@given(st.lists(st.integers(0, len(LOG)), max_size=12))
def test_pieces_of_any_size_give_the_same(cuts: list[int]) -> None:
    log = LogReader(NONCE)
    shown = []
    places = [0, *sorted(cuts), len(LOG)]
    for start, end in itertools.pairwise(places):
        shown += log.feed(LOG[start:end])
    assert log.records == JOURNAL
    assert [record["kind"] for record in shown] == ["job", "start", "output", "end"]
    assert (log.lines, log.digest, log.end_code) == (3, hashlib.sha256(DATA).hexdigest(), 0)
    assert log.verdict is not None
    assert log.text[0] == "gpuci: schön"


def test_a_line_that_never_ends_is_not_kept_and_hides_no_frame() -> None:
    log = LogReader(NONCE)
    log.MOST_HELD = 100
    for _ in range(1000):
        log.feed(b"x" * 40)
    assert log.feed(frame(JOURNAL[0])) == [JOURNAL[0]]
    log.feed(b"x" * 101)
    log.feed(b"\n")
    log.feed(b"x" * 1_000_000 + b"\n")
    assert max(map(len, log.text)) <= 4000


def test_an_exit_code_that_is_none_is_an_end_all_the_same() -> None:
    assert fed(frame({"kind": "over", "code": "x"})).end_code == -1


def left(folder: Path, journal: bytes | None, said: dict[str, Any] | None) -> Path:
    if journal is not None:
        (folder / "journal.jsonl").write_bytes(journal)
    if said is not None:
        (folder / "verdict.json").write_text(json.dumps(said))
    return folder


def test_a_whole_journal_counts(tmp_path: Path) -> None:
    outputs = read_outputs(left(tmp_path, DATA, verdict(reason="from the file")), LogReader(NONCE))
    assert (list(outputs.records), outputs.problem) == (JOURNAL, "")
    assert outputs.verdict is not None
    assert outputs.verdict["reason"] == "from the file"


@pytest.mark.parametrize(
    ("journal", "said", "warns"),
    [
        (DATA[:-9], verdict(), True),
        (None, verdict(), False),
        (DATA, None, False),
        (None, None, False),
        (DATA.replace(b"passed", b"failed"), verdict(), True),
        (DATA + LINES[1], None, True),
    ],
    ids=["torn", "no journal", "no verdict", "nothing", "changed", "a record more"],
)
def test_a_log_that_holds_the_verdicts_journal_stands_in_for_files(
    tmp_path: Path, journal: bytes | None, said: dict[str, Any] | None, warns: bool
) -> None:
    """A file that is there and is another one is told; one that is missing hides nothing."""
    outputs = read_outputs(left(tmp_path, journal, said), fed())
    assert (list(outputs.records), outputs.problem) == ([*JOURNAL, *[REPLACED] * warns], "")
    assert outputs.verdict is not None
    assert is_record(REPLACED)


@pytest.mark.parametrize(
    ("journal", "log", "problem"),
    [
        (DATA[:-9], LOG.replace(frame(JOURNAL[1]), b""), "has 2 lines, the verdict counts 3"),
        (None, frame(JOURNAL[0]), "can't be read"),
    ],
    ids=["both torn", "neither"],
)
def test_what_neither_holds_is_a_problem(
    tmp_path: Path, journal: bytes | None, log: bytes, problem: str
) -> None:
    outputs = read_outputs(left(tmp_path, journal, verdict()), fed(log))
    assert problem in outputs.problem
    assert REPLACED not in outputs.records


@pytest.mark.parametrize(
    "journal", [DATA, LINES[0], None], ids=["the file has more", "the log has more", "no file"]
)
def test_without_a_verdict_the_one_that_has_more_counts(tmp_path: Path, journal: bytes | None) -> None:
    log = fed(frame(JOURNAL[0]) + frame(JOURNAL[1]))
    outputs = read_outputs(left(tmp_path, journal, None), log)
    assert outputs.verdict is None
    assert list(outputs.records) == (JOURNAL if journal == DATA else JOURNAL[:2])
