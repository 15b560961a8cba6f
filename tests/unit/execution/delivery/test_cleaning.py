"""What cleaning removes of old runs, and what it never touches."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuci.execution.delivery.cleaning import Cleaned, clean
from gpuci.execution.transport.connection import LinkLost

MINUTE, HOUR, DAY = 60, 3600, 86400
HASH = "0123456789abcdef" * 4


@pytest.fixture(params=["sh", "busybox"])
def node(request: pytest.FixtureRequest, login: Any) -> Any:
    """A login node with the shell of this machine, and one with busybox only."""
    if request.param == "busybox":
        folder = request.getfixturevalue("busybox")
        login.path, login.shell = str(folder), [str(folder / "sh")]
    return login


@pytest.fixture
def shared(login: Any) -> Path:
    path = Path(login.home) / "shared folder"
    for name in ("jobs", "trees", "nodes"):
        (path / name).mkdir(parents=True)
    return path


def aged(path: Path, age: float) -> Path:
    """Make a path look that many seconds old, a directory with all that is in it."""
    when = time.time() - age
    for inside in path.rglob("*") if path.is_dir() and not path.is_symlink() else ():
        os.utime(inside, (when, when), follow_symlinks=False)
    os.utime(path, (when, when), follow_symlinks=False)
    return path


def job(shared: Path, name: str, age: float, lease: float | None = None, tree: Path | None = None) -> Path:
    """A job directory of an age, with a lease of (maybe) another age, and a link to a tree."""
    path = shared / "jobs" / name
    (path / "out").mkdir(parents=True)
    for file in ("token", "owner.01", "lease", "out/journal.jsonl"):
        (path / file).write_text("x")
    if tree is not None:
        os.link(tree, path / "tree.tar")
        kept = tree.stat()
    aged(path, age)
    if tree is not None:
        os.utime(tree, (kept.st_atime, kept.st_mtime))
    if lease is not None:
        aged(path / "lease", lease)
    return path


def file(path: Path, age: float) -> Path:
    path.write_text("data")
    return aged(path, age)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_jobs_by_age(node: Any, shared: Path) -> None:
    job(shared, "young", 3 * DAY - HOUR)
    job(shared, "old", 3 * DAY + HOUR)
    assert clean(node, str(shared)) == Cleaned(jobs=("old",))
    assert names(shared / "jobs") == {"young"}
    assert names(shared) == {"jobs", "trees", "nodes"}


def test_jobs_by_count(node: Any, shared: Path) -> None:
    for hours in range(2, 8):
        job(shared, f"job-{hours}", hours * HOUR)
    assert set(clean(node, str(shared), kept=4).jobs) == {"job-6", "job-7"}
    assert names(shared / "jobs") == {"job-2", "job-3", "job-4", "job-5"}


@pytest.mark.parametrize("written", ["lease", "out/journal.jsonl", "out/new/deep", "slurm.out"])
def test_a_job_in_use_stays_however_old_it_is(node: Any, shared: Path, written: str) -> None:
    path = job(shared, "waits-in-the-queue", 30 * DAY)
    (path / written).parent.mkdir(exist_ok=True)
    (path / written).write_text("now")
    for folder in (path / "out/new", path / "out", path):
        if folder.exists():
            os.utime(folder, (1, 1))
    aged(path / written, HOUR - 5 * MINUTE)
    assert clean(node, str(shared), kept=0) == Cleaned()
    assert path.is_dir()


def test_a_job_in_use_is_not_even_moved(login: Any, shared: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "mv").write_text(f"#!/bin/sh\ntouch {tmp_path}/moved\n")
    (programs / "mv").chmod(0o755)
    login.path = f"{programs}:{login.path}"
    job(shared, "in-use", 30 * DAY, lease=5 * MINUTE)
    clean(login, str(shared), kept=0)
    assert not (tmp_path / "moved").exists()


def test_a_job_whose_lease_is_dead(node: Any, shared: Path) -> None:
    job(shared, "dead", 2 * HOUR, lease=HOUR + 5 * MINUTE)
    assert clean(node, str(shared), kept=0).jobs == ("dead",)


def test_ages_are_told_by_the_file_servers_clock(login: Any, shared: Path, tmp_path: Path) -> None:
    """The login node's own clock is a day ahead; files are dated by the server, which is right."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "date").write_text(f"#!/bin/sh\necho {int(time.time()) + DAY}\n")
    (programs / "date").chmod(0o755)
    login.path = f"{programs}:{login.path}"
    path = job(shared, "in-use", 10 * DAY, lease=5 * MINUTE)
    file(shared / "trees" / f"{HASH}.tar", HOUR)
    assert clean(login, str(shared)) == Cleaned()
    assert path.is_dir()


def test_files_that_no_job_links(node: Any, shared: Path) -> None:
    used = file(shared / "trees" / f"{'1' * 64}.tar", 9 * DAY)
    freed = file(shared / "trees" / f"{'2' * 64}.tar", 9 * DAY)
    file(shared / "trees" / f"{'3' * 64}.tar", DAY + HOUR)
    file(shared / "trees" / f"{'4' * 64}.tar", DAY - HOUR)
    file(shared / "nodes" / f"{'5' * 64}.pyz", DAY + HOUR)
    job(shared, "runs", HOUR, tree=used)
    job(shared, "over", 4 * DAY, tree=freed)
    done = clean(node, str(shared))
    assert done.jobs == ("over",)
    assert set(done.files) == {f"trees/{'2' * 64}.tar", f"trees/{'3' * 64}.tar", f"nodes/{'5' * 64}.pyz"}
    assert names(shared / "trees") == {used.name, f"{'4' * 64}.tar"}


def test_broken_uploads(node: Any, shared: Path) -> None:
    file(shared / "trees/.partial-00ff-0123", DAY + HOUR)
    file(shared / "nodes/.partial-00ff-0124", DAY - HOUR)
    aged(shared / "jobs", 0)
    (shared / "jobs/.incoming.aB3dEf").mkdir()
    aged(shared / "jobs/.incoming.aB3dEf", DAY + HOUR)
    (shared / "jobs/.incoming.young1").mkdir()
    assert clean(node, str(shared)).files == ("trees/.partial-00ff-0123",)
    assert names(shared / "nodes") == {".partial-00ff-0124"}
    assert names(shared / "jobs") == {".incoming.young1"}


FOREIGN = [
    "trees/notes.txt",
    "trees/short.tar",
    "trees/x y.tar",
    "trees/.hidden",
    "trees/-rf",
    "trees/.partial-$(touch ran)",
    "jobs/a file",
    "jobs/file",
    "mine",
    "jobs/with space/x",
    "jobs/-dash/x",
    "jobs/.hidden/x",
    "jobs/line\nend/x",
    "jobs/$(touch ran)/x",
    "other/x",
]


def test_what_is_not_ours_stays(node: Any, shared: Path) -> None:
    for name in FOREIGN:
        (shared / name).parent.mkdir(exist_ok=True)
        file(shared / name, 90 * DAY)
        if len(Path(name).parts) == 3:
            aged((shared / name).parent, 90 * DAY)
    assert clean(node, str(shared), kept=0) == Cleaned()
    assert [name for name in FOREIGN if not (shared / name).exists()] == []
    assert not list(Path(node.home).rglob("ran"))


def test_links_are_not_followed(node: Any, shared: Path, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    aged(file(treasure / "gold", 90 * DAY).parent, 90 * DAY)
    (shared / "jobs/link").symlink_to(treasure)
    (shared / "trees" / f"{HASH}.tar").symlink_to(treasure / "gold")
    path = job(shared, "old", 9 * DAY)
    (path / "out/elsewhere").symlink_to(treasure)
    for place in (
        shared / "jobs/link",
        shared / "trees" / f"{HASH}.tar",
        path / "out/elsewhere",
        path / "out",
        path,
    ):
        os.utime(place, (1, 1), follow_symlinks=False)
    assert clean(node, str(shared), kept=0) == Cleaned(jobs=("old",))
    assert (treasure / "gold").read_text() == "data"
    assert (shared / "jobs/link").is_symlink()


def test_one_at_a_time_and_a_killed_one_blocks_an_hour(node: Any, shared: Path) -> None:
    job(shared, "old", 9 * DAY)
    (shared / ".cleaning").mkdir()
    file(shared / ".cleaning/now", 0)
    assert clean(node, str(shared)) == Cleaned()
    aged(shared / ".cleaning", 2 * HOUR)
    clean(node, str(shared))
    assert clean(node, str(shared)).jobs == ("old",)


def test_a_directory_that_cannot_be_removed_is_told_and_blocks_nothing(
    login: Any, shared: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rm").write_text('#!/bin/sh\ncase "$*" in *stubborn*) exit 1 ;; esac\nexec /bin/rm "$@"\n')
    (programs / "rm").chmod(0o755)
    login.path = f"{programs}:{login.path}"
    job(shared, "stubborn", 9 * DAY)
    job(shared, "old", 8 * DAY)
    done = clean(login, str(shared))
    assert done == Cleaned(jobs=("old",), notes=("stubborn can't be removed as a whole",))
    assert names(shared) == {"jobs", "trees", "nodes"}
    assert names(shared / "jobs") == {"stubborn"}


def test_taken_over_in_the_last_moment(login: Any, shared: Path, tmp_path: Path) -> None:
    """The lease is renewed between the look and the removal: what was moved aside goes back."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "mv").write_text('#!/bin/sh\n[ "$2" = taken ] && echo 2 >taken/lease\nexec /bin/mv "$@"\n')
    (programs / "mv").chmod(0o755)
    login.path = f"{programs}:{login.path}"
    path = job(shared, "taken", 9 * DAY)
    assert clean(login, str(shared)) == Cleaned()
    assert (path / "lease").read_text() == "2\n"


def test_no_folder_yet(node: Any) -> None:
    assert clean(node, str(node.home / "missing")) == Cleaned()


def test_a_login_node_that_cannot_compare_ages(login: Any, shared: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "stat").write_text("#!/bin/sh\nexit 1\n")
    (programs / "stat").chmod(0o755)
    login.path = f"{programs}:{login.path}"
    job(shared, "old", 9 * DAY)
    assert clean(login, str(shared)).notes == ("nothing removed: this login node can't compare ages",)
    assert names(shared / "jobs") == {"old"}


def test_a_lost_link_fails_no_run(login: Any, shared: Path) -> None:
    def lost(_: str) -> None:
        raise LinkLost("the link is gone")

    login.faults = [lost]
    assert clean(login, str(shared)).notes == ("old files were not cleaned: the link is gone",)


ages = st.integers(0, 100 * HOUR).filter(lambda age: min(abs(age - HOUR), abs(age - 3 * DAY)) > 5 * MINUTE)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(ages, ages), max_size=8), st.integers(0, 5))
def test_only_what_is_old_or_surplus_and_never_what_is_in_use(
    login: Any, shared: Path, jobs: list[tuple[int, int]], kept: int
) -> None:
    """(age of the directory, age of its lease) for each: in the order of their ages."""
    subprocess.run(["rm", "-rf", str(shared / "jobs")], check=True)
    (shared / "jobs").mkdir()
    by_age = sorted((age + number, lease) for number, (age, lease) in enumerate(jobs))
    for rank, (age, lease) in enumerate(by_age):
        job(shared, f"job-{rank}", age, lease=lease)
    expected = {
        f"job-{rank}"
        for rank, (age, lease) in enumerate(by_age)
        if min(age, lease) > HOUR and (rank >= kept or age > 3 * DAY)
    }
    assert set(clean(login, str(shared), kept=kept).jobs) == expected
    assert names(shared / "jobs") == {f"job-{rank}" for rank in range(len(jobs))} - expected
