"""What a row of the fault table is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.cluster.faulting.trees import TreeSpec

if TYPE_CHECKING:
    from tests.cluster.faulting.scene import Scene

Plant = Callable[["Scene"], None]


@dataclass(frozen=True)
class Row:
    """A fault, planted by `plant` into one run.

    `variants` are taken in turn by repetitions. `alone`: it stops what other runs need. `leaves`: what the
    fault itself leaves behind or takes away (`scratch`: nobody is left on the node who could remove it;
    `results`: there is no place for them).
    """

    name: str
    plant: Plant
    times: int = 3
    variants: tuple[str, ...] = ("",)
    alone: bool = False
    tree: TreeSpec = field(default_factory=TreeSpec)
    slurm: Mapping[str, Any] = field(default_factory=dict)
    runtime: str = "none"
    actions: bool = False
    leaves: frozenset[str] = frozenset()

    def variant(self, repetition: int) -> str:
        """Which one a repetition (from 1) plants."""
        return self.variants[(repetition - 1) % len(self.variants)]


ROWS: dict[str, Row] = {}


def row(name: str, **settings: Any) -> Callable[[Plant], Plant]:
    """Declare a row by the function that plants its fault."""

    def declare(plant: Plant) -> Plant:
        if name in ROWS:
            raise ValueError(f"two rows {name}")
        ROWS[name] = Row(name, plant, **settings)
        return plant

    return declare
