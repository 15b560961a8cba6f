"""Who is to run a test, and who may speak of it. Pure."""

from __future__ import annotations

from gpuci.model import Plan, Unit
from gpuci_node.contract import Select, indexed, selects

CPU_POOL = 0  # the index under which the units that need no GPU run


def shard_folder(index: int, attempt: int = 1) -> str:
    """The folder of one try of a shard in the run's directory."""
    folder = "cpu" if index == CPU_POOL else f"shard-{index}"
    return folder if attempt == 1 else f"{folder}-try-{attempt}"


class Ownership:
    """A plan, indexed by file, unit and shard."""

    def __init__(self, plan: Plan) -> None:
        self.units: dict[str, Unit] = {unit.id: unit for unit in plan.units}
        self.shards: dict[str, int] = {unit: shard.index for shard in plan.shards for unit in shard.units}
        self.shards.update((unit, CPU_POOL) for unit in plan.cpu_units)
        self.selects: dict[str, Select] = {unit.id: indexed(unit.select) for unit in plan.units}
        self._of_file: dict[str, list[str]] = {}
        self._owners: dict[str, str | None] = {}
        for unit in plan.units:
            self._of_file.setdefault(unit.file, []).append(unit.id)

    def unit_of(self, nodeid: str) -> str | None:
        """The id of the unit that is to run `nodeid`, None for a test that no unit of the plan runs."""
        owner = self._owners.get(nodeid, "")
        if owner == "":
            owner = self._owners[nodeid] = self._find(nodeid)
        return owner

    def _find(self, nodeid: str) -> str | None:
        file = nodeid.partition("::")[0]
        for unit in self._of_file.get(file, ()):
            if selects(self.selects[unit], nodeid):
                return unit
        return None

    def may_report(self, shard: int, unit: str, nodeid: str) -> bool:
        """Whether a record of `unit` in the journal of `shard` counts for `nodeid`.

        A shard's journal can be forged by the tests that it runs, so it speaks for its own tests only.
        """
        if self.shards.get(unit) != shard:
            return False
        if "::" not in nodeid:
            return True
        owner = self.unit_of(nodeid)
        return owner is None or owner == unit or self.shards.get(owner) == shard
