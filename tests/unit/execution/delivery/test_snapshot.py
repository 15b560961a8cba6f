"""What is delivered of a directory: real git, in the ways that people have repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuci.errors import ConfigError
from gpuci.execution.delivery.notes import Dirty
from gpuci.execution.delivery.snapshot import Snapshot, snapshot

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 3\n" % (b"a" * 64)
Take = Callable[[Path], Snapshot]
Packed = Callable[[Snapshot], dict[str, bytes | str]]


def state(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything in a directory: {path: (mode, mtime, content)}."""
    found = {}
    for path in directory.rglob("*"):
        facts = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        # Any git that reads a shared index gives it a new date.
        when = 0 if path.name.startswith("sharedindex.") else facts.st_mtime_ns
        found[str(path)] = (facts.st_mode, when, data)
    return found


def test_a_clean_tree_is_its_commit(repository: Any, git: Any, take: Take, packed: Packed) -> None:
    work = repository({"a.py": "1", "b/c.py": "2"})
    taken = take(work)
    assert taken.tree == git(work, "rev-parse", "HEAD^{tree}")
    assert taken.commit == git(work, "rev-parse", "HEAD")
    assert (taken.dirty, taken.notes, taken.missing) == (Dirty(), (), ())
    assert taken.files == {"a.py", "b/c.py"}
    assert packed(taken) == {"a.py": b"1", "b/": "", "b/c.py": b"2"}


def test_what_is_not_committed_goes_along_and_is_told(
    repository: Any, git: Any, write: Any, take: Take, packed: Packed
) -> None:
    work = repository({"changed": "1", "staged": "1", "removed": "1", "both": "1", ".gitignore": "*.log\n"})
    write(work, {"changed": "2", "staged": "2", "new file": "3", "x.log": "4", "sub/new": "5", "both": "2"})
    git(work, "add", "staged", "both")
    write(work, {"both": "3"})
    (work / "removed").unlink()
    taken = take(work)
    assert taken.dirty == Dirty(("both", "changed", "staged"), ("new file", "sub/new"), ("removed",))
    assert taken.notes == (
        "delivered as here, not as committed: 3 changed, 2 new and 1 removed files "
        "(both, changed, new file, removed, staged and 1 more)",
    )
    held = packed(taken)
    assert (held["changed"], held["both"], held["sub/new"]) == (b"2", b"3", b"5")
    assert not {"removed", "x.log"} & set(held)


def test_the_repository_stays_as_it_is(repository: Any, git: Any, write: Any, take: Take) -> None:
    work = repository({"a": "1", "b": "1"})
    hook = work / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {work}/hooked\n")
    hook.chmod(0o755)
    git(work, "config", "core.splitIndex", "true")
    git(work, "update-index", "--split-index")
    (work / "hooked").unlink()
    write(work, {"a": "2", "c": "new"})
    before = state(work)
    assert take(work).files == {"a", "b", "c"}
    assert state(work) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_repository_that_cannot_be_written(repository: Any, write: Any, take: Take) -> None:
    work = repository({"a": "1"})
    write(work, {"b": "2"})
    subprocess.run(["chmod", "-R", "a-w", str(work)], check=True)
    try:
        assert take(work).files == {"a", "b"}
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(work)], check=True)


def test_our_own_folder_is_never_delivered(repository: Any, git: Any, write: Any, take: Take) -> None:
    work = repository({"a": "1", ".gpuci/tracked": "1", ".gpuci-not": "1", "b/.gpuci/kept": "1"})
    write(work, {".gpuci/runs/r/report.json": "{}"})
    assert take(work).files == {"a", ".gpuci-not", "b/.gpuci/kept"}


def test_only_what_is_below_root(repository: Any, git: Any, write: Any, take: Take, packed: Packed) -> None:
    work = repository({"packages/one/a": "1", "packages/one/b": "1", "outside": "1"})
    write(work, {"packages/one/new": "2", "packages/one/.gpuci/x": "", "outside": "2", "more": "3"})
    (work / "packages/one/b").unlink()
    taken = take(work / "packages/one")
    assert packed(taken) == {"a": b"1", "new": b"2"}
    assert taken.dirty == Dirty((), ("new",), ("b",))


def test_names_that_patterns_or_options_could_mistake(repository: Any, take: Take, write: Any) -> None:
    work = repository({"[a]*/x": "1", "a/y": "1"})
    odd = {"[a]*/-n": "", "[a]*/tab\t": "", '[a]*/"q\\': "", "[a]*/line\nend": "", "[a]*/:(top)": ""}
    write(work, odd)
    assert take(work / "[a]*").files == {"x", *(name.removeprefix("[a]*/") for name in odd)}


def test_links_modes_and_names_of_any_bytes(repository: Any, take: Take, packed: Packed) -> None:
    work = repository({"target": "1"})
    (work / "link").symlink_to("target")
    (work / "dangling").symlink_to("/nowhere/at/all")
    long = "/".join(["d" * 100] * 4) + "/end"
    (work / long).parent.mkdir(parents=True)
    (work / long).write_text("deep")
    raw = os.fsdecode(b"caf\xe9")
    (work / raw).write_text("latin")
    held = packed(take(work))
    assert (held["link"], held["dangling"]) == ("-> target", "-> /nowhere/at/all")
    assert (held[long], held[raw]) == (b"deep", b"latin")


def test_files_become_directories_and_links(repository: Any, write: Any, take: Take, packed: Packed) -> None:
    work = repository({"file": "1", "folder/x": "1", "other/y": "1"})
    (work / "file").unlink()
    write(work, {"file/inside": "2"})
    for name in ("folder/x", "other/y"):
        (work / name).unlink()
        (work / name).parent.rmdir()
    (work / "folder").write_text("a file now")
    (work / "other").symlink_to("file")
    assert packed(take(work)) == {
        "file/": "",
        "file/inside": b"2",
        "folder": b"a file now",
        "other": "-> file",
    }


def test_a_file_as_old_as_the_index_is_read(repository: Any, git: Any, take: Take, packed: Packed) -> None:
    """Git trusts dates of entries older than its index; a copy that is younger would trust this one."""
    work = repository({"a": "one"})
    git(work, "config", "core.trustctime", "false")
    git(work, "config", "core.checkStat", "minimal")
    # Older than the index when that is written, or git marks the entry as doubtful by itself.
    os.utime(work / "a", (1_000_000_000, 1_000_000_000))
    git(work, "update-index", "--refresh")
    (work / "a").write_text("two")
    for path in (work / "a", work / ".git/index"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert packed(take(work)) == {"a": b"two"}


def test_no_commit_yet(tmp_path: Path, git: Any, write: Any, take: Take) -> None:
    work = tmp_path / "young"
    work.mkdir()
    git(work, "init", "-q")
    write(work, {"a": "1", "b": "2"})
    git(work, "add", "a")
    taken = take(work)
    assert taken.commit is None
    assert taken.files == {"a", "b"}
    assert taken.notes == ("nothing is committed here yet: all 2 files are delivered as here",)


def test_a_linked_worktree(repository: Any, git: Any, write: Any, take: Take) -> None:
    work = repository({"a": "1"})
    git(work, "worktree", "add", "-q", "-b", "side", str(work.parent / "linked"))
    write(work.parent / "linked", {"b": "2"})
    assert take(work.parent / "linked").files == {"a", "b"}


def test_hashes_of_64_digits(repository: Any, take: Take, packed: Packed) -> None:
    taken = take(repository({"a": "1"}, "long", "--object-format=sha256"))
    assert len(taken.tree) == 64
    assert packed(taken) == {"a": b"1"}


def test_a_place_with_odd_characters(repository: Any, write: Any, take: Take, packed: Packed) -> None:
    work = repository({"a": "1"}, 'pla:ce "x"\\y\nz')
    write(work, {"b": "2"})
    assert packed(take(work)) == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
@pytest.mark.parametrize("index", [(), ("--sparse-index",)], ids=["full", "sparse"])
def test_a_sparse_checkout_is_delivered_as_it_lies_there(
    repository: Any, git: Any, write: Any, take: Take, cone: str, index: tuple[str, ...]
) -> None:
    work = repository({"in/a": "1", "out/b": "1", "out/c": "1", "top": "1"})
    if index and cone == "--no-cone":
        pytest.skip("git has sparse indexes for cones only")
    pattern = "in" if cone == "--cone" else "/in/"
    git(work, "sparse-checkout", "init", cone, *index)
    git(work, "sparse-checkout", "set", cone, pattern)
    write(work, {"in/new": "2"})
    taken = take(work)
    there = {"in/a", "in/new"} | ({"top"} if cone == "--cone" else set())
    assert taken.files == there
    assert taken.dirty == Dirty((), ("in/new",), ())
    assert taken.notes[1] == f"not delivered: {5 - len(there)} files outside of the sparse checkout"


@pytest.mark.parametrize("option", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_git_shall_not_look_at(
    repository: Any, git: Any, write: Any, take: Take, packed: Packed, option: str
) -> None:
    work = repository({"a": "1", "b": "1"})
    git(work, "update-index", option, "a")
    write(work, {"a": "2"})
    taken = take(work)
    assert packed(taken)["a"] == b"2"
    assert taken.dirty == Dirty(("a",), (), ())


def test_a_merge_with_conflicts(repository: Any, git: Any, write: Any, take: Take, packed: Packed) -> None:
    work = repository({"in/a": "1\n", "out/b": "1\n"})
    git(work, "checkout", "-q", "-b", "side")
    write(work, {"in/a": "2\n", "out/b": "2\n"})
    git(work, "commit", "-qam", "two")
    git(work, "checkout", "-q", "main")
    write(work, {"in/a": "3\n", "out/b": "3\n"})
    git(work, "commit", "-qam", "three")
    subprocess.run(["git", "merge", "-q", "side"], cwd=work, capture_output=True, check=False)
    whole = packed(take(work))
    assert whole["in/a"] == (work / "in/a").read_bytes()
    assert b"<<<<<<<" in (work / "in/a").read_bytes()
    assert packed(take(work / "in")) == {"a": whole["in/a"]}


def test_submodules_that_are_here_are_delivered(
    repository: Any, git: Any, write: Any, take: Take, packed: Packed
) -> None:
    repository({"deep": "3"}, "inner")
    sub = repository({"lib.py": "1"}, "sub")
    git(sub, "submodule", "add", "-q", "../inner", "vendor")
    git(sub, "commit", "-qm", "inner")
    work = repository({"x/a": "1"})
    git(work, "submodule", "add", "-q", "../sub", "x/third party")
    git(work, "commit", "-qm", "sub")
    git(work, "submodule", "update", "-q", "--init", "--recursive")
    write(work, {"x/third party/lib.py": "2", "x/third party/new": "n"})
    taken = take(work / "x")
    held = packed(taken)
    assert held["third party/lib.py"] == b"2"
    assert held["third party/vendor/deep"] == b"3"
    assert taken.dirty == Dirty(("third party/lib.py",), ("third party/new",), ())
    assert taken.missing == ()
    assert "third party/vendor/deep" in taken.files


def test_a_submodule_that_is_not_here_is_named(
    repository: Any, git: Any, tmp_path: Path, take: Take, packed: Packed
) -> None:
    repository({"lib.py": "1"}, "sub")
    work = repository({"a": "1"})
    git(work, "submodule", "add", "-q", "../sub", "vendor/sub")
    git(work, "commit", "-qm", "sub")
    git(tmp_path, "clone", "-q", str(work), "clone")
    taken = take(tmp_path / "clone")
    assert taken.missing == (
        "submodules without content are delivered as empty directories: vendor/sub. Check them out first "
        "(on a laptop `git submodule update --init`, in a workflow `submodules:` of the checkout)",
    )
    assert packed(taken)["vendor/sub/"] == ""
    assert "vendor/sub" not in taken.files


def test_repositories_inside_are_named(repository: Any, git: Any, write: Any, take: Take) -> None:
    work = repository({"a": "1"})
    repository({"b": "1"}, "work/clone")
    (work / "empty").mkdir()
    git(work / "empty", "init", "-q")
    write(work, {"empty/x": "1"})
    taken = take(work)
    assert taken.files == {"a"}
    assert taken.notes == ("not delivered, being git repositories of their own: clone, empty",)


def test_content_of_git_lfs(
    repository: Any, git: Any, write: Any, take: Take, packed: Packed, user: Path
) -> None:
    """As git-lfs sets it up: pointers in the commit, content in the tree where it was fetched."""
    work = repository(
        {".gitattributes": "*.bin filter=lfs -text\n", "a.bin": POINTER, "b.bin": POINTER, "c.bin": POINTER}
    )
    fetched = b"\x00\x01\x02"
    write(work, {"a.bin": fetched, "../pointer": POINTER})
    # The index takes a.bin for unchanged, as after `git lfs pull`; b.bin looks changed by its date.
    git(work, "-c", f"filter.lfs.clean=cat {work.parent / 'pointer'}", "add", "a.bin")
    write(work, {"b.bin": fetched, "new.bin": b"new"})
    with (user / ".gitconfig").open("a") as config:
        config.write('[filter "lfs"]\nclean = exit 1\nprocess = exit 1\nrequired = true\n')
    taken = take(work)
    held = packed(taken)
    assert (held["a.bin"], held["b.bin"], held["c.bin"], held["new.bin"]) == (
        fetched,
        fetched,
        POINTER,
        b"new",
    )
    assert taken.dirty == Dirty((), ("new.bin",), ())
    assert "2 files of Git LFS are delivered with their content" in taken.notes
    assert taken.missing == (
        "files of Git LFS are delivered as pointers: c.bin. Fetch their content first "
        "(on a laptop `git lfs pull`, in a workflow `lfs:` of the checkout)",
    )


def test_a_hook_points_git_elsewhere(repository: Any, take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    other = repository({"b": "1"}, "other")
    work = repository({"a": "1"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    taken = take(work)
    assert taken.files == {"a"}
    assert taken.dirty == Dirty()


def test_a_file_that_cannot_be_read_is_named(repository: Any, tmp_path: Path, monkeypatch: Any) -> None:
    work = repository({"a": "1"})
    (work / "secret").symlink_to("x" * 300)
    (work / "secret").unlink()
    (work / "secret").write_text("s")
    (work / "secret").chmod(0)
    if os.access(work / "secret", os.R_OK):
        pytest.skip("root may read everything")
    with pytest.raises(ConfigError, match="secret"):
        snapshot(work, tmp_path / "scratch")


def test_all_files_are_ignored(repository: Any, write: Any, tmp_path: Path) -> None:
    work = repository({".gitignore": "project/\n"})
    write(work, {"project/a": "1"})
    with pytest.raises(ConfigError, match="holds no file that git would take") as caught:
        snapshot(work / "project", tmp_path / "scratch")
    assert str(work) in caught.value.why


@pytest.mark.parametrize("kind", ["no repository", "bare", "inside .git"])
def test_no_working_tree(
    kind: str, tmp_path: Path, repository: Any, git: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    place = {
        "no repository": tmp_path / "plain",
        "bare": tmp_path / "bare",
        "inside .git": tmp_path / "work/.git",
    }[kind]
    repository({"a": "1"})
    place.mkdir(exist_ok=True)
    if kind == "bare":
        git(place, "init", "-q", "--bare")
    with pytest.raises(ConfigError, match="is not in the working tree of a git repository"):
        snapshot(place, tmp_path / "scratch")


def test_a_repository_of_another_user(
    repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = repository({"a": "1"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    fake.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(ConfigError, match="belongs to another user") as caught:
        snapshot(work, tmp_path / "scratch")
    assert "safe.directory" in caught.value.then


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="git can't be run: No such file or directory"):
        snapshot(tmp_path, tmp_path / "scratch")
