"""The results that all shards of a run left -> their tries, for the plan. I/O.

Each shard's job leaves one artifact a GitHub attempt, `gpuci-shard-K-attempt-N`, or with another prefix where
gpuci is used more than once. Tests can have forged what is in theirs, so an artifact speaks for its own shard
and its own prefix only, and nothing in it is taken for granted. Names are
unique in a run, all attempts together, and what is there can't change (actions/upload-artifact, README since
version 4): who takes one before the shard's job makes that job fail. So no other name counts, nor an attempt
that is still to come.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuci.errors import ConfigError
from gpuci.model import Plan, ShardRun
from gpuci.results.journal import Record
from gpuci.results.runs_document import Runs, from_document
from gpuci.results.verdict import shard_name

RUNS = "runs.json"
MOST_BYTES = 256 * 2**20
NOT_THERE = "its job left no results: it was cancelled, lost, or never started"
OTHER_COMMIT = "its results are of another commit"
SAYS_NOTHING = "its results do not tell of it"
_NAME = r"shard-([1-9][0-9]{0,5})-attempt-([1-9][0-9]{0,5})"


@dataclass(frozen=True)
class Found:
    """The tries of every shard of a plan, and what a person should know beside them.

    `attempts`: shard -> GitHub's attempt that its results are of, where that is known. `replaced` are the
    tries of earlier attempts, which count for nothing but the time that they held GPUs.
    """

    runs: tuple[ShardRun, ...]
    warnings: tuple[str, ...] = ()
    attempts: Mapping[int, int] = field(default_factory=dict)
    replaced: tuple[ShardRun, ...] = ()


def newest(names: Iterable[str], attempts: range, prefix: str) -> dict[int, str]:
    """The folder of each shard's newest attempt; what was before `attempts` is of another plan."""
    return {shard: name for shard, attempt, name in _ours(names, prefix) if attempt in attempts}


def _ours(names: Iterable[str], prefix: str) -> list[tuple[int, int, str]]:
    """(shard, attempt, name) of the artifacts with our prefix, in that order."""
    pattern = re.compile(re.escape(prefix) + _NAME)
    matches = filter(None, map(pattern.fullmatch, names))
    return sorted((int(match[1]), int(match[2]), match[0]) for match in matches)


def collect(directory: Path, plan: Plan, attempts: range, prefix: str) -> Found:
    """The results below `directory`, one folder an artifact. A shard without any is told as lost."""
    names = _folders(directory)
    folders = newest(names, attempts, prefix)
    if not folders and len(plan.shards) == 1:
        return collect_one(directory, plan)  # actions/download-artifact gives a single artifact no folder
    runs: list[ShardRun] = []
    warnings: list[str] = []
    for shard in plan.shards:
        found = _read(directory / folders[shard.index] / RUNS) if shard.index in folders else NOT_THERE
        runs += _tries(found, shard.index, plan.sha)
        if isinstance(found, Runs) and any(run.index != shard.index for run in found.runs):
            warnings.append(f"{shard_name(shard.index)} told of other shards; that is ignored")
    of = {index: int(name.rpartition("-")[2]) for index, name in folders.items()}
    return Found(
        tuple(runs),
        tuple(warnings),
        {shard.index: of[shard.index] for shard in plan.shards if shard.index in of},
        tuple(_replaced(directory, plan.sha, _ours(names, prefix), folders, attempts)),
    )


def _replaced(
    directory: Path,
    sha: str | None,
    ours: Iterable[tuple[int, int, str]],
    counted: Mapping[int, str],
    attempts: range,
) -> Iterator[ShardRun]:
    """What earlier attempts left, also those of an earlier plan, as far as it can be read; no tests."""
    for shard, attempt, name in ours:
        if attempt < attempts.stop and name != counted.get(shard):
            found = _read(directory / name / RUNS)
            if isinstance(found, Runs) and found.sha == sha:
                own = (run for run in found.runs if run.index == shard)
                yield from (replace(run, records=_heads(run)) for run in own)


def _heads(run: ShardRun) -> tuple[Record, ...]:
    return tuple(record for record in run.records if record["kind"] == "job")


def collect_one(directory: Path, plan: Plan) -> Found:
    """The results of one job that ran all shards: `directory` has its runs.json."""
    found = _read(directory / RUNS)
    return Found(tuple(run for shard in plan.shards for run in _tries(found, shard.index, plan.sha)))


def _tries(found: Runs | str, index: int, sha: str | None) -> list[ShardRun]:
    """The tries of a shard; one that is nothing but a problem if there is none."""
    if isinstance(found, str):
        return [ShardRun(index, (), None, problem=found)]
    if found.sha != sha:
        return [ShardRun(index, (), None, problem=OTHER_COMMIT)]
    own = [run for run in found.runs if run.index == index]
    return own or [ShardRun(index, (), None, problem=SAYS_NOTHING)]


def _folders(directory: Path) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(path: Path) -> Runs | str:
    """A runs.json, or what is wrong with it."""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            return f"{RUNS} is no file"
        if about.st_size > MOST_BYTES:
            return f"{RUNS} has {about.st_size >> 20} MiB: more than {MOST_BYTES >> 20} are not read"
        return from_document(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return NOT_THERE
    except OSError as error:
        return f"{RUNS} can't be read: {error.strerror}"
    except ConfigError as error:
        return error.what
    except (ValueError, RecursionError, MemoryError):
        return f"{RUNS} is no JSON document"
