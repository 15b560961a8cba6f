"""The tar file, and commits as it comes from them: nothing in a tree takes effect."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuci.errors import ConfigError, GpuciError
from gpuci.execution.delivery.archive import archive
from gpuci.execution.delivery.snapshot import Snapshot, committed

Packed = Callable[[Snapshot], dict[str, bytes | str]]


@pytest.fixture
def bare(git: Any, tmp_path: Path) -> Callable[[Path], tuple[Path, str]]:
    """A bare clone of a repository, as a runner has it, and the SHA of its commit."""

    def clone(work: Path) -> tuple[Path, str]:
        git(tmp_path, "clone", "-q", "--bare", str(work), "bare.git")
        return tmp_path / "bare.git", git(work, "rev-parse", "HEAD")

    return clone


def test_size_and_sum_are_those_of_the_file(repository: Any, take: Any, tmp_path: Path) -> None:
    made = archive(take(repository({"a": "1"})), tmp_path / "x.tar")
    data = (tmp_path / "x.tar").read_bytes()
    assert (made.path, made.size, made.sha256) == (
        tmp_path / "x.tar",
        len(data),
        hashlib.sha256(data).hexdigest(),
    )
    assert [path.name for path in tmp_path.glob("x.tar*")] == ["x.tar"]


def test_equal_trees_give_equal_bytes(
    repository: Any, git: Any, take: Any, bare: Any, tmp_path: Path
) -> None:
    """Whatever the commit, the user's settings, the umask and the kind of repository."""
    one = repository({"a": "1", "b/c": "2"}, "one")
    two = repository({"a": "0", "b/c": "2"}, "two")
    (two / "a").write_text("1")
    git(two, "config", "tar.umask", "0077")
    git(two, "config", "core.autocrlf", "true")
    git_dir, sha = bare(one)
    old = os.umask(0o077)
    try:
        made = [
            archive(taken, tmp_path / "x.tar")
            for taken in (take(one), take(two), committed(git_dir, sha, "."))
        ]
    finally:
        os.umask(old)
    assert len({item.sha256 for item in made}) == 1


def test_modes_and_dates(repository: Any, take: Any, tmp_path: Path) -> None:
    work = repository({"plain": "1", "program": "1", "group": "1"})
    (work / "program").chmod(0o755)
    (work / "group").chmod(0o664)
    (work / "plain").chmod(0o444)
    made = archive(take(work), tmp_path / "x.tar")
    with tarfile.open(made.path) as tar:
        facts = {member.name: (member.mode, member.mtime) for member in tar}
    assert facts == {"plain": (0o644, 946684800), "program": (0o755, 946684800), "group": (0o644, 946684800)}


def test_no_attribute_drops_or_changes_a_file(
    repository: Any, write: Any, take: Any, packed: Packed, user: Path
) -> None:
    with (user / ".gitconfig").open("a") as config:
        config.write(f"[core]\nattributesFile = {user}/attributes\n")
    (user / "attributes").write_text("kept export-ignore\n")
    content = {
        ".gitattributes": "/tests export-ignore\nversion export-subst\nkept export-ignore\n",
        "tests/.gitattributes": "* export-ignore\n",
        "tests/test_a.py": "1",
        "version": "$Format:%H$",
        "kept": "1",
    }
    held = packed(take(repository(content)))
    assert {name: data for name, data in held.items() if not name.endswith("/")} == {
        name: text.encode() for name, text in content.items()
    }


def test_line_ends_that_the_tree_asks_for(repository: Any, take: Any, packed: Packed) -> None:
    held = packed(
        take(repository({".gitattributes": "dos eol=crlf\n", "dos": "a\r\nb\r\n", "unix": "a\nb\n"}))
    )
    assert (held["dos"], held["unix"]) == (b"a\r\nb\r\n", b"a\nb\n")


def test_a_commit_of_a_bare_repository(repository: Any, bare: Any, packed: Packed) -> None:
    git_dir, sha = bare(repository({"pkg/a": "1", "pkg/b/c": "2", "x": "3"}))
    assert set(packed(committed(git_dir, sha, "."))) == {"pkg/", "pkg/a", "pkg/b/", "pkg/b/c", "x"}
    below = committed(git_dir, sha, "pkg/b/")
    assert below.commit == sha
    assert below.files == {"c"}
    assert packed(below) == {"c": b"2"}


def test_nothing_of_a_hostile_repository_runs(
    repository: Any, git: Any, bare: Any, packed: Packed, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    git_dir, sha = bare(repository({".gitattributes": "* filter=evil diff=evil text=auto ident\n", "a": "1"}))
    for key in (
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.fsmonitor",
        "core.sshCommand",
    ):
        git(git_dir, "config", key, f"touch {mark}; cat")
    git(git_dir, "config", "tar.tar.command", f"touch {mark}")
    git(git_dir, "config", "core.hooksPath", str(tmp_path))
    assert packed(committed(git_dir, sha, "."))["a"] == b"1"
    assert not mark.exists()


def test_submodules_and_pointers_of_a_commit_are_named(
    repository: Any, git: Any, bare: Any, packed: Packed
) -> None:
    repository({"lib": "1"}, "sub")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"
    work = repository({"model.bin": pointer, "about.txt": f"as in: {pointer}"})
    git(work, "submodule", "add", "-q", "../sub", "vendor")
    git(work, "commit", "-qm", "sub")
    git_dir, sha = bare(work)
    taken = committed(git_dir, sha, ".")
    assert [text.partition(":")[2].partition(".")[0] for text in taken.missing] == [" vendor", " model"]
    assert taken.files == {"model.bin", "about.txt", ".gitmodules"}
    assert packed(taken)["vendor/"] == ""


@pytest.mark.parametrize(
    "sha", ["HEAD", "main", "--output=x", "abcdef0", "A" * 40, "a" * 39, "a" * 41, "a" * 40 + "\n"]
)
def test_only_a_full_sha_names_a_commit(tmp_path: Path, sha: str) -> None:
    with pytest.raises(ConfigError, match="is no full commit SHA"):
        committed(tmp_path, sha, ".")


@pytest.mark.parametrize("subdirectory", ["missing", "a", "pkg/../pkg", "/"])
def test_a_directory_that_is_not_in_the_commit(repository: Any, bare: Any, subdirectory: str) -> None:
    git_dir, sha = bare(repository({"a": "1", "pkg/b": "1"}))
    if subdirectory == "/":
        assert committed(git_dir, sha, subdirectory).files == {"a", "pkg/b"}
        return
    with pytest.raises(ConfigError, match="has no directory"):
        committed(git_dir, sha, subdirectory)


def test_a_commit_that_was_not_fetched(repository: Any, bare: Any, tmp_path: Path) -> None:
    git_dir, _ = bare(repository({"a": "1"}))
    with pytest.raises(ConfigError, match="has no directory"):
        committed(git_dir, "a" * 40, ".")
    with pytest.raises(ConfigError, match="is no bare git repository"):
        committed(tmp_path, "a" * 40, ".")


@pytest.mark.parametrize(
    "names", [("..",), (".git",), ("same", "same")], ids=["outside", "settings", "link and directory"]
)
def test_trees_made_by_hand_are_refused(repository: Any, git: Any, names: tuple[str, ...]) -> None:
    """`git mktree` refuses less than a checkout; what it refuses too is written as an object."""
    work = repository({"a": "1"})
    blob = git(work, "hash-object", "-w", "--stdin", stdin=b"/etc")
    inner = git(work, "mktree", stdin=f"100644 blob {blob}\tpasswd\n".encode())
    rows = [(b"120000" if len(names) == 2 and not row else b"40000", name) for row, name in enumerate(names)]
    raw = b"".join(
        mode + b" " + name.encode() + b"\0" + bytes.fromhex(blob if mode == b"120000" else inner)
        for mode, name in rows
    )
    tree = git(work, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw)
    commit = git(work, "commit-tree", tree, "-m", "x")
    with pytest.raises(ConfigError, match="which no checkout can have"):
        committed(work / ".git", commit, ".")


def test_missing_objects(repository: Any, take: Any, tmp_path: Path, git: Any) -> None:
    work = repository({"a": "1"})
    taken = take(work)
    blob = git(work, "rev-parse", "HEAD:a")
    (work / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(GpuciError, match="the tree can't be packed: git archive failed") as caught:
        archive(taken, tmp_path / "x.tar")
    assert "partial clone" in caught.value.why
    assert not list(tmp_path.glob("x.tar*"))


def test_no_room_for_the_archive(repository: Any, take: Any, tmp_path: Path) -> None:
    with pytest.raises(GpuciError, match=r"x\.tar can't be written"):
        archive(take(repository({"a": "1"})), tmp_path / "missing/x.tar")


@pytest.mark.parametrize("program", [["tar"], ["busybox", "tar"]], ids=["gnu", "busybox"])
def test_a_node_can_unpack_it(repository: Any, take: Any, tmp_path: Path, program: list[str]) -> None:
    work = repository({"a": "1", "d/b": "2"})
    (work / "link").symlink_to("d/b")
    (work / "d/b").chmod(0o755)
    (work / ("n" * 90)).mkdir()
    (work / ("n" * 90) / ("m" * 90)).write_text("long")
    made = archive(take(work), tmp_path / "x.tar")
    out = tmp_path / "out"
    out.mkdir()
    try:
        subprocess.run([*program, "-xf", str(made.path), "-C", str(out)], check=True, umask=0o077)
    except FileNotFoundError:
        pytest.skip(f"no {program[0]} here")
    assert (out / "link").read_text() == "2"
    assert os.access(out / "d/b", os.X_OK)
    assert (out / ("n" * 90) / ("m" * 90)).read_text() == "long"


def test_the_warnings_go_along(repository: Any, take: Any, tmp_path: Path) -> None:
    taken = replace(take(repository({"a": "1"})), missing=("a submodule",))
    assert archive(taken, tmp_path / "x.tar").missing == ("a submodule",)
