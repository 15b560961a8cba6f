"""What nodes learned of tests' needs -> wider targets and pieces. Pure.

The node knows the real marks, so what it learned wins over what was read from source, but it only ever
widens: a plan with more than a test needs is slower, one with less runs the test twice. It never wins
over the configuration: what runs as `cpu` or `skip` stays that, and a mark means what its rules say now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from math import fsum

from gpuci.config.model import Config
from gpuci.discovery.modes import path_modes
from gpuci.model import LearnedNeed, TestTarget
from gpuci.planning.estimate import Estimates
from gpuci.planning.needs import Need
from gpuci.planning.pieces import Piece, TestFile
from gpuci_node.contract import function_id

WIDENED = ("normal", "isolated")  # `serial` has all GPUs of the node already


def widen(target: TestTarget, learned: Mapping[str, LearnedNeed], config: Config) -> TestTarget:
    """The target with what was learned of its function; its profile is known."""
    need = learned.get(target.nodeid)
    if need is None or target.run_mode not in WIDENED:
        return target
    planned = Need(target.run_mode, target.gpus, config.profile(target.runs_on).name)
    wide = _wider(planned, need, config)
    return replace(target, run_mode=wide.mode, gpus=wide.gpus)


def split_off(
    file: TestFile,
    pieces: Sequence[Piece],
    owner: int,
    learned: Mapping[str, LearnedNeed],
    config: Config,
    estimates: Estimates,
) -> list[Piece]:
    """The pieces, behind them those of wider tests that the owner would run: the owner is the smaller for it.

    Those are single items of its functions, functions that only pytest knows, and any of an opaque file.
    """
    groups: dict[Need, list[str]] = {}
    for nodeid in _owned(file, pieces[owner], learned, config) if pieces and learned else ():
        need = _wider(pieces[owner].need, learned[nodeid], config)
        if need != pieces[owner].need:
            groups.setdefault(need, []).append(nodeid)
    made = [Piece(need, tuple(tests), fsum(map(estimates.item, tests))) for need, tests in groups.items()]
    rest = [_without(piece, made, estimates) if i == owner else piece for i, piece in enumerate(pieces)]
    return [*rest, *made]


def _owned(file: TestFile, owner: Piece, learned: Mapping[str, LearnedNeed], config: Config) -> list[str]:
    """The ids with a learned need that the owner would run, and that it can leave to a sibling."""
    modes = path_modes(config.modes)
    if owner.need.mode not in WIDENED or modes.mode(file.path) == "skip":
        return []  # the owner of a skipped file lists functions: it can leave nothing out
    others = {target.nodeid for target in file.targets}.difference(owner.tests)

    def owned(nodeid: str, function: str) -> bool:
        if nodeid != function and function in learned:
            return False  # the function goes as a whole
        return function not in others and modes.mode(function) != "skip"

    return [nodeid for nodeid in learned if owned(nodeid, function_id(nodeid))]


def _without(owner: Piece, made: Sequence[Piece], estimates: Estimates) -> Piece:
    gone = {nodeid for piece in made for nodeid in piece.tests}
    if not gone:
        return owner
    counted = gone.intersection(owner.tests)
    seconds = fsum([*map(estimates.item, counted), *map(estimates.measured, gone - counted)])
    tests = tuple(nodeid for nodeid in owner.tests if nodeid not in gone)
    return replace(owner, tests=tests, seconds=max(owner.seconds - seconds, 0.0))


def _wider(planned: Need, need: LearnedNeed, config: Config) -> Need:
    """At least what is planned, at most what the profile has; `alone` is mode serial."""
    most = config.profile(planned.profile).gpus
    gpus = need.gpus
    if need.mark:  # what it asks for today: the configuration may say another number, or nothing any more
        rules = [rule for rule in config.markers if fnmatchcase(need.mark, rule.name)]
        gpus = max((rule.gpus for rule in rules if rule.gpus is not None), default=0)
        if not rules:
            return planned
    if need.alone:
        return Need("serial", most, planned.profile)
    return planned._replace(gpus=min(max(planned.gpus, gpus), most))
