"""Files on disk -> Config: which files, overlays, the packages given by hand, unreadable files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpuci
from gpuci.config.load import find_root, load_config
from gpuci.config.model import DEFAULT_MARKERS, Config, MarkerRule
from gpuci.errors import ConfigError


def write(path: Path, text: str) -> Path:
    """Write a file and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert config.packages == (".",)
    assert config.markers == DEFAULT_MARKERS
    assert (config.node, config.shards, config.profiles) == (
        Config().node,
        Config().shards,
        Config().profiles,
    )
    assert config.container["shm-size"] == "64g"


def test_an_empty_file_is_the_same_as_none(tmp_path: Path) -> None:
    before = load_config(tmp_path)
    write(tmp_path / ".github/gpuci.yml", "")
    assert load_config(tmp_path) == before


def test_the_own_file_is_read_unless_files_are_named(tmp_path: Path) -> None:
    write(tmp_path / ".github/gpuci.yml", "packages: [own]\n")
    other = write(tmp_path / "other.yml", "node: {timeout: 5}\n")
    assert load_config(tmp_path).packages == ("own",)
    assert load_config(tmp_path, [other]).packages == (".",)


def test_files_lie_over_each_other_from_left_to_right(tmp_path: Path) -> None:
    first = write(
        tmp_path / "1.yml",
        "packages: [a, b]\nnode: {timeout: 5, env: {A: x, B: y}}\nprofiles: {p: {gpus: 4}, q: {}}\n",
    )
    second = write(
        tmp_path / "2.yml",
        "packages: [c]\nnode: {env: {B: z, A: null}}\nprofiles: {p: null}\nmarkers: {gpu: 2, cpu: null}\n",
    )
    config = load_config(tmp_path, [first, second])
    assert config.packages == ("c",)
    assert (config.node.timeout, config.node.env) == (5, {"B": "z"})
    assert [profile.name for profile in config.profiles] == ["q"]
    assert MarkerRule("gpu", gpus=2) in config.markers
    assert "cpu" not in [rule.name for rule in config.markers]


def test_problems_of_all_files_come_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [write(tmp_path / "a.yml", "packages: [\n"), write(tmp_path / "b.yml", "node: {a: 1, a: 2}\n")]
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, [*files, tmp_path / "c.yml"])
    places = [line.split(": ")[0].strip() for line in caught.value.what.splitlines()[1:]]
    assert places == ["a.yml:2:1", "b.yml:1:14", "c.yml"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a b/\n ./c", ("a", "b", "c")),
        (["a", "b c"], ("a", "b c")),
        ("", ("own",)),
        ("  ", ("own",)),
        ([], ("own",)),
        (None, ("own",)),
    ],
    ids=["text", "list", "empty", "blank", "empty-list", "none"],
)
def test_packages_by_hand(given: str | list[str] | None, expected: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path / ".github/gpuci.yml", "packages: [own]\n")
    assert load_config(tmp_path, packages=given).packages == expected


@pytest.mark.parametrize("entry", ["/a", "a/../..", "a\\b", "a\x00b"])
def test_packages_by_hand_are_checked(entry: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="packages from the command line or environment"):
        load_config(tmp_path, packages=[entry])


def test_modes_file(tmp_path: Path) -> None:
    write(tmp_path / "ci/modes.yml", "serial: [a/t.py]\nSKIP:\n  - b/\n  - a/t.py::test_x[./p]\n")
    write(tmp_path / ".github/gpuci.yml", "modes: ci/modes.yml\n")
    assert load_config(tmp_path).modes == (
        ("a/t.py", "serial"),
        ("b", "skip"),
        ("a/t.py::test_x[./p]", "skip"),
    )


def test_problems_in_a_modes_file_name_that_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "modes.yml", "serial: [a]\nparalel: [b]\nskip: [a]\n")
    write(tmp_path / ".github/gpuci.yml", "modes: modes.yml\nnode: {timeout: x}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    assert [line.split(": ")[0].strip() for line in caught.value.what.splitlines()[1:]] == [
        ".github/gpuci.yml:2:17",
        "modes.yml:2:1",
        "modes.yml:3:8",
    ]


def test_a_directory_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        load_config(tmp_path, [tmp_path])


def test_a_fifo_without_a_writer_is_a_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConfigError, match="is not a regular file"):
        load_config(tmp_path, [tmp_path / "fifo"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("missing.yml", "No such file or directory"),
        ("file/x.yml", "Not a directory"),
        ("a" * 300, "File name too long"),
        ("a\x00b", "null byte"),
        ("loop", "Too many levels of symbolic links"),
    ],
    ids=["missing", "below-a-file", "long", "nul", "loop"],
)
def test_files_that_cannot_be_opened(name: str, expected: str, tmp_path: Path) -> None:
    write(tmp_path / "file", "")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match=expected):
        load_config(tmp_path, [tmp_path / name])


def test_a_dangling_link_in_place_of_the_own_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github/gpuci.yml").symlink_to("nowhere")
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path)


def test_find_root(tmp_path: Path) -> None:
    write(tmp_path / "repo/.github/gpuci.yml", "")
    write(tmp_path / "repo/inner/.github/gpuci.yml", "")
    (tmp_path / "repo/inner/deep/er").mkdir(parents=True)
    (tmp_path / "repo/other").mkdir()
    assert find_root(tmp_path / "repo/inner/deep/er") == tmp_path / "repo/inner"
    assert find_root(tmp_path / "repo/inner") == tmp_path / "repo/inner"
    assert find_root(tmp_path / "repo/other") == tmp_path / "repo"
    assert find_root(tmp_path / "repo/not/there") == tmp_path / "repo"
    assert find_root(tmp_path) == tmp_path


def test_jsonschema_is_loaded_only_for_a_file(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from gpuci.config.load import load_config\n"
        "load_config(Path(sys.argv[1])); print('jsonschema' in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(gpuci.__file__).parents[1])}

    def loaded() -> str:
        command = [sys.executable, "-c", code, str(tmp_path)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()

    assert loaded() == "False"
    write(tmp_path / ".github/gpuci.yml", "packages: [a]")
    assert loaded() == "True"
