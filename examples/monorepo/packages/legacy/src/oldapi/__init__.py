"""The first version of the API; only what old checkpoints need is kept working."""

from __future__ import annotations

VERSION = (1, 9)


def read_header(line: str) -> tuple[int, int]:
    """Return the version in `oldapi MAJOR.MINOR`; raises ValueError for another line."""
    name, _, version = line.partition(" ")
    if name != "oldapi":
        raise ValueError(f"not a checkpoint: {line!r}")
    major, minor = version.split(".")
    return int(major), int(minor)


def upgrade(record: dict[str, int]) -> dict[str, int]:
    """Rename the keys of version 1."""
    return {{"itr": "step"}.get(key, key): value for key, value in record.items()}
