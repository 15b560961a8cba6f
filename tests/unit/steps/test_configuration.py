"""The configuration of a commit: what it takes along of the commit's files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpuci.changes.read import Source
from gpuci.config import document
from gpuci.errors import ConfigError
from gpuci.execution.transport.login import HOST_KEYS
from gpuci.repository.git import Git, user_environment
from gpuci.steps import configuration

NAME = ".github/gpuci.yml"
LINE = "login1 ssh-ed25519 AAAA"


def read(tmp_path: Path, files: Mapping[str, str], root: str = ".") -> configuration.Configuration:
    """What a commit with these files says."""
    tree = tmp_path / "tree"
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    git = ["git", "-c", "user.name=u", "-c", "user.email=u@x"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=tree, check=True)
    source = Source(Git(tree, user_environment(os.environ)))
    found = source.files("HEAD")
    place = configuration.Place("main (0123)", root)
    return configuration.read(source, found, [NAME], tmp_path / "read", place)


def host_keys(tmp_path: Path, known_hosts: str, **files: str) -> str | None:
    """The lines that the resolved configuration has, through its JSON form as other jobs get it."""
    config = read(tmp_path, {NAME: f"slurm: {{known-hosts: {known_hosts}}}\n", **files}).config
    slurm = document.from_document(document.to_document(config)).slurm
    assert slurm["known-hosts"] == known_hosts
    return slurm.get(HOST_KEYS)


@pytest.mark.parametrize("name", [".github/known_hosts", "./.github//known_hosts"], ids=["plain", "untidy"])
def test_the_commits_host_keys_travel_with_its_configuration(name: str, tmp_path: Path) -> None:
    text = f"# login1:22 SSH-2.0-OpenSSH\n\n{LINE}\r\n"
    assert host_keys(tmp_path, name, **{".github/known_hosts": text}) == f"{LINE}\n"


@pytest.mark.parametrize("name", ["/etc/ssh/ssh_known_hosts", "~/known_hosts", "not_in_the_commit"])
def test_a_file_that_the_commit_does_not_have_is_the_runners(name: str, tmp_path: Path) -> None:
    assert host_keys(tmp_path, name) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [("# nothing\n", "holds no host key"), (f"{LINE}\n" * 2000, "32,768 bytes")],
    ids=["empty", "too long"],
)
def test_a_file_of_no_use_is_told_before_anything_runs(text: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        host_keys(tmp_path, "kh", kh=text)
    assert "slurm.known-hosts: 'kh' of main (0123)" in raised.value.what
    assert word in raised.value.what


@pytest.mark.parametrize(
    ("files", "root", "first"),
    [
        ({NAME: "slurm:\n  hots: x\n"}, ".", f"{NAME}:2:3: "),
        ({NAME: "slurm:\n  hots: x\n"}, "ml", f"ml/{NAME}:2:3: "),
        ({NAME: "hots: x\ncots: y\n"}, "ml", "2 problems in the configuration"),
        ({"other": ""}, "ml", f"main (0123) has no file ml/{NAME}"),
    ],
    ids=["top", "below", "two problems", "no file"],
)
def test_an_error_starts_with_the_file_as_the_repository_has_it(
    files: Mapping[str, str], root: str, first: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, files, root)
    line, *rest = raised.value.what.split("\n")
    assert line.startswith(first)
    assert all(text.startswith((f"  {root}/{NAME}:", "  (as of main")) for text in rest if root != ".")
