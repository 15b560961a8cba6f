"""Rows to batches, batches to shards."""

from __future__ import annotations

from typing import Iterator, Sequence, TypeVar

Row = TypeVar("Row")


def batches(rows: Sequence[Row], size: int, *, drop_last: bool = False) -> Iterator[Sequence[Row]]:
    """Yield runs of `size` rows; the last may be shorter, or is dropped."""
    if size < 1:
        raise ValueError("a batch holds at least one row")
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        if len(batch) == size or not drop_last:
            yield batch


def pad(row: Sequence[int], length: int, value: int = 0) -> list[int]:
    """Return a row of exactly `length`; raises ValueError if it is longer."""
    if len(row) > length:
        raise ValueError(f"a row of {len(row)} does not fit into {length}")
    return [*row, *[value] * (length - len(row))]


def shard(rows: Sequence[Row], index: int, count: int) -> Sequence[Row]:
    """Return every `count`-th row from `index` on."""
    if not 0 <= index < count:
        raise ValueError(f"shard {index} of {count} does not exist")
    return rows[index::count]
