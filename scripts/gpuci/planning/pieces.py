"""What the steps from a file to its units hand on. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpuci.model import TestTarget
from gpuci.planning.needs import Need


@dataclass(frozen=True)
class TestFile:
    """A file with its targets in definition order; `opaque` says why the reading is not certain."""

    __test__ = False

    root: str
    path: str
    opaque: str | None
    targets: tuple[TestTarget, ...]


@dataclass(frozen=True)
class Piece:
    """A unit to be: `tests` are ids in definition order, `seconds` what they are expected to take."""

    need: Need
    tests: tuple[str, ...]
    seconds: float
