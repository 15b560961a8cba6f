"""The artifacts of all shards: the newest counts, each speaks for its own shard, none is trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuci.model import Plan, Shard, ShardRun
from gpuci.results import artifacts
from gpuci.results.artifacts import NOT_THERE, OTHER_COMMIT, SAYS_NOTHING, collect, collect_one, newest
from gpuci.results.runs_document import to_document

SHA = "a" * 40
ATTEMPTS = range(1, 3)


def plan(shards: int = 2) -> Plan:
    rows = tuple(Shard(index, "default", (), 1.0) for index in range(1, shards + 1))
    return Plan({}, SHA, "push", (), (), (), rows, (), (), 1.0, 1.0, 0)


def ran(index: int, attempt: int = 1) -> ShardRun:
    return ShardRun(index, (), {"verdict": "passed"}, 1.0, attempt=attempt)


def leave(folder: Path, *runs: ShardRun, sha: str = SHA) -> Path:
    folder.mkdir(parents=True)
    path = folder / "runs.json"
    path.write_text(json.dumps(to_document(sha, runs)))
    return path


@pytest.mark.parametrize(
    ("names", "attempts", "found"),
    [
        pytest.param([], range(1, 2), {}, id="none"),
        pytest.param(["gpuci-shard-3-attempt-1"], range(1, 2), {3: "gpuci-shard-3-attempt-1"}, id="one"),
        pytest.param(
            ["gpuci-shard-3-attempt-2", "gpuci-shard-3-attempt-10", "gpuci-shard-3-attempt-9"],
            range(1, 11),
            {3: "gpuci-shard-3-attempt-10"},
            id="the newest by number",
        ),
        pytest.param(
            ["gpuci-shard-1-attempt-1", "gpuci-shard-2-attempt-2"],
            range(1, 3),
            {1: "gpuci-shard-1-attempt-1", 2: "gpuci-shard-2-attempt-2"},
            id="attempts of failed jobs are combined",
        ),
        pytest.param(
            ["gpuci-shard-1-attempt-1", "gpuci-shard-2-attempt-2"],
            range(2, 3),
            {2: "gpuci-shard-2-attempt-2"},
            id="of before the plan",
        ),
        pytest.param(
            ["gpuci-shard-1-attempt-1", "gpuci-shard-1-attempt-2"],
            range(1, 2),
            {1: "gpuci-shard-1-attempt-1"},
            id="of an attempt that is still to come",
        ),
        pytest.param(
            [
                "gpuci-shard-0-attempt-1", "gpuci-shard-1-attempt-0", "gpuci-shard-x-attempt-1",
                "gpuci-shard-1-attempt-1-old", "gpuci-shard-1-attempt-1\n", "gpuci-shard-01-attempt-1",
                "gpuci-shard-1-attempt-\u0661", "gpuci-plan-attempt-1", "gpuci-shard-1-attempt-" + "9" * 99,
                "gpuci.docs.shard-1-attempt-1", "gpuci-docs.shard-1-attempt-1",
                "shard-1-attempt-1", "gpuci-shard-x-shard-1-attempt-1", "GPUCI-shard-1-attempt-1",
            ],
            range(2**40),
            {},
            id="no such names",
        ),
    ],
)  # fmt: skip
def test_which_folders_count(names: list[str], attempts: range, found: dict[int, str]) -> None:
    assert newest(names, attempts, "gpuci-") == found
    assert newest(reversed(names), attempts, "gpuci-") == found


def test_each_use_has_its_own_folders(tmp_path: Path) -> None:
    """Also what speaks of this very shard and commit, if it is another's."""
    names = ["gpuci-shard-1-attempt-1", "gpuci.docs.shard-1-attempt-1", "gpuci.docs-shard-1-attempt-2"]
    for name in (*names, "gpuci.docs.shard.shard-1-attempt-2", "gpuciXdocs.shard-1-attempt-2"):
        leave(tmp_path / name, ran(1))
    for prefix, own in (("gpuci-", names[0]), ("gpuci.docs.", names[1])):
        assert newest(os.listdir(tmp_path), ATTEMPTS, prefix) == {1: own}
    (run,) = collect(tmp_path, plan(1), ATTEMPTS, "gpuci.other.").runs
    assert run.problem == NOT_THERE


def test_tries_of_all_shards(tmp_path: Path) -> None:
    leave(tmp_path / "gpuci-shard-1-attempt-1", ran(1), ran(1, 2))
    leave(tmp_path / "gpuci-shard-2-attempt-1", ran(2))
    leave(tmp_path / "gpuci-shard-9-attempt-1", ran(9))
    found = collect(tmp_path, plan(), ATTEMPTS, "gpuci-")
    assert found == artifacts.Found((ran(1), ran(1, 2), ran(2)), attempts={1: 1, 2: 1})


def test_of_which_attempt_the_results_are(tmp_path: Path) -> None:
    leave(tmp_path / "gpuci-shard-1-attempt-2", ran(1))
    leave(tmp_path / "gpuci-shard-1-attempt-1", ran(1))
    leave(tmp_path / "gpuci-shard-3-attempt-1", ran(3))
    assert collect(tmp_path, plan(3), ATTEMPTS, "gpuci-").attempts == {1: 2, 3: 1}


def test_a_newer_attempt_takes_the_place_of_an_older_one_even_if_it_is_broken(tmp_path: Path) -> None:
    leave(tmp_path / "gpuci-shard-1-attempt-1", ran(1))
    leave(tmp_path / "gpuci-shard-1-attempt-2").write_text("{")
    (run,) = collect(tmp_path, plan(1), ATTEMPTS, "gpuci-").runs
    assert (run.index, run.records, run.verdict) == (1, (), None)
    assert run.problem == "runs.json is no JSON document"


def test_what_earlier_attempts_held_is_known(tmp_path: Path) -> None:
    """Also that of an earlier plan; not what is broken, of another commit, to come, or of another shard."""
    job, end = {"kind": "job", "gpus": ["0"]}, {"kind": "note", "text": "x"}
    first = replace(ran(1), records=(job, end))
    leave(tmp_path / "gpuci-shard-1-attempt-1", first, replace(first, attempt=2), ran(2))
    leave(tmp_path / "gpuci-shard-9-attempt-1", ran(9))
    leave(tmp_path / "gpuci-shard-2-attempt-1", ran(2), sha="b" * 40)
    leave(tmp_path / "gpuci-shard-2-attempt-2", ran(2)).write_text("{")
    leave(tmp_path / "gpuci-shard-1-attempt-3", ran(1))
    leave(tmp_path / "gpuci-shard-2-attempt-3", ran(2))
    leave(tmp_path / "gpuci-shard-2-attempt-4", ran(2))
    found = collect(tmp_path, plan(2), range(2, 4), "gpuci-")
    assert found.runs == (ran(1), ran(2))
    bare = replace(first, records=(job,))
    assert found.replaced == (bare, replace(bare, attempt=2), ran(9))


def test_a_shard_speaks_for_itself_only(tmp_path: Path) -> None:
    leave(tmp_path / "gpuci-shard-1-attempt-1", ran(1), ran(2))
    leave(tmp_path / "gpuci-shard-2-attempt-1", ran(1))
    found = collect(tmp_path, plan(), ATTEMPTS, "gpuci-")
    assert found.runs == (ran(1), ShardRun(2, (), None, problem=SAYS_NOTHING))
    assert found.warnings == (
        "shard 1 told of other shards; that is ignored",
        "shard 2 told of other shards; that is ignored",
    )


def link(path: Path) -> None:
    target = path.with_name("elsewhere.json")
    path.rename(target)
    path.symlink_to(target)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no file": (Path.unlink, NOT_THERE),
    "empty": (lambda path: path.write_text(""), "is no JSON document"),
    "cut off": (lambda path: path.write_text(path.read_text()[:-9]), "is no JSON document"),
    "bytes": (lambda path: path.write_bytes(b"\xff\xfe\x00"), "is no JSON document"),
    "deep": (lambda path: path.write_text("[" * 100_000), "is no JSON document"),
    "another document": (lambda path: path.write_text("{}"), "schema should be"),
    "another commit": (
        lambda path: path.write_text(json.dumps(to_document("b" * 40, [ran(1)]))),
        OTHER_COMMIT,
    ),
    "no commit": (lambda path: path.write_text(json.dumps(to_document(None, [ran(1)]))), OTHER_COMMIT),
    "no try": (lambda path: path.write_text(json.dumps(to_document(SHA, []))), SAYS_NOTHING),
    "a link": (link, "is no file"),
    "a pipe": (pipe, "is no file"),
    "a folder": (folder, "is no file"),
    "too big": (lambda path: os.truncate(path, artifacts.MOST_BYTES + 1), "more than 256 are not read"),
}


@pytest.mark.parametrize(("spoil", "says"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_a_problem_of_its_shard(
    tmp_path: Path, spoil: Callable[[Path], Any], says: str
) -> None:
    spoil(leave(tmp_path / "gpuci-shard-1-attempt-1", ran(1)))
    leave(tmp_path / "gpuci-shard-2-attempt-1", ran(2))
    broken, whole = collect(tmp_path, plan(), ATTEMPTS, "gpuci-").runs
    assert (broken.index, broken.records, broken.verdict) == (1, (), None)
    assert says in broken.problem
    assert whole == ran(2)


def test_a_folder_that_is_a_link_is_none(tmp_path: Path) -> None:
    leave(tmp_path / "elsewhere", ran(1))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "gpuci-shard-1-attempt-1").symlink_to(tmp_path / "elsewhere")
    (run,) = collect(tmp_path / "results", plan(1), ATTEMPTS, "gpuci-").runs
    assert run.problem == NOT_THERE


@pytest.mark.parametrize("shards", [1, 3])
def test_without_any_results_every_shard_is_lost(tmp_path: Path, shards: int) -> None:
    for found in (
        collect(tmp_path / "none", plan(shards), ATTEMPTS, "gpuci-"),
        collect_one(tmp_path, plan(shards)),
    ):
        told = [(run.index, run.problem) for run in found.runs]
        assert told == [(n, NOT_THERE) for n in range(1, shards + 1)]


def test_a_single_artifact_may_have_no_folder_if_it_can_be_of_one_shard_only(tmp_path: Path) -> None:
    leave(tmp_path / "out", ran(1), ran(2))
    assert collect(tmp_path / "out", plan(1), ATTEMPTS, "gpuci-").runs == (ran(1),)
    assert [run.problem for run in collect(tmp_path / "out", plan(2), ATTEMPTS, "gpuci-").runs] == [
        NOT_THERE
    ] * 2


def test_one_job_speaks_for_all_shards(tmp_path: Path) -> None:
    leave(tmp_path / "out", ran(2), ran(1), ran(7))
    assert collect_one(tmp_path / "out", plan(3)).runs == (
        ran(1),
        ran(2),
        ShardRun(3, (), None, problem=SAYS_NOTHING),
    )
