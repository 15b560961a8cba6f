"""What a target asks of a node, and which targets a run leaves out. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from gpuci.config.model import Config
from gpuci.errors import ConfigError
from gpuci.model import TestTarget


class Need(NamedTuple):
    """Tests of one file that share a need can share a unit."""

    mode: str
    gpus: int
    profile: str


def need(mode: str, gpus: int, runs_on: str | None, config: Config) -> Need:
    """The need of a target; raises KeyError for an unknown profile.

    `cpu` needs no GPU and no profile, `serial` gets all GPUs of the node, the others at least one: a
    test that runs on a GPU node holds a slot there.
    """
    if mode == "cpu":
        return Need(mode, 0, config.profiles[0].name)
    profile = config.profile(runs_on)
    return Need(mode, profile.gpus if mode == "serial" else max(gpus, 1), profile.name)


def refuse_impossible(targets: Iterable[TestTarget], config: Config) -> None:
    """Raise one ConfigError that lists every target whose profile is unknown or has too few GPUs."""
    gpus = {profile.name: profile.gpus for profile in config.profiles}
    problems = []
    for target in targets:
        name = config.profiles[0].name if target.runs_on is None else target.runs_on
        if target.run_mode == "cpu":
            continue
        where = f"{target.test_path}:{target.line}"
        if name not in gpus:
            problems.append(f"{where}: there is no profile {name!r}")
        elif max(target.gpus, 1) > gpus[name]:
            problems.append(f"{where}: needs {max(target.gpus, 1)} GPUs, profile {name!r} has {gpus[name]}")
    if problems:
        raise ConfigError(
            "tests that no node can run:\n  " + "\n  ".join(sorted(problems)),
            why="a mark asks for more than the profiles of the configuration offer",
            then=f"change the marks or `profiles` (there are: {', '.join(gpus)})",
        )


def schedule_marks(targets: Iterable[TestTarget], config: Config, event: str) -> frozenset[str]:
    """The mark names in use whose tests run only if the event is `schedule`; none if it is."""
    patterns = [rule.name for rule in config.markers if rule.when == "schedule"]
    if event == "schedule" or not patterns:
        return frozenset()
    names = {marker.name for target in targets for marker in target.markers}
    return frozenset(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))


def why_skipped(target: TestTarget, scheduled: frozenset[str]) -> str | None:
    """Why a run leaves the target out, or None if it runs."""
    if target.run_mode == "skip" or target.skip is not None:
        return target.skip or "mode skip"
    for marker in target.markers:
        if marker.name in scheduled:
            return f"mark {marker.name}: runs on schedule only"
    return None
