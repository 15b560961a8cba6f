"""A commit becomes plain files; nothing in it reaches outside, or has an effect."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuci.errors import ConfigError, GpuciError
from gpuci.repository.fetch import Repository
from gpuci.repository.unpack import Unpacked, unpack

Fetched = Callable[[str], Repository]


def test_files_come_as_they_are(origin: Any, fetched: Fetched, tmp_path: Path) -> None:
    content = {"a": b"1\n", "d/e/\xe4\n'": b"\0\xff", "empty": b"", "x.sh": b"$Format:%H$ $Id$\n"}
    (origin.directory / "x.sh").touch()
    (origin.directory / "x.sh").chmod(0o755)
    attributes = "* text eol=crlf ident export-subst\nd export-ignore\n"
    sha = origin.commit({**content, ".gitattributes": attributes})
    done = unpack(fetched(sha), sha, ".", tmp_path / "out")
    assert done == Unpacked(files=5)
    assert {name: (tmp_path / "out" / name).read_bytes() for name in content} == content
    modes = {name: (tmp_path / "out" / name).stat().st_mode & 0o777 for name in ("a", "x.sh")}
    mask = os.umask(0)
    os.umask(mask)
    assert modes == {"a": 0o644 & ~mask, "x.sh": 0o755 & ~mask}


def test_a_directory_of_the_commit_and_a_choice_of_files(
    origin: Any, fetched: Fetched, tmp_path: Path
) -> None:
    sha = origin.commit({"a.py": "0", "d/a.py": "1", "d/b.txt": "2", "d/e/c.py": "3"})
    unpack(fetched(sha), sha, "d", tmp_path / "out", keep=lambda path: path.endswith(".py"))
    assert _files(tmp_path / "out") == {"a.py", "e/c.py"}


def _files(top: Path) -> set[str]:
    return {path.relative_to(top).as_posix() for path in top.rglob("*") if not path.is_dir()}


def test_links_that_stay_inside_are_made(origin: Any, fetched: Fetched, tmp_path: Path) -> None:
    for path, text in {"d/l": "../a", "m": "d", "lost": "nothing"}.items():
        (origin.directory / path).parent.mkdir(exist_ok=True)
        (origin.directory / path).symlink_to(text)
    sha = origin.commit({"a": "1"})
    done = unpack(fetched(sha), sha, ".", tmp_path / "out")
    assert done.refused == ()
    assert (tmp_path / "out/m/l").read_text() == "1"
    assert os.readlink(tmp_path / "out/lost") == "nothing"


@pytest.mark.parametrize(
    "links",
    [
        {"out": "/etc/passwd"},
        {"out": "../secret"},
        {"out": "other/x", "other": ".."},
        {"out": "out"},
        {"out": "a\0b"},
        {"out": "x" * 5000},
        {"out": ""},
    ],
    ids=["absolute", "above", "by another", "loop", "nul", "long", "empty"],
)
def test_links_that_lead_out_are_left_out_and_told(
    origin: Any, fetched: Fetched, tmp_path: Path, links: dict[str, str]
) -> None:
    (tmp_path / "secret").write_text("s")
    sha = origin.tree(
        {"a": ("100644", b"1"), **{name: ("120000", text.encode()) for name, text in links.items()}}
    )
    done = unpack(fetched(sha), sha, ".", tmp_path / "out")
    assert done.refused == tuple(sorted(links))
    assert _files(tmp_path / "out") == {"a"}


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", "."])
def test_a_tree_made_by_hand_is_refused(origin: Any, fetched: Fetched, tmp_path: Path, name: str) -> None:
    inner = origin.git("mktree", stdin=b"")
    blob = origin.git("hash-object", "-w", "--stdin", stdin=b"x")
    inner = origin.git("mktree", stdin=f"100644 blob {blob}\tx\n".encode())
    raw = f"40000 {name}".encode() + b"\0" + bytes.fromhex(inner)
    tree = origin.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)
    sha = origin.git("commit-tree", tree, "-m", "x")
    with pytest.raises(ConfigError, match="no checkout can have"):
        unpack(fetched(sha), sha, ".", tmp_path / "a/b/out")
    assert not (tmp_path / "a/b/out").exists()


def test_a_file_below_a_link_is_refused(origin: Any, fetched: Fetched, tmp_path: Path) -> None:
    """A tree that names `l` twice: as a link to outside, and as a directory with a file in it."""
    blob = origin.git("hash-object", "-w", "--stdin", stdin=b"/tmp")
    inner = origin.git("mktree", stdin=f"100644 blob {blob}\tx\n".encode())
    raw = b"120000 l\0" + bytes.fromhex(blob) + b"40000 l\0" + bytes.fromhex(inner)
    tree = origin.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)
    sha = origin.git("commit-tree", tree, "-m", "x")
    with pytest.raises(ConfigError, match="no checkout can have"):
        unpack(fetched(sha), sha, ".", tmp_path / "out")


def test_submodules_are_told(origin: Any, fetched: Fetched, tmp_path: Path) -> None:
    sha = origin.commit({"a": "1"})
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{sha},inner")
    origin.git("commit", "-q", "-m", "submodule")
    head = origin.git("rev-parse", "HEAD")
    assert unpack(fetched(head), head, ".", tmp_path / "out") == Unpacked(1, (), ("inner",))


def test_what_can_t_be_written_is_a_page(origin: Any, fetched: Fetched, tmp_path: Path) -> None:
    sha = origin.commit({"a": "1"})
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(GpuciError, match="can't be written"):
        unpack(fetched(sha), sha, ".", tmp_path / "out")


@pytest.mark.parametrize("path", ["x" * 300, "d/" * 1990 + "f", "/".join(["n" * 250] * 17)])
def test_a_name_that_is_too_long_is_a_page(origin: Any, fetched: Fetched, tmp_path: Path, path: str) -> None:
    """git has room for it: only a working tree has not."""
    blob = origin.git("hash-object", "-w", "--stdin", stdin=b"x")
    origin.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    sha = origin.git("commit-tree", origin.git("write-tree"), "-m", "x")
    out = tmp_path / ("o" * 200)
    with pytest.raises(GpuciError, match="can't be written: File name too long"):
        unpack(fetched(sha), sha, ".", out)
    subprocess.run(["rm", "-rf", out], check=True)  # shutil's removal is recursive too


def test_a_missing_object_is_a_page(origin: Any, fetched: Fetched, tmp_path: Path) -> None:
    sha = origin.tree({"a": ("100644", b"1")})
    repository = fetched(sha)
    for pack in (repository.directory / "objects").rglob("*"):
        if pack.is_file():
            pack.chmod(0o600)
    broken = Repository(tmp_path / "broken")
    broken.fetch(origin.url, "", [sha], filter_="blob:none")
    broken.git.run("config", "remote.none.url", "/nowhere")
    broken.git.run("config", "extensions.partialClone", "none")
    broken.git.run("config", "--unset-all", f"remote.{origin.url}.promisor")
    with pytest.raises(GpuciError, match="can't read the object"):
        unpack(broken, sha, ".", tmp_path / "out")


def test_a_thousand_files_of_all_sizes(origin: Any, fetched: Fetched, tmp_path: Path) -> None:
    """More ids and more content than a pipe holds."""
    files = {f"d{n % 7}/f{n}": os.urandom(n * 3) for n in range(1000)}
    files["big"] = os.urandom(3_000_000)
    sha = origin.commit(files)
    assert unpack(fetched(sha), sha, ".", tmp_path / "out").files == 1001
    assert {name: (tmp_path / "out" / name).read_bytes() for name in files} == files
