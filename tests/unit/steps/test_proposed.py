"""A configuration that a commit brings while another one counts: it is not used, and has to work."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpuci.changes.model import Changes, FileChange
from gpuci.config.load import MAX_BYTES, load_config
from gpuci.errors import ConfigError
from gpuci.repository.fetch import Repository
from gpuci.steps import proposed
from gpuci.steps.configuration import Configuration

NAME = ".github/gpuci.yml"
GOOD = "packages: [a]\n"
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


def commit(directory: Path, files: Mapping[str, str | Path]) -> tuple[Repository, str]:
    """Our repository with a commit of these files (a path: a link to it) that was fetched."""
    theirs = directory / "theirs"
    for name, text in files.items():
        path = theirs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, Path):
            path.symlink_to(text)
        else:
            path.write_text(text)
    git = ["git", "-c", "user.name=u", "-c", "user.email=u@x"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=theirs, check=True)
    ours = Repository(directory / "ours")
    said = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=theirs, check=True, capture_output=True, text=True
    )
    return ours, ours.fetch(theirs.as_uri(), "", [said.stdout.strip()])[0]


def check(directory: Path, files: Mapping[str, str | Path], *names: str, root: str = ".") -> None:
    ours, sha = commit(directory, {"README": "", **files})
    proposed.check(ours, sha, root, names or (NAME,), directory / "read")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({NAME: f"{GOOD}slurm:\n  hots: x\n"}, rf"\n{NAME}:3:3: "),
        ({NAME: f"{GOOD}modes: m.yml\n", "m.yml": "serial: 7\n"}, "m.yml:1:"),
        ({NAME: f"{GOOD}modes: gone.yml\n"}, "gone.yml"),
        (
            {NAME: f"{GOOD}slurm: {{known-hosts: kh}}\n", "kh": "# none\n"},
            "'kh' of commit [0-9a-f]{12} holds no",
        ),
        ({}, f"has no file {NAME}"),
        ({NAME: Path("/etc/passwd")}, f"has no file {NAME}"),
        ({NAME: f"{GOOD}modes: m.yml\n", "m.yml": Path("/etc/passwd")}, "has no file m.yml"),
        ({NAME: f"{GOOD}modes: ../m.yml\n"}, "leaves ROOT"),
        ({NAME: "x" * (MAX_BYTES + 1)}, "bigger than 1,000,000 bytes"),
        ({NAME: BOMB}, "aliases"),
        ({NAME: "[" * 1000}, "nested more than"),
        (
            {NAME: f"{GOOD}modes:\n  serial:\n" + "".join(f"    - a/{n:060}.py\n" for n in range(2000))},
            "too big",
        ),
        ({NAME: "\x00"}, "forbids"),
    ],
)
def test_what_would_stop_the_runs_after_a_merge_is_told(
    files: Mapping[str, str | Path], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        check(tmp_path, files)
    assert raised.value.what.startswith("the configuration that this commit brings does not work\n")
    assert "with this one merged each run would stop" in raised.value.why
    assert "root:" not in raised.value.what


def test_overlays_and_root_are_those_of_the_run(tmp_path: Path) -> None:
    files = {f"ml/{NAME}": "slurm: {port: x}\n", "ml/over.yml": f"{GOOD}slurm: {{port: 7}}\n"}
    check(tmp_path, files, NAME, "over.yml", root="ml")
    with pytest.raises(ConfigError, match=f"ml/{NAME}:1:"):
        check(tmp_path / "alone", files, root="ml")


def test_one_that_works_is_no_error_and_its_modes_file_is_read(tmp_path: Path) -> None:
    check(tmp_path, {NAME: f"{GOOD}modes: m.yml\n", "m.yml": "serial: [a]\n"})
    assert (tmp_path / "read" / "m.yml").is_file()


FILE = ("100644", "1" * 40)
OTHER = ("100644", "2" * 40)


@pytest.mark.parametrize(
    ("before", "head", "changed", "base", "expected"),
    [
        ({NAME: FILE}, {NAME: FILE}, [NAME], "b", False),
        ({NAME: FILE}, {NAME: OTHER}, [NAME], "b", True),
        ({NAME: FILE}, {}, [NAME], "b", True),
        ({NAME: FILE}, {NAME: OTHER}, ["a.py"], "b", False),
        ({NAME: FILE}, {NAME: OTHER}, [], "", True),
        ({NAME: FILE}, {NAME: FILE}, [], "", False),
        ({NAME: FILE, "kh": FILE}, {NAME: FILE, "kh": OTHER}, ["kh"], "b", True),
        ({NAME: FILE, "x": FILE}, {NAME: FILE, "x": OTHER}, ["x"], "b", False),
    ],
    ids=["same", "changed", "deleted", "older", "no base", "no base, same", "host keys", "another file"],
)
def test_a_commit_that_leaves_it_as_it_is_costs_nothing(
    before: Mapping[str, tuple[str, str]],
    head: Mapping[str, tuple[str, str]],
    changed: list[str],
    base: str,
    expected: bool,
    tmp_path: Path,
) -> None:
    (tmp_path / "c.yml").write_text(f"{GOOD}slurm: {{known-hosts: ./kh}}\n")
    counting = Configuration(load_config(tmp_path, [tmp_path / "c.yml"]), (NAME,))
    changes = Changes(base, "h", False, changed=tuple(FileChange(path, "modified") for path in changed))
    assert proposed.brought(changes, counting, before, head) is expected
