"""The journal's second channel: frames in the job's log -> records. Pure.

A frame is `gpuci-frame NONCE {json}`. Test processes never learn the nonce, so that a line which a
test prints is not a frame.
"""

from __future__ import annotations

from gpuci.results.journal import Journal, read_record, read_records

WORD = "gpuci-frame"


def parse(log: str, nonce: str) -> Journal:
    """Read the frames of a log; raises ValueError for an empty nonce, nothing else.

    A frame may follow text that a test left without a line end.
    """
    if not nonce:
        raise ValueError("frames without a nonce could be written by any test")
    mark = f"{WORD} {nonce} "
    *lines, last = [line.partition(mark)[2] for line in log.split("\n")]
    framed = [line for line in lines if line]
    records = read_records(framed)
    end = read_record(last) if last else None
    return Journal(
        records=tuple(records) if end is None else (*records, end),
        torn=bool(last) and end is None,
        damaged=len(framed) - len(records),
    )
