"""One test file -> its units: tests that share (mode, GPUs, profile), or a piece of them. Pure.

Of the units of a file exactly one runs "all" or {"except": …}: it owns the tests that only pytest knows
of. Its siblings list function ids. See docs/planning.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TypeVar

from gpuci.config.model import Config
from gpuci.discovery.modes import path_modes
from gpuci.model import LearnedNeed, SkippedTest, TestTarget, Unit
from gpuci.planning.cut import cut
from gpuci.planning.estimate import Estimates
from gpuci.planning.learned import split_off, widen
from gpuci.planning.makespan import in_words
from gpuci.planning.needs import Need, need
from gpuci.planning.pieces import Piece, TestFile
from gpuci_node.contract import Select, function_id

CAREFUL = ("cpu", "normal", "isolated", "serial")  # an opaque file gets the last of its targets' modes
CUT_MODES = ("normal", "isolated")


@dataclass(frozen=True)
class FileUnits:
    """The units of one file, not yet numbered (their id is empty), and the ids of the targets in them."""

    units: tuple[Unit, ...]
    targets: tuple[str, ...] = ()
    skipped: tuple[SkippedTest, ...] = ()
    unknown_durations: int = 0
    notes: tuple[str, ...] = ()


def group(
    file: TestFile,
    because: Mapping[str, str | None],
    config: Config,
    estimates: Estimates,
    learned: Mapping[str, LearnedNeed],
) -> FileUnits:
    """Make the units of a file; `because` says of each target id why it is left out, or None.

    `learned` are the needs that nodes found in this file, by function id or node id.
    """
    live = [target for target in file.targets if because[target.nodeid] is None]
    if file.opaque is None:
        live = [widen(target, learned, config) for target in live]
    reasons = [(target.nodeid, because[target.nodeid]) for target in file.targets]
    skipped = tuple(SkippedTest(nodeid, reason) for nodeid, reason in reasons if reason is not None)
    modes = path_modes(config.modes)
    if file.opaque is None:
        pieces, owner = _split(file, live, config, estimates, learned)
    elif live or modes.mode(file.path) != "skip" or modes.exceptions(file.path):
        pieces, owner = _whole(file, live, config, estimates)
    else:
        return FileUnits((), skipped=skipped or (SkippedTest(file.path, "mode skip"),))
    pieces = split_off(file, pieces, owner, learned, config, estimates)
    units = _units(file, pieces, owner, [test.nodeid for test in skipped], config)
    planned = [target.nodeid for target in live] or [file.path] * len(units)
    unknown = sum(not estimates.knows(nodeid) for nodeid in planned)
    return FileUnits(
        units, tuple(t.nodeid for t in live), skipped, unknown, _notes(file, pieces, live, config)
    )


def _split(
    file: TestFile,
    live: Sequence[TestTarget],
    config: Config,
    estimates: Estimates,
    learned: Mapping[str, LearnedNeed],
) -> tuple[list[Piece], int]:
    """The pieces of a file that is read with certainty, and which of them owns unknown tests."""
    groups: dict[Need, list[str]] = {}
    asked = [(target.run_mode, target.gpus, target.runs_on) for target in live]
    needs = {ask: need(*ask, config) for ask in set(asked)}
    for ask, target in zip(asked, live, strict=True):
        groups.setdefault(needs[ask], []).append(target.nodeid)
    if not groups:
        return [], 0
    default = path_modes(config.modes).mode(file.path)
    owner = max(groups, key=lambda key: _ownership(key, len(groups[key]), default, config))
    several = {function_id(nodeid) for nodeid in learned} - learned.keys()
    pieces: list[Piece] = []
    position = 0
    for key, tests in groups.items():
        tests.sort(key=several.__contains__)  # single items can be split off the owner alone: its last piece
        pieces += _cut(key, tests, config.shards.piece_seconds, estimates)
        if key == owner:
            position = len(pieces) - 1  # its last piece: new tests are mostly written at the end
    return pieces, position


def _ownership(key: Need, tests: int, default: str, config: Config) -> tuple[bool, bool, bool, int]:
    """Rank the units of a file: its default mode with the least GPUs, then off the CPU, then the biggest."""
    usual = key.mode == default and (key.gpus <= 1 or key.mode == "serial")
    return usual, usual and key.profile == config.profiles[0].name, key.mode != "cpu", tests


def _cut(key: Need, tests: Sequence[str], piece_seconds: float, estimates: Estimates) -> list[Piece]:
    seconds = [estimates.function(nodeid) for nodeid in tests]
    ends = [len(tests)]
    if key.mode in CUT_MODES and fsum(seconds) > piece_seconds:
        ends = cut(seconds, piece_seconds)
    return [
        Piece(key, tuple(tests[start:end]), fsum(seconds[start:end]))
        for start, end in zip([0, *ends], ends, strict=False)
    ]


def _whole(
    file: TestFile, live: Sequence[TestTarget], config: Config, estimates: Estimates
) -> tuple[list[Piece], int]:
    """The one piece of an opaque file: most careful mode, most common profile, most common GPU need there.

    A test that turns out to need more GPUs goes to a wider slot on the node.
    """
    keys = [need(target.run_mode, target.gpus, target.runs_on, config) for target in live]
    keys = [key for key in keys if key.mode != "cpu"] or keys
    keys = keys or [need(mode, 1, None, config) for mode in _unseen_modes(file.path, config)]
    mode = max((key.mode for key in keys), key=CAREFUL.index)
    profile = _most_common(key.profile for key in keys)
    gpus = _most_common(key.gpus for key in keys if key.profile == profile)
    tests = tuple(target.nodeid for target in live)
    return [Piece(need(mode, gpus, profile, config), tests, _file_seconds(file, tests, estimates))], 0


def _unseen_modes(path: str, config: Config) -> list[str]:
    """The modes of a file of which nothing live was read: its own, or those of the exceptions from a skip."""
    modes = path_modes(config.modes)
    own = modes.mode(path)
    return [modes.mode(nodeid) for nodeid in modes.exceptions(path)] if own == "skip" else [own]


def _file_seconds(file: TestFile, tests: Iterable[str], estimates: Estimates) -> float:
    """Expected seconds of an opaque file: its targets, and what was measured beside them."""
    scope = estimates.scopes.get(file.path)
    functions = [nodeid for nodeid in tests if "::" in nodeid]
    if scope is None and not functions:
        return estimates.function(file.path)
    seconds = fsum(map(estimates.function, functions))
    read = fsum(estimates.functions.get(target.nodeid, 0.0) for target in file.targets)
    return seconds + max(scope.seconds - read, 0.0) if scope else seconds


def _units(
    file: TestFile, pieces: Sequence[Piece], owner: int, skipped: Sequence[str], config: Config
) -> tuple[Unit, ...]:
    others = [nodeid for i, piece in enumerate(pieces) if i != owner for nodeid in piece.tests]
    rest = _rest(file, pieces[owner].tests, [*others, *skipped], config) if pieces else "all"
    return tuple(
        Unit(
            id="",
            root=file.root,
            file=file.path,
            select=rest if i == owner else list(piece.tests),
            mode=piece.need.mode,
            gpus=piece.need.gpus,
            profile=piece.need.profile,
            expected_seconds=piece.seconds,
            timeout_seconds=config.node.timeout,
            tests=len(piece.tests),
            longest_timeout_seconds=max((target.timeout or 0.0 for target in file.targets), default=0.0),
        )
        for i, piece in enumerate(pieces)
    )


def _rest(file: TestFile, own: Sequence[str], others: Sequence[str], config: Config) -> Select:
    """What the owner selects: all of the file but `others`; of a skipped file its exceptions alone."""
    modes = path_modes(config.modes)
    exceptions = modes.exceptions(file.path)
    if modes.mode(file.path) == "skip":
        return list(dict.fromkeys([*own, *(exceptions if file.opaque else ())]))
    excluded = list(dict.fromkeys([*others, *exceptions]))
    return {"except": excluded} if excluded else "all"


def _notes(
    file: TestFile, pieces: Sequence[Piece], live: Sequence[TestTarget], config: Config
) -> tuple[str, ...]:
    limit = config.shards.piece_seconds
    notes = []
    for piece in pieces:
        if piece.seconds > limit and len(piece.tests) == 1 and piece.need.mode in CUT_MODES:
            notes.append(
                f"{piece.tests[0]} ({in_words(piece.seconds)}) is longer than a piece and can't be cut"
            )
    elsewhere = [t for t in live if t.runs_on and t.run_mode != "cpu" and t.runs_on != pieces[0].need.profile]
    if file.opaque and elsewhere:
        notes.append(
            f"{file.path} is planned whole ({file.opaque}) on profile {pieces[0].need.profile}, "
            f"though {len(elsewhere)} of its tests ask for another"
        )
    return tuple(notes)


_T = TypeVar("_T", str, int)


def _most_common(values: Iterable[_T]) -> _T:
    """The most frequent value, of several the greatest."""
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], value))
