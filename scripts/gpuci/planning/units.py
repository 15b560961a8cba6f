"""All targets of a manifest -> numbered units. Pure; one file at a time in `grouping.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from gpuci.config.model import Config
from gpuci.model import LearnedNeed, Manifest, SkippedTest, TestTarget, Unit
from gpuci.planning.estimate import Estimates
from gpuci.planning.grouping import group
from gpuci.planning.needs import refuse_impossible, schedule_marks, why_skipped
from gpuci.planning.pieces import TestFile

NOTHING: Mapping[str, LearnedNeed] = MappingProxyType({})


@dataclass(frozen=True)
class Units:
    """The units of a run in the order of their files, the targets in them, and what was left out."""

    units: tuple[Unit, ...]
    targets: tuple[str, ...]
    skipped: tuple[SkippedTest, ...]
    unknown_durations: int
    notes: tuple[str, ...]


def make_units(
    manifest: Manifest,
    config: Config,
    estimates: Estimates,
    event: str,
    learned: Mapping[str, LearnedNeed] = NOTHING,
) -> Units:
    """Group the targets of a manifest into units; `learned` are needs by function id or node id.

    Raises ConfigError listing every target that asks for an unknown profile or for more GPUs than its
    profile has.
    """
    scheduled = schedule_marks(manifest.targets, config, event)
    because = {target.nodeid: why_skipped(target, scheduled) for target in manifest.targets}
    refuse_impossible((target for target in manifest.targets if because[target.nodeid] is None), config)
    by_file = _by_file(learned)
    groups = [
        group(file, because, config, estimates, by_file.get(file.path, NOTHING))
        for file in files_of(manifest)
    ]
    return Units(
        _number([unit for file in groups for unit in file.units]),
        tuple(nodeid for file in groups for nodeid in file.targets),
        tuple(test for file in groups for test in file.skipped),
        sum(file.unknown_durations for file in groups),
        tuple(note for file in groups for note in file.notes),
    )


def _by_file(learned: Mapping[str, LearnedNeed]) -> dict[str, dict[str, LearnedNeed]]:
    found: dict[str, dict[str, LearnedNeed]] = defaultdict(dict)
    for nodeid, need in sorted(learned.items()):
        found[nodeid.partition("::")[0]][nodeid] = need
    return found


def files_of(manifest: Manifest) -> list[TestFile]:
    """The files that have targets or are opaque: in the order of the roots, then those of no root."""
    targets: dict[tuple[str, str], list[TestTarget]] = defaultdict(list)
    for target in manifest.targets:
        targets[target.root, target.test_path].append(target)
    broken = {error.path: f"can't be read: {error.message}" for error in manifest.errors}
    opaque = {
        (root.path, path): root.opaque.get(path) or broken.get(path)
        for root in manifest.roots
        for path in root.files
    }
    files = [*opaque, *sorted(targets.keys() - opaque.keys())]
    return [
        _test_file(key, opaque.get(key), targets[key]) for key in files if key in targets or opaque.get(key)
    ]


def _test_file(key: tuple[str, str], opaque: str | None, targets: Sequence[TestTarget]) -> TestFile:
    in_order = sorted(targets, key=lambda target: (target.line, target.nodeid))
    reason = opaque or next((target.opaque for target in in_order if target.opaque), None)
    return TestFile(*key, reason, tuple(in_order))


def _number(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Give units ids in their order, all of one width: u001, u002, …"""
    width = max(3, len(str(len(units))))
    return tuple(replace(unit, id=f"u{number:0{width}}") for number, unit in enumerate(units, start=1))
